package retcon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/timeline"
)

// shapes are the recorded payloads that a session is played with: a prompt, a
// call of a shell before and after it, and the end of a turn.
var shapes = map[string][4]string{
	agent.Claude:   {"UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop"},
	agent.Codex:    {"UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop"},
	agent.Gemini:   {"BeforeAgent", "BeforeTool.run_shell_command", "AfterTool.run_shell_command", "AfterAgent"},
	agent.OpenCode: {"chat.message", "tool.execute.before.bash", "tool.execute.after.bash", "event.session.idle"},
}

// actor is a session that is played, with what a watcher who sees everything
// knows of it.
type actor struct {
	p       *place
	client  string
	session string
	files   []string // it works on
	n       int      // events of its own: what makes prompts and calls different
	turns   int      // that have ended
	talking bool     // a turn goes on
	open    []string // calls that go on
	frames  []moment // what its frames hold
}

// send plays a recorded payload of the actor's client.
func (a *actor) send(which int, id string) error {
	name := shapes[a.client][which]
	text, err := os.ReadFile(filepath.Join("agent", "testdata", a.client, name+".json"))
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "/home/dev/project", a.p.dir)), &all); err != nil {
		return err
	}
	event, _, _ := strings.Cut(name, ".")
	delete(all, "transcript_path")
	if a.client == agent.OpenCode {
		event = strings.TrimSuffix(name, ".bash")
		switch which {
		case 0:
			all["input"].(map[string]any)["sessionID"] = a.session
			all["output"] = fields{"message": fields{"id": id}, "parts": []any{fields{"type": "text", "text": id}}}
		case 3:
			event = "event"
			all["properties"].(map[string]any)["sessionID"] = a.session
		default:
			in := all["input"].(map[string]any)
			in["sessionID"], in["callID"] = a.session, id
		}
	} else {
		all["session_id"] = a.session
		for _, key := range []string{"prompt_id", "turn_id"} {
			if all[key] != nil {
				all[key] = fmt.Sprintf("%s-%d", a.session, a.turns)
			}
		}
		switch which {
		case 0:
			all["prompt"] = id
		case 1, 2:
			if a.client == agent.Gemini {
				all["tool_input"] = fields{"command": "touch " + id} // it has no ids of calls
			} else {
				all["tool_use_id"] = id
			}
		}
	}
	payload, err := json.Marshal(all)
	if err != nil {
		return err
	}
	a.p.clock = a.p.clock.Add(time.Second)
	_, err = a.p.Hook(ctx, retcon.HookOptions{Agent: a.client, Event: event, Payload: payload, Client: os.Getpid()})
	return err
}

// moment is the worktree: path to content.
type moment map[string]string

// watcher sees what is there whenever something is recorded, and whose calls
// went on meanwhile. It knows nothing of checkpoints.
type watcher struct {
	last  moment
	spans []span
}

// span is what changed between two moments, and which sessions had a call going
// on all the while.
type span struct {
	changed []string
	who     []string
}

func (w *watcher) look(now moment, who []string) {
	s := span{who: who}
	for path := range now {
		if now[path] != w.last[path] {
			s.changed = append(s.changed, path)
		}
	}
	for path := range w.last {
		if _, ok := now[path]; !ok {
			s.changed = append(s.changed, path)
		}
	}
	w.last = maps.Clone(now)
	w.spans = append(w.spans, s)
}

// owners are those who have changed a path since a number of spans: the session,
// "others", or both.
func (w *watcher) owners(since int, session string) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range w.spans[since:] {
		for _, path := range s.changed {
			if all[path] == nil {
				all[path] = map[string]bool{}
			}
			mine := slices.Contains(s.who, session)
			if mine {
				all[path]["mine"] = true
			}
			if !mine || len(s.who) > 1 {
				all[path]["others"] = true
			}
		}
	}
	return all
}

// scene is a checkout with two sessions and a user in it.
type scene struct {
	t      *rapid.T
	p      *place
	actors [2]*actor
	seen   watcher
	since  map[string][]int // of a session: how many spans there were at each of its frames
	writes int
}

