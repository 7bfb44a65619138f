package retcon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// What others do while a move goes on: an editor saves, sixteen hooks of an agent
// record, the agent's tools write, other moves are tried, and the move itself is
// killed. Whoever was told that something is written or recorded finds it.

var (
	writerBursts = flag.Int("writers.bursts", 6, "how many moves TestMoveAmongWriters makes")
	writerSeed   = flag.Uint64("writers.seed", 0, "what TestMoveAmongWriters chooses by; 0 for a new one")
)

// dieAt makes this process kill itself at a crash point, the n-th time it comes
// to it: "move.begun#1". The points it passes are added to a file.
func dieAt(at, log string) {
	if at == "" && log == "" {
		return
	}
	var mu sync.Mutex
	passed := map[string]int{}
	crash.Hook = func(name string) {
		mu.Lock()
		defer mu.Unlock()
		passed[name]++
		point := fmt.Sprintf("%s#%d", name, passed[name])
		if log != "" {
			if f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				fmt.Fprintln(f, point)
				f.Close()
			}
		}
		if point == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// wrote is a content that was written, and whoever wrote it was told so.
type wrote struct{ path, content, how string }

// save writes as editors do: to a file beside it that is renamed, or into the
// file itself, which takes a while.
func save(root, path, content string, whole bool, pause time.Duration) (w wrote, err error) {
	full := filepath.Join(root, path)
	w = wrote{path, content, "renamed"}
	if whole {
		tmp := full + ".tmp~"
		if err := os.WriteFile(tmp, []byte(content), 0o644); err != nil {
			return w, err
		}
		if err := os.Rename(tmp, full); err != nil {
			return w, errors.Join(err, os.Remove(tmp))
		}
		return w, nil
	}
	w.how = "written into"
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return w, err
	}
	time.Sleep(pause)
	half := len(content) / 2
	_, err = f.WriteString(content[:half])
	time.Sleep(pause)
	if err == nil {
		_, err = f.WriteString(content[half:])
	}
	return w, errors.Join(err, f.Close())
}

// hooked is what one call of an agent's came to.
type hooked struct {
	ID     string `json:"id"`
	Before string `json:"before"` // what the hook answered
	After  string `json:"after"`
	Path   string `json:"path"`
	Wrote  string `json:"wrote"`
}

