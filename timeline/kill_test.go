package timeline_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// The crash tests die between two steps. This one dies anywhere: a process makes
// moves that a seed chooses and is killed at a random moment of them, and so is
// the recovery. What the moves would have come to is known from a dry round: the
// same moves, from the same state, by a process that is left alone.

var (
	kills    = flag.Int("timeline.kills", 40, "how many processes TestRandomKills kills")
	killSeed = flag.Uint64("timeline.seed", 0, "what TestRandomKills chooses by; 0 for a new one")
)

// scoped is a test's part of its own, which ends before the test does.
type scoped struct {
	testing.TB
	ends []func()
}

func (s *scoped) Cleanup(f func()) { s.ends = append(s.ends, f) }

// within opens a place for as long as do takes, and checks the ledger after it.
func within(t testing.TB, root string, do func(p *place)) {
	t.Helper()
	s := &scoped{TB: t}
	defer func() {
		for _, end := range slices.Backward(s.ends) {
			end()
		}
	}()
	do(openPlace(s, root))
}

// wholeState is all that a move may change: files, record, effects and the world.
type wholeState struct {
	Commit  vcs.Commit
	Files   string // every path with mode and content
	Record  string // of the run: where it stands
	Shape   string // its branches, attempts and events
	Effects string
	World   string
}

// filesOf is every path below root with its mode and content, by nothing but the
// file system.
func filesOf(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if rel == ".retcon" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		said := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			said, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var text []byte
			text, err = os.ReadFile(path)
			said = fmt.Sprintf("%.12x", sha256.Sum256(text))
		}
		fmt.Fprintf(&b, "%s %v %s\n", rel, info.Mode(), said)
		return err
	})
	require.NoError(t, err)
	return b.String()
}

// everything is the whole state, as it is now.
func (p *place) everything(w world) (s wholeState) {
	p.t.Helper()
	s.Files, s.Commit, s.World = filesOf(p.t, p.root), p.capture().Commit, w.things()
	require.NoError(p.t, p.db.View(context.Background(), func(tx *ledger.Tx) error {
		run, err := tx.Run(1)
		if err != nil {
			return err
		}
		head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest) // verifies the root
		if err != nil {
			return err
		}
		s.Record = fmt.Sprintf("%s at %d %v\n", run.Status, head.Seq, head.Set.Root())
		sent, err := tx.Signals(1)
		if err != nil {
			return err
		}
		for _, g := range sent {
			s.Record += fmt.Sprintf("signal %d taken by %d\n", g.ID, g.Delivered)
		}
		for r := range head.Set.Rows() {
			s.Record += fmt.Sprintf("%s %v #%d iteration %d\n", r.Key, r.State, r.Attempt, r.Iter)
		}
		s.Shape = fmt.Sprintf("generation %d\n", run.Generation)
		branches, err := tx.Branches(1)
		if err != nil {
			return err
		}
		for _, b := range branches {
			if b.Op != 0 {
				return fmt.Errorf("branch %d is closed by op %d", b.ID, b.Op)
			}
			s.Shape += fmt.Sprintf("branch %s from %d to %d %v", b.State, b.BaseSeq, b.HeadSeq, b.HeadRoot)
			events, err := tx.Events(b.ID, ledger.EventQuery{From: b.BaseSeq})
			if err != nil {
				return err
			}
			for _, e := range events {
				s.Shape += " " + e.Type
			}
			s.Shape += "\n"
		}
		attempts, err := tx.Attempts(1)
		if err != nil {
			return err
		}
		for _, a := range attempts {
			s.Shape += fmt.Sprintf("%s#%d %s compensated=%v\n", a.Task, a.Number, a.Outcome, a.Compensated)
		}
		effects, err := tx.Effects(ledger.EffectQuery{Run: 1})
		if err != nil {
			return err
		}
		for _, e := range effects {
			s.Effects += fmt.Sprintf("%s %s %q\n", e.Rule, e.Status, e.Comp)
		}
		flagged, err := tx.Attention(1)
		s.Effects += fmt.Sprintf("needs attention: %v\n", len(flagged) > 0)
		return err
	}))
	return s
}