func (s *scene) now() moment {
	now := moment{}
	entries, err := os.ReadDir(s.p.dir)
	require.NoError(s.t, err)
	for _, e := range entries {
		if e.Type().IsRegular() {
			text, err := os.ReadFile(s.p.path(e.Name()))
			require.NoError(s.t, err)
			now[e.Name()] = string(text)
		}
	}
	return now
}

// recorded is called before an event is sent: what has changed up to now happened
// while the calls that are open now went on.
func (s *scene) recorded() {
	var who []string
	for _, a := range s.actors {
		if len(a.open) > 0 {
			who = append(who, a.session)
		}
	}
	s.seen.look(s.now(), who)
}

func (s *scene) frame(a *actor) {
	a.frames = append(a.frames, s.now())
	s.since[a.session] = append(s.since[a.session], len(s.seen.spans))
}

func (s *scene) send(a *actor, which int, id string) {
	s.recorded()
	require.NoError(s.t, a.send(which, id), "%s %s", a.client, shapes[a.client][which])
}

// change writes or removes a file, as anybody may at any time: mostly one of
// those that somebody works on, now and then any.
func (s *scene) change(mostly ...string) {
	if rapid.IntRange(0, 3).Draw(s.t, "of others") == 3 {
		mostly = []string{"a", "b", "c", "d", "e", "f", "g"}
	}
	path := rapid.SampledFrom(mostly).Draw(s.t, "path")
	s.writes++
	if rapid.IntRange(0, 4).Draw(s.t, "removed") == 4 {
		_ = os.Remove(s.p.path(path)) // it may be gone already
		return
	}
	require.NoError(s.t, os.WriteFile(s.p.path(path), fmt.Appendf(nil, "%d", s.writes), 0o644))
}

// step lets somebody do something.
func (s *scene) step() {
	a := rapid.SampledFrom(s.actors[:]).Draw(s.t, "actor")
	what := rapid.SampledFrom([]string{"call", "call", "call", "end", "end", "end", "write", "write", "user", "turn"}).Draw(s.t, "what")
	switch {
	case what == "user":
		s.change("e", "f")
	case what == "turn" && a.talking:
		s.stop(a)
	case !a.talking:
		a.n++
		s.send(a, 0, fmt.Sprintf("%s says %d", a.session, a.n))
		if len(a.frames) == 0 {
			s.frame(a) // its first event, and frame 0
		}
		a.talking = true
	case what == "call" && len(s.actors[0].open)+len(s.actors[1].open) > 0 && rapid.IntRange(0, 2).Draw(s.t, "overlapping") != 2:
		// Most calls are alone.
	case what == "call" && len(a.open) < 2:
		a.n++
		id := fmt.Sprintf("%s-call-%d", a.session, a.n)
		s.send(a, 1, id)
		a.open = append(a.open, id)
	case what == "write" && len(a.open) > 0:
		s.change(a.files...)
	case what == "end" && len(a.open) > 0:
		s.change(a.files...)
		i := rapid.IntRange(0, len(a.open)-1).Draw(s.t, "which")
		id := a.open[i]
		s.send(a, 2, id)
		a.open = slices.Delete(a.open, i, i+1)
	}
}

// stop ends a turn, and with it the calls whose end nobody has told.
func (s *scene) stop(a *actor) {
	s.send(a, 3, "")
	a.open, a.talking = nil, false
	a.turns++
	s.frame(a)
}

// Two sessions of different clients and a user work in one checkout, in any
// order, over the same files. One session is rewound: each path is put back, or
// it is kept and said to be, or it is a conflict that is said to be one and then
// nothing moves. What the others did alone is never touched, and undo brings
// every byte back.
func TestTwoSessionsAndAUser(t *testing.T) {
	played, failing := 0, false
	most := 30
	switch {
	case testing.Short():
		most = 8
	case *long:
		most = 1 << 30
	}
	rapid.Check(t, func(rt *rapid.T) {
		if played++; played > most && !failing {
			return
		}
		failing = true // until it has come to its end: it is played again, to find a short story
		playTogether(t, rt)
		failing = false
	})
}