// beAgent is a client with hooks, sixteen of whose calls go on at once. Each
// writes a file of its own, when it may.
func beAgent(dir, burst string) int {
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	payload, err := os.ReadFile(os.Getenv("AGENT_PAYLOAD"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	failed := false
	for i := range 16 {
		all.Go(func() {
			h := hooked{ID: fmt.Sprintf("%s-%d", burst, i)}
			hook := func(event string) string {
				var p fields
				if err := json.Unmarshal(payload, &p); err != nil {
					return err.Error()
				}
				p["session_id"], p["cwd"], p["tool_use_id"], p["hook_event_name"] = "s1", dir, h.ID, event
				delete(p, "transcript_path")
				delete(p, "prompt_id")
				b, _ := json.Marshal(p)
				c := exec.Command(exe, "-child.dir="+dir, `-child.line=["hook","claude","`+event+`"]`)
				var out, errs bytes.Buffer
				c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(b), &out, &errs
				c.Env = append(os.Environ(), "RETCON_DEBUG=1")
				if err := c.Run(); err != nil || errs.Len() > 0 {
					mu.Lock()
					defer mu.Unlock()
					failed = true
					fmt.Fprintf(os.Stderr, "hook %s %s: %v %s\n", event, h.ID, err, errs.String())
				}
				return out.String()
			}
			if h.Before = hook("PreToolUse"); !strings.Contains(h.Before, `"deny"`) {
				h.Path = fmt.Sprintf("agent-%d", i)
				if w, err := save(dir, h.Path, "agent "+h.ID, i%2 == 0, time.Millisecond); err == nil {
					h.Wrote = w.content
				}
				h.After = hook("PostToolUse")
			}
			mu.Lock()
			defer mu.Unlock()
			_ = json.NewEncoder(os.Stdout).Encode(h) // whoever reads it sees that it is not there
		})
	}
	all.Wait()
	if failed {
		return 1
	}
	return 0
}

// reachable are the contents of small files that some checkpoint holds.
func (p *place) reachable() map[string]bool {
	p.t.Helper()
	w, err := vcs.Open(p.dir, vcs.Options{})
	require.NoError(p.t, err)
	defer w.Close()
	db, err := ledger.Open(filepath.Join(p.Folder(), "ledger.db"), ledger.Options{ReadOnly: true})
	require.NoError(p.t, err)
	defer db.Close()
	seen, found := map[string]bool{}, map[string]bool{}
	require.NoError(p.t, checkpoint.Live(ctx, db)(func(c vcs.Commit) error {
		files, err := w.Files(ctx, c)
		for _, f := range files {
			if f.New.Kind != vcs.KindFile || seen[f.New.ID] {
				continue
			}
			seen[f.New.ID] = true
			b, err := w.Content(f.New)
			if err != nil {
				return err
			}
			found[string(b)] = true
		}
		return err
	}))
	return found
}

func TestMoveAmongWriters(t *testing.T) {
	seed := *writerSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-writers.seed=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := newRepo(t)
	p.clock = time.Now()
	var paths []string
	for i := range 60 {
		paths = append(paths, fmt.Sprintf("src/d%d/f%d", i%6, i))
		p.write(paths[i], fmt.Sprint("first ", i))
	}
	p.checkpoint(retcon.CheckpointOptions{}) // c1
	for i, path := range paths {
		if i%5 == 0 {
			require.NoError(t, os.Remove(p.path(path)))
		} else {
			p.write(path, fmt.Sprint("second ", i))
		}
	}
	p.write("more/x", "second")
	p.checkpoint(retcon.CheckpointOptions{}) // c2
	payload, err := filepath.Abs("agent/testdata/claude/PreToolUse.Bash.json")
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)

	// The points of a move that nobody disturbs.
	log := filepath.Join(t.TempDir(), "points")
	dry := asRetcon(t, p.dir, "restore", "c1", "--exact", "--yes")
	dry.Env = append(os.Environ(), "CHILD_LOG="+log)
	out, err := dry.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	points := strings.Fields(string(text))
	require.Greater(t, len(points), 50)

	tally := map[string]int{}
	calls := map[string]hooked{}
	for burst := range *writerBursts {
		var mu sync.Mutex
		var saved []wrote
		stop := make(chan struct{})
		var all sync.WaitGroup
		order := rng.Perm(len(paths))
		for hand := range 2 {
			all.Go(func() { // an editor; each path once
				for n, i := range order {
					if n%2 != hand {
						continue
					}
					select {
					case <-stop:
						return
					default:
					}
					w, err := save(p.dir, paths[i], fmt.Sprintf("edit %d of %s", burst, paths[i]), (n/2)%2 == 0, time.Duration(n%4)*time.Millisecond)
					if err == nil {
						mu.Lock()
						saved = append(saved, w)
						mu.Unlock()
					} else {
						assert.ErrorIs(t, err, fs.ErrNotExist, "its folder is gone for a moment")
					}
					time.Sleep(4 * time.Millisecond)
				}
			})
		}
		client := exec.Command(exe, "-child.dir="+p.dir, fmt.Sprintf("-child.agent=b%d", burst))
		client.Env = append(os.Environ(), "AGENT_PAYLOAD="+payload)
		var heard, errs bytes.Buffer
		client.Stdout, client.Stderr = &heard, &errs
		require.NoError(t, client.Start())

		target := fmt.Sprintf("c%d", 1+burst%2)
		mover := asRetcon(t, p.dir, "--json", "restore", target, "--exact", "--steal", "--yes")
		at := ""
		if burst%2 == 1 {
			at = points[rng.IntN(len(points))]
			mover.Env = append(os.Environ(), "CHILD_DIE="+at)
		}
		for range 2 {
			all.Go(func() { // somebody else
				for range 3 {
					other := asRetcon(t, p.dir, "--json", "undo", "--steal", "--yes")
					var errs bytes.Buffer
					other.Stderr = &errs
					err := other.Run()
					code := 0
					var exit *exec.ExitError
					if errors.As(err, &exit) {
						code = exit.ExitCode()
					}
					mu.Lock()
					tally[fmt.Sprint("another move: ", code)]++
					mu.Unlock()
					if code == 5 && strings.Contains(errs.String(), "the worktree is locked") {
						var said struct {
							Error struct {
								Holder string
								Since  time.Time
							}
						}
						assert.NoError(t, json.Unmarshal(errs.Bytes(), &said), errs.String())
						assert.Contains(t, said.Error.Holder, " (pid ", "a move, or a hook that recovers")
						assert.False(t, said.Error.Since.IsZero(), errs.String())
					}
					assert.Contains(t, []int{0, 1, 3, 4, 5}, code, errs.String())
				}
			})
		}
		out, err := mover.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			tally["moved"]++
		case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
			tally["killed"]++
		default:
			tally["refused or taken back"]++
			t.Logf("%s: %s", target, out)
		}
		out, err = asRetcon(t, p.dir, "recover").CombinedOutput()
		assert.NoError(t, err, string(out))
		assert.NoError(t, client.Wait(), errs.String())
		close(stop)
		all.Wait()
		out, err = asRetcon(t, p.dir, "recover").CombinedOutput()
		require.NoError(t, err, string(out))

		for d := json.NewDecoder(&heard); d.More(); {
			var h hooked
			require.NoError(t, d.Decode(&h))
			calls[h.ID] = h
			if h.Wrote != "" {
				saved = append(saved, wrote{h.Path, h.Wrote, "written by the agent"})
			}
			if strings.Contains(h.Before, `"deny"`) {
				tally["denied"]++
				assert.Contains(t, h.Before, "retcon is moving the files")
			} else {
				tally["recorded"]++
			}
		}
		require.Len(t, calls, 16*(burst+1))
		found := p.reachable()
		for _, w := range saved {
			now, _ := os.ReadFile(p.path(w.path)) // not there: then it has to be somewhere else
			if string(now) != w.content && !found[w.content] {
				t.Errorf("burst %d, to %s, died at %q: what was %s %s is lost", burst, target, at, w.how, w.path)
			}
		}
		tally["saved"] += len(saved)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%v", tally)

	// Each call was denied and left nothing, or is there with what was before it.
	db, err := ledger.Open(filepath.Join(p.Folder(), "ledger.db"), ledger.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		run, err := tx.RunByExt(agent.Claude, "s1")
		if err != nil {
			return err
		}
		attempts, err := tx.Attempts(run.ID)
		if err != nil {
			return err
		}
		known := map[string]ledger.Attempt{}
		for _, a := range attempts {
			if _, id, ok := strings.Cut(a.Task, "["); ok {
				known[strings.TrimSuffix(id, "]")] = a
			}
		}
		for id, h := range calls {
			a, ok := known[id]
			if strings.Contains(h.Before, `"deny"`) {
				assert.False(t, ok, "%s was denied and is recorded", id)
				continue
			}
			if assert.True(t, ok, "%s was let pass and is not recorded", id) {
				assert.NotZero(t, a.Before, id)
				assert.NotZero(t, a.After, id)
				assert.Equal(t, ledger.OutcomeOK, a.Outcome, id)
			}
		}
		return nil
	}))
	p.healthy()
}