// undoing takes a thing of the world away, unless that is to fail, or is to be
// killed on the way.
func (w world) undoing(name string) sideeffect.Compensation {
	return sideeffect.Compensation{Shell: &sideeffect.Script{
		Text: `cd "$1" || exit 1
			test ! -e "lost-$2" || { sleep 0.03; kill -KILL $$; }
			test ! -e "locked-$2" || { echo locked >&2; exit 1; }
			sleep 0.005
			rm -f "$2"`, Args: []string{w.dir, name}}}
}

// work makes a run go on by one task, which changes files in every way and does
// something outside.
func (p *place) work(w world, n int) {
	p.t.Helper()
	ctx := context.Background()
	r := &checkpoint.Recorder{Ledger: p.db, Worktree: p.w, Host: "test"}
	task := fmt.Sprintf("t%d", n)
	var head *ledger.Head
	var a ledger.Attempt
	var e ledger.Effect
	p.update(func(tx *ledger.Tx) (err error) {
		run, err := tx.Run(1)
		if err != nil {
			return err
		}
		if head, err = tx.LoadFrame(run.HeadBranch, ledger.Newest); err != nil {
			return err
		}
		a, err = tx.StartAttempt(ledger.Attempt{RunID: 1, Branch: head.Branch, Task: task, StartSeq: head.Seq, Owner: p.m.Owner})
		if err != nil || n%3 == 0 {
			return err
		}
		thing := fmt.Sprintf("thing%d", n)
		e, err = tx.Intend(ledger.Effect{RunID: 1, Branch: head.Branch, Frame: head.Seq + 1, Attempt: a.ID, Task: task,
			Effect: sideeffect.Effect{Tool: "sh", Rule: thing, Class: sideeffect.Write, Compensation: w.undoing(thing)}}, false,
			func(epoch int) string { return sideeffect.Key("r1", task, thing, epoch) })
		w.make(thing)
		return err
	})
	edge := func(edge string) ledger.Checkpoint {
		c, err := r.Record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: 1, Attempt: a.ID, Edge: edge})
		require.NoError(p.t, err)
		return c.Checkpoint
	}
	before := edge(ledger.EdgeBefore)
	p.write("change", task)
	for i := range 6 {
		p.write(fmt.Sprintf("by/%s/f%d", task, i), strings.Repeat(task, 1+i*300))
	}
	p.remove(fmt.Sprintf("by/t%d", n-2))
	p.remove("link")
	require.NoError(p.t, os.Symlink(task, filepath.Join(p.root, "link")))
	p.remove("turns")
	if n%2 == 0 {
		p.write("turns", "a file")
	} else {
		p.write("turns/a", "folder "+task)
	}
	require.NoError(p.t, os.Chmod(filepath.Join(p.root, "keep"), fs.FileMode(0o644|n%8)))
	after := edge(ledger.EdgeAfter)
	p.update(func(tx *ledger.Tx) error {
		if err := tx.SetAttemptBefore(a.ID, before.ID); err != nil {
			return err
		}
		if e.ID != 0 {
			if _, err := tx.Settle(e.ID, sideeffect.Succeeded, nil); err != nil {
				return err
			}
		}
		if err := tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeOK, After: after.ID, Output: []byte(task), EndSeq: head.Seq + 1}); err != nil {
			return err
		}
		rows := []snapshot.Row{{Key: task, Kind: "sh", State: snapshot.Done, Attempt: uint32(a.Number)}, {Key: "~loop/all", Kind: "loop", Iter: uint32(n)}}
		if n%3 == 0 {
			g, err := tx.PutSignal(ledger.Signal{RunID: 1, Name: "go", Value: []byte(task), Actor: "user"})
			if err != nil {
				return err
			}
			if err := tx.MarkSignal(g.ID, head.Seq+1); err != nil {
				return err
			}
		}
		if _, err := tx.AppendFrame(head, ledger.NewFrame{Put: rows, Kind: "outcome", Checkpoint: after.ID}); err != nil {
			return err
		}
		return tx.SetRunStatus(1, ledger.OutcomeOK)
	})
}