func playTogether(t *testing.T, rt *rapid.T) {
	clients := rapid.Permutation([]string{agent.Claude, agent.Codex, agent.Gemini, agent.OpenCode}).Draw(rt, "clients")
	dir, err := os.MkdirTemp(t.TempDir(), "scene-")
	require.NoError(rt, err)
	git(t, dir, "init", "-q", "-b", "main", dir)
	p := openPlace(t, dir, retcon.Options{})
	s := &scene{t: rt, p: p, since: map[string][]int{}}
	for i := range s.actors {
		s.actors[i] = &actor{p: p, client: clients[i], session: fmt.Sprintf("s%d", i+1), files: [][]string{{"a", "b"}, {"c", "d"}}[i]}
	}
	for _, path := range []string{"a", "b"} {
		p.write(path, "0")
	}
	s.seen.last = s.now()
	for range rapid.IntRange(20, 60).Draw(rt, "steps") {
		s.step()
	}
	for _, a := range s.actors {
		if a.talking {
			s.stop(a)
		}
	}
	if rapid.Bool().Draw(rt, "the user has the last word") {
		s.change("e", "f")
	}
	s.recorded()
	a := rapid.SampledFrom(s.actors[:]).Draw(rt, "rewound")
	if len(a.frames) == 0 {
		return
	}
	s.rewind(a, rapid.IntRange(0, len(a.frames)-1).Draw(rt, "frame"))
}

func (s *scene) rewind(a *actor, frame int) {
	before, want, since := s.now(), a.frames[frame], s.since[a.session][frame]
	who := s.seen.owners(since, a.session)
	restored, kept, conflicts := moment{}, []string{}, []string{}
	for _, path := range slices.Sorted(maps.Keys(union(before, want))) {
		switch {
		case before[path] == want[path]:
		case !who[path]["mine"]:
			kept = append(kept, path)
		case who[path]["others"]:
			conflicts = append(conflicts, path)
		default:
			restored[path] = want[path]
		}
	}
	s.p.clock = s.p.clock.Add(time.Minute)
	o := retcon.TravelOptions{Run: a.session, Frame: int64(frame)}
	moved, err := s.p.Rewind(ctx, o)
	var conflict *timeline.ConflictError
	if errors.As(err, &conflict) {
		require.Equal(s.t, conflicts, noted(conflict.Plan.Conflicts), "the conflicts")
		require.Equal(s.t, before, s.now(), "nothing has moved")
		o.Conflicts = rapid.SampledFrom([]string{"mine", "theirs"}).Draw(s.t, "conflicts")
		for _, path := range conflicts {
			if o.Conflicts == "theirs" {
				restored[path] = want[path]
			} else {
				kept = append(kept, path)
			}
		}
		slices.Sort(kept)
		conflicts = nil
		moved, err = s.p.Rewind(ctx, o)
	}
	require.NoError(s.t, err)
	require.Empty(s.t, conflicts, "a conflict that nobody was told of")
	require.Equal(s.t, kept, noted(moved.Plan.Kept), "what is kept is told")
	after := maps.Clone(before)
	for path, text := range restored {
		after[path] = text
		if _, there := want[path]; !there {
			delete(after, path)
		}
	}
	require.Equal(s.t, after, s.now(), "what is put back")
	var told []string
	for _, c := range moved.Plan.Changes {
		told = append(told, c.Path)
	}
	slices.Sort(told)
	require.Equal(s.t, slices.Sorted(maps.Keys(restored)), told, "what is put back is told")

	s.p.clock = s.p.clock.Add(time.Minute)
	if len(restored) > 0 {
		_, err = s.p.Undo(ctx, retcon.MoveOptions{})
		require.NoError(s.t, err)
	}
	require.Equal(s.t, before, s.now(), "undo brings back every byte")
}

func union(a, b moment) moment {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func noted(notes []timeline.Note) []string {
	paths := []string{}
	for _, n := range notes {
		paths = append(paths, n.Path)
	}
	slices.Sort(paths)
	return paths
}