// killScene is a worktree with a run of five tasks, some of which did something
// outside.
func killScene(t testing.TB) (root string, w world) {
	t.Helper()
	top := t.TempDir()
	root, w = filepath.Join(top, "work"), world{t.(*testing.T), filepath.Join(top, "world")}
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, os.Mkdir(w.dir, 0o755))
	within(t, root, func(p *place) {
		p.write("keep", "1")
		p.write("change", "0")
		p.update(func(tx *ledger.Tx) error {
			run, err := tx.CreateRun(ledger.Run{Source: "test", WorktreeID: p.m.WorktreeID})
			if err != nil {
				return err
			}
			head, err := tx.CreateBranch(run.ID)
			if err != nil {
				return err
			}
			start := p.capture()
			c, err := tx.AppendCheckpoint(ledger.Checkpoint{WorktreeID: p.m.WorktreeID, RunID: 1, Tier: ledger.TierTool, Commit: string(start.Commit), Tree: start.Tree, Stats: "{}"})
			if err != nil {
				return err
			}
			_, err = tx.AppendFrame(head, ledger.NewFrame{Put: []snapshot.Row{{Key: "~loop/all", Kind: "loop"}}, Kind: "outcome", Checkpoint: c.ID})
			return err
		})
		for n := range 5 {
			p.work(w, n+1)
		}
		p.write("mine", "by hand")
	})
	return root, w
}

// chosen is one step of a sequence: an edit by hand, or a move.
type chosen struct {
	edit, text string
	travel     timeline.Travel
	verb       string
	to         int64 // of a restore: a checkpoint
}

// choose is the next step from where p stands. The same rng and the same state
// choose the same.
func choose(p *place, rng *rand.Rand) (c chosen, err error) {
	if rng.IntN(4) == 0 {
		paths := []string{"change", "mine", "keep", "by/t5/f1", "by/t3/f2", fmt.Sprintf("new%d", rng.IntN(3))}
		return chosen{edit: paths[rng.IntN(len(paths))], text: fmt.Sprint("by hand ", rng.IntN(1000))}, nil
	}
	verbs := []string{"rewind", "timetravel", "revert", "retry-task", "rerun", "restore", "undo", "undo", "redo"}
	c.verb = verbs[rng.IntN(len(verbs))]
	c.travel.Request = timeline.Request{Verb: c.verb, Exact: rng.IntN(2) == 0, Conflicts: timeline.Theirs}
	err = p.db.View(context.Background(), func(tx *ledger.Tx) error {
		run, err := tx.Run(1)
		if err != nil {
			return err
		}
		head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
		if err != nil {
			return err
		}
		var tasks []string
		for r := range head.Set.Rows() {
			if r.Key[0] == 't' {
				tasks = append(tasks, r.Key)
			}
		}
		last, err := tx.LatestCheckpoint(p.m.WorktreeID)
		if err != nil {
			return err
		}
		c.to = 1 + rng.Int64N(last.ID)
		c.travel.Run, c.travel.Frame = 1, rng.Int64N(head.Seq+1)
		if len(tasks) == 0 {
			tasks = []string{"none"}
		}
		task := tasks[rng.IntN(len(tasks))]
		switch c.verb {
		case "timetravel", "retry-task":
			c.travel.Task, c.travel.Cascade = task, rng.IntN(2) == 0
		case "revert":
			c.travel.Task, c.travel.Before = task, rng.IntN(2) == 0
		case "rerun":
			c.travel.From = task
		}
		return nil
	})
	return c, err
}

// carryOut makes a step. A guard's refusal is an outcome like another.
func (c chosen) carryOut(p *place) (said string, err error) {
	ctx := context.Background()
	if c.edit != "" {
		tmp := filepath.Join(filepath.Dir(p.root), "edited")
		if err := os.WriteFile(tmp, []byte(c.text), 0o644); err != nil {
			return "", err
		}
		if err := os.Rename(tmp, filepath.Join(p.root, c.edit)); err != nil {
			return "edit refused: " + err.Error(), os.Remove(tmp) // there is no such folder now
		}
		return "edit " + c.edit, nil
	}
	var res *timeline.Result
	switch r := c.travel.Request; c.verb {
	case "undo":
		res, err = p.m.Undo(ctx, timeline.Request{Conflicts: r.Conflicts})
	case "redo":
		res, err = p.m.Redo(ctx, timeline.Request{Conflicts: r.Conflicts})
	case "restore":
		r.Target = fmt.Sprintf("c%d", c.to)
		err = p.db.View(ctx, func(tx *ledger.Tx) (err error) {
			r.To, err = tx.Checkpoint(c.to)
			return err
		})
		if err == nil {
			res, err = p.m.Move(ctx, r)
		}
	default:
		res, err = p.m.Travel(ctx, c.travel)
	}
	if err == nil {
		return fmt.Sprintf("%s: op %d, nothing to do %v", c.verb, res.Op, res.NothingToDo), nil
	}
	var conflict *timeline.ConflictError
	var point *timeline.NoPointError
	var none *timeline.NotRecordedError
	var blocked *timeline.BlockedError
	var stopped *timeline.CompensationError
	if errors.As(err, &conflict) || errors.As(err, &point) || errors.As(err, &none) || errors.As(err, &blocked) ||
		errors.As(err, &stopped) || errors.Is(err, ledger.ErrNotFound) {
		return c.verb + " refused: " + err.Error(), nil
	}
	return "", fmt.Errorf("%s: %w", c.verb, err)
}

// sequenceChild makes the steps that a seed chooses. With a file for them, it
// tells the state after each.
func sequenceChild(p *place) error {
	seed, err := strconv.ParseUint(os.Getenv("KILL_SEED"), 10, 64)
	if err != nil {
		return err
	}
	steps, err := strconv.Atoi(os.Getenv("KILL_STEPS"))
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	said := os.NewFile(3, "said")
	var tell *json.Encoder
	if path := os.Getenv("KILL_STATES"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		tell = json.NewEncoder(f)
	}
	w := world{nil, os.Getenv("KILL_WORLD")}
	var took time.Duration
	fmt.Fprintln(said, "begun")
	for range steps {
		began := time.Now()
		c, err := choose(p, rng)
		if err != nil {
			return err
		}
		did, err := c.carryOut(p)
		if err != nil {
			return err
		}
		took += time.Since(began)
		fmt.Fprintln(said, "did", did)
		if tell != nil {
			w.t = &testing.T{} // not of a test: things can't fail
			if err := tell.Encode(p.everything(w)); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(said, "took", took.Nanoseconds())
	return nil
}

// sequence is a process that makes moves, and what it has said.
type sequence struct {
	did    []string // steps that were acknowledged
	took   time.Duration
	killed bool
}

// runSequence runs verb in a process of its own, and kills it after a time unless
// that is negative.
func runSequence(t testing.TB, root, verb string, after time.Duration, env ...string) (s sequence) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), "CRASH_VERB="+verb, "CRASH_ROOT="+root), env...)
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = &errs, &errs
	cmd.WaitDelay = 5 * time.Second
	out, in, err := os.Pipe()
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{in} // whatever the process starts has it, too
	require.NoError(t, cmd.Start())
	in.Close()
	defer out.Close()
	if verb == "recover" && after >= 0 {
		time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	}
	for lines := bufio.NewScanner(out); lines.Scan(); { // to the end of all it has started
		what, rest, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "begun":
			if after >= 0 {
				time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			}
		case "did":
			s.did = append(s.did, rest)
		case "took":
			n, err := strconv.ParseInt(rest, 10, 64)
			require.NoError(t, err)
			s.took = time.Duration(n)
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		s.killed = true
		return s
	}
	require.NoError(t, err, "%s: %v\n%s", verb, s.did, errs.String())
	return s
}

// keep copies what is in directories aside, and put brings it back, into the same
// directories.
type kept struct{ dirs, copies []string }

func keep(t testing.TB, aside string, dirs ...string) (k kept) {
	t.Helper()
	for i, d := range dirs {
		to := filepath.Join(aside, fmt.Sprint(i))
		require.NoError(t, os.RemoveAll(to))
		require.NoError(t, exec.Command("cp", "-a", d, to).Run())
		k.dirs, k.copies = append(k.dirs, d), append(k.copies, to)
	}
	return k
}

func (k kept) put(t testing.TB) {
	t.Helper()
	for i, d := range k.dirs {
		entries, err := os.ReadDir(d)
		require.NoError(t, err)
		for _, e := range entries {
			require.NoError(t, os.RemoveAll(filepath.Join(d, e.Name())))
		}
		require.NoError(t, exec.Command("cp", "-a", k.copies[i]+"/.", d).Run())
	}
}

// trouble makes some of the calls that undo things fail, or die.
func (w world) trouble(rng *rand.Rand) {
	w.t.Helper()
	old, err := filepath.Glob(filepath.Join(w.dir, "*-thing*"))
	require.NoError(w.t, err)
	for _, path := range old {
		require.NoError(w.t, os.Remove(path))
	}
	for _, name := range strings.Fields(w.things()) {
		switch rng.IntN(8) {
		case 0:
			w.make("locked-" + name)
		case 1:
			w.make("lost-" + name)
		}
	}
}

// Killed at random moments, with effects that are undone, that refuse to be and
// of which nobody knows, and with recoveries that are killed as well, every move
// has either been made or not.
func TestRandomKills(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	n := *kills
	if testing.Short() {
		n = min(n, 8)
	}
	t.Logf("-timeline.seed=%d -timeline.kills=%d", seed, n)
	const each = 10
	tally := make(chan string, 4*n)
	t.Run("all", func(t *testing.T) {
		for from := 0; from < n; from += each {
			t.Run(fmt.Sprint(from), func(t *testing.T) {
				t.Parallel()
				killer{t: t, rng: rand.New(rand.NewPCG(seed, uint64(from))), tally: tally}.kill(min(each, n-from))
			})
		}
	})
	close(tally)
	counts := map[string]int{}
	for what := range tally {
		counts[what]++
	}
	t.Logf("%v", counts)
}

type killer struct {
	t     *testing.T
	rng   *rand.Rand
	tally chan string
}

func (k killer) kill(kills int) {
	t, rng := k.t, k.rng
	root, w := killScene(t)
	aside := t.TempDir()
	states := filepath.Join(aside, "states")
	round, told := 0, ""
	defer func() {
		if t.Failed() {
			t.Logf("round %d: %s", round, told)
		}
	}()
	for killed := 0; killed < kills; round++ {
		w.trouble(rng)
		if round > 0 && rng.IntN(2) == 0 {
			within(t, root, func(p *place) { p.work(w, 5+round) })
		}
		var before wholeState
		within(t, root, func(p *place) { before = p.everything(w) })
		env := []string{fmt.Sprintf("KILL_SEED=%d", rng.Uint64()), fmt.Sprintf("KILL_STEPS=%d", 1+rng.IntN(3)), "KILL_WORLD=" + w.dir}
		was := keep(t, aside, root, w.dir)
		dry := runSequence(t, root, "sequence", -1, append(env, "KILL_STATES="+states)...)
		all := append([]wholeState{before}, readStates(t, states)...)
		require.Len(t, all, len(dry.did)+1)
		was.put(t)
		at := time.Duration(rng.Int64N(int64(dry.took)*11/10 + 1))
		told = fmt.Sprintf("%v\n%q, killed after %v of %v", env, dry.did, at, dry.took)
		s := runSequence(t, root, "sequence", at, env...)
		if s.killed {
			killed++
			k.tally <- "killed"
		}
		again := 0
		for rng.IntN(3) == 0 && again < 3 {
			if runSequence(t, root, "recover", 20*time.Millisecond+time.Duration(rng.Int64N(int64(dry.took)+1)), "KILL_WORLD="+w.dir).killed {
				k.tally <- "recovery killed"
			}
			again++
		}
		runSequence(t, root, "recover", -1)
		require.Equal(t, strings.Join(dry.did[:len(s.did)], "\n"), strings.Join(s.did, "\n"), "the same moves")
		told += fmt.Sprintf(" and %d steps, recovered %d times", len(s.did), 1+again)
		within(t, root, func(p *place) { k.settled(p, w, all, dry.did, len(s.did)) })
		if t.Failed() {
			return
		}
	}
}

func readStates(t testing.TB, path string) (all []wholeState) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var s wholeState
		require.NoError(t, d.Decode(&s))
		all = append(all, s)
	}
	return all
}

// settled checks the invariants after a kill and its recovery: all are the states
// that the steps lead through, and as many steps as acked were told of.
func (k killer) settled(p *place, w world, all []wholeState, steps []string, acked int) {
	t, ctx := k.t, context.Background()
	// 1: before or after, files and record alike, and 5, the effects and the world.
	now := p.everything(w)
	at := acked
	if acked < len(steps) && now == all[acked+1] {
		at++ // the step was made, and not told of
	}
	if !assert.Equal(t, all[at], now, "neither before nor after %q", steps[min(acked, len(steps)-1)]) {
		return
	}
	if at > acked {
		k.tally <- "after"
	} else {
		k.tally <- "before"
	}
	// 2: nothing is open, closed off, leased or locked, and nothing is left behind.
	var ops []ledger.Op
	var audit []ledger.AuditRow
	require.NoError(t, p.db.View(ctx, func(tx *ledger.Tx) error {
		open, err := tx.OpenOps()
		assert.Empty(t, open)
		if err != nil {
			return err
		}
		leases, err := tx.Leases()
		assert.Empty(t, leases)
		if err != nil {
			return err
		}
		if ops, err = tx.Ops(ledger.OpQuery{}); err != nil {
			return err
		}
		audit, err = tx.AuditRows(ledger.AuditQuery{Limit: 100000})
		return err
	}))
	unlock, err := p.w.LockMove("test", time.Now())
	require.NoError(t, err)
	unlock()
	stages, _ := filepath.Glob(filepath.Join(p.w.Folder(), "worktrees", "*stage*"))
	assert.Empty(t, stages)
	// 3: what a move has replaced is in its safety checkpoint, or was rescued.
	if len(ops) > 0 && ops[0].Result == ledger.ResultOK && at > 0 && strings.Contains(steps[at-1], fmt.Sprintf("op %d,", ops[0].ID)) {
		assert.Equal(t, string(all[at-1].Commit), ops[0].Worktrees[0].Safety)
	}
	for _, op := range ops {
		if !op.Pruned {
			assert.NoError(t, p.w.Complete(ctx, vcs.Commit(op.Worktrees[0].Safety)), "op %d", op.ID)
		}
	}
	// 4 and 7 are what the ledger's own check looks for, when p is closed.
	// 5: nothing is half undone, and what is said to be undone is.
	require.NoError(t, p.db.View(ctx, func(tx *ledger.Tx) error {
		effects, err := tx.Effects(ledger.EffectQuery{Run: 1})
		for _, e := range effects {
			assert.NotEqual(t, sideeffect.Compensating, e.Comp, e.Rule)
			there := slices.Contains(strings.Fields(w.things()), e.Rule)
			if e.Comp == sideeffect.Compensated {
				assert.False(t, there, "%s was undone and is there", e.Rule)
			} else {
				assert.True(t, there, "%s is %q and not there", e.Rule, e.Comp)
			}
		}
		return err
	}))
	// 6: each operation begins once and ends once.
	told := map[string]int{}
	for _, r := range audit {
		told[fmt.Sprint(r.Op, r.Action)]++
	}
	for _, op := range ops {
		assert.Equal(t, 1, told[fmt.Sprint(op.ID, "op.begin")], "op %d", op.ID)
		assert.Equal(t, 1, told[fmt.Sprint(op.ID, "op.finish")], "op %d", op.ID)
	}
	// 8: it can be taken back, and made again.
	if at > 0 && len(ops) > 0 && ops[0].Result == ledger.ResultOK && strings.Contains(steps[at-1], fmt.Sprintf("op %d,", ops[0].ID)) {
		k.backAndForth(p, w, ops[0].Verb, all[at-1], now)
	}
	// What is needed outlives a collection.
	if k.rng.IntN(4) == 0 {
		_, err := p.w.Collect(ctx, vcs.CollectOptions{Full: true, Roots: checkpoint.Live(ctx, p.db)})
		require.NoError(t, err)
		require.NoError(t, checkpoint.Live(ctx, p.db)(func(c vcs.Commit) error { return p.w.Complete(ctx, c) }))
	}
}

// backAndForth takes the newest move back and makes it again.
func (k killer) backAndForth(p *place, w world, verb string, before, after wholeState) {
	t, ctx := k.t, context.Background()
	back, forth := p.m.Undo, p.m.Redo
	if verb == "undo" {
		back, forth = forth, back
	}
	_, err := back(ctx, timeline.Request{})
	require.NoError(t, err)
	is := p.everything(w)
	assert.Equal(t, before.Files, is.Files)
	assert.Equal(t, before.Record, is.Record)
	_, err = forth(ctx, timeline.Request{})
	require.NoError(t, err)
	is = p.everything(w)
	assert.Equal(t, after.Files, is.Files)
	assert.Equal(t, after.Record, is.Record)
	assert.Equal(t, after.World, is.World)
}
