package timeline_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/timeline"
)

// world is what lies outside a worktree: a file for each thing that was made
// there, and a log of the calls that take them away.
type world struct {
	t   *testing.T
	dir string
}

// undo takes a thing away, unless it is locked, or that one is to fail, to hang
// or to be killed.
func (w world) undo(name string) sideeffect.Compensation {
	return sideeffect.Compensation{Shell: &sideeffect.Script{
		Text: `echo "$2" >> "$1/calls"
			test ! -e "$1/fail-$2" || exit 1
			test ! -e "$1/hang-$2" || sleep 60
			test ! -e "$1/kill-$2" || kill -KILL $$
			test ! -e "$1/locked" && rm -f "$1/$2"`, Args: []string{w.dir, name}}}
}

func (w world) things() string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.dir, "thing*"))
	require.NoError(w.t, err)
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return strings.Join(all, " ")
}

func (w world) calls() string {
	b, _ := os.ReadFile(filepath.Join(w.dir, "calls"))
	return strings.Join(strings.Fields(string(b)), " ")
}

func (w world) make(name string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, name), nil, 0o600))
}

// effectScene is runScene in which the task b has made two things outside.
func effectScene(t *testing.T) (root string, w world) {
	t.Helper()
	root, w = runScene(t, "timetravel"), world{t, t.TempDir()}
	p := openPlace(t, root)
	p.update(func(tx *ledger.Tx) error {
		tried, err := tx.AttemptsOf(1, "b")
		if err != nil {
			return err
		}
		for _, name := range []string{"thing1", "thing2"} {
			w.make(name)
			e, err := tx.Intend(ledger.Effect{RunID: 1, Branch: tried[0].Branch, Frame: tried[0].StartSeq + 1, Attempt: tried[0].ID, Task: "b",
				Effect: sideeffect.Effect{Tool: "sh", Rule: name, Class: sideeffect.Write, Compensation: w.undo(name)}}, false,
				func(epoch int) string { return sideeffect.Key("r1", "b", name, epoch) })
			if err != nil {
				return err
			}
			if _, err := tx.Settle(e.ID, sideeffect.Succeeded, nil); err != nil {
				return err
			}
		}
		return nil
	})
	return root, w
}

// outside is what the ledger says of the two things.
func (p *place) outside() (states string, carried bool, flagged int) {
	p.t.Helper()
	require.NoError(p.t, p.db.View(context.Background(), func(tx *ledger.Tx) error {
		es, err := tx.Effects(ledger.EffectQuery{Run: 1})
		if err != nil {
			return err
		}
		for _, e := range es {
			states += fmt.Sprintf("[%s]", e.Comp)
		}
		a, err := tx.AttemptsOf(1, "b")
		if err != nil {
			return err
		}
		carried = !a[0].Compensated
		open, err := tx.Attention(1)
		flagged = len(open)
		return err
	}))
	return states, carried, flagged
}

// agree fails unless files, run, ledger and world say the same: all as before the
// move, or all as after it.
func agree(t *testing.T, root string, w world, before, after standing) {
	t.Helper()
	p := openPlace(t, root)
	now := p.standing()
	states, carried, flagged := p.outside()
	assert.Zero(t, flagged)
	switch now {
	case before:
		assert.Equal(t, "[][]", states)
		assert.True(t, carried)
		assert.Equal(t, "thing1 thing2", w.things())
		assert.Empty(t, w.calls())
	case after:
		assert.Equal(t, "[compensated][compensated]", states)
		assert.False(t, carried, "a result whose effect is undone is not taken over")
		assert.Empty(t, w.things())
	default:
		t.Fatalf("neither before nor after:\n%+v\n%+v\nbut %+v", before, after, now)
	}
}

// Killed at every point of a move that undoes what was done outside, and of its
// recovery: before the first call all goes back, from it on all goes forward.
func TestCrashEffects(t *testing.T) {
	root, w := effectScene(t)
	before := openPlace(t, root).standing()
	log := filepath.Join(t.TempDir(), "points")
	require.False(t, child(t, root, "timetravel", "", log))
	after := openPlace(t, root).standing()
	agree(t, root, w, before, after)
	require.Equal(t, "thing2 thing1", w.calls(), "newest first")
	all := points(t, log)
	begun := false
	for _, at := range all {
		begun = begun || at == "move.begun#1"
		if !begun || !strings.HasPrefix(at, "move.") && !strings.HasPrefix(at, "ledger.commit") {
			continue
		}
		t.Run(strings.ReplaceAll(at, "#", "-"), func(t *testing.T) {
			t.Parallel()
			root, w := effectScene(t)
			require.True(t, child(t, root, "timetravel", at, ""), "did not reach %s", at)
			child(t, root, "recover", "", "")
			agree(t, root, w, before, after)
		})
	}
	for _, again := range []string{"move.effect.begun#1", "move.effect.called#1", "move.effect.ended#1", "move.effect.called#2",
		"recover.compensated#1", "recover.staged#1", "move.finish#1"} {
		t.Run("recover-"+strings.ReplaceAll(again, "#", "-"), func(t *testing.T) {
			t.Parallel()
			root, w := effectScene(t)
			require.True(t, child(t, root, "timetravel", "move.effect.begun#1", ""))
			require.True(t, child(t, root, "recover", again, ""), "did not reach %s", again)
			child(t, root, "recover", "", "")
			agree(t, root, w, before, after)
			assert.Equal(t, after, openPlace(t, root).standing(), "a call may have been made")
		})
	}
}

// What recovery can't undo stops the move for good: files and record stay, and
// somebody is told.
func TestRecoverCompensationFails(t *testing.T) {
	root, w := effectScene(t)
	before := openPlace(t, root).standing()
	require.True(t, child(t, root, "timetravel", "move.effect.ended#1", ""))
	w.make("locked")
	p := openPlace(t, root)
	p.m.Alive = func(ledger.Owner) bool { return false }
	done, err := p.m.Recover(context.Background())
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.Equal(t, ledger.ResultFailed, done[0].Result)
	assert.Contains(t, done[0].Stopped, "thing1")
	assert.Equal(t, before, p.standing())
	states, _, flagged := p.outside()
	assert.Equal(t, "[compensated][failed]", states)
	assert.Equal(t, 1, flagged)
	assert.Equal(t, "thing2 thing1", w.calls())

	require.NoError(t, os.Remove(filepath.Join(w.dir, "locked")))
	require.NoError(t, travelChild(p, "timetravel"))
	assert.Equal(t, "thing2 thing1 thing1", w.calls())
	assert.Empty(t, w.things())
}

// Killed at every point of a move one of whose calls fails, hangs or is killed,
// and in its recovery, where the call does so again: files and run stay, what was
// undone is known, and when it can be undone the move goes on from there.
func TestCrashEffectsThatFail(t *testing.T) {
	for _, how := range []string{"fail", "hang", "kill"} {
		t.Run(how, func(t *testing.T) {
			const soon = "CRASH_TIMEOUT=400ms"
			scene := func(t *testing.T) (string, world) {
				root, w := effectScene(t)
				w.make(how + "-thing1")
				return root, w
			}
			root, w := scene(t)
			before := openPlace(t, root).standing()
			log := filepath.Join(t.TempDir(), "points")
			refused(t, root, "timetravel", log, soon)
			stopped := func(t *testing.T, root string, w world) {
				t.Helper()
				p := openPlace(t, root)
				require.Equal(t, before, p.standing(), "nothing was moved")
				states, _, flagged := p.outside()
				if states == "[][]" { // died before the first call
					assert.Zero(t, flagged)
					assert.Empty(t, w.calls())
					assert.Equal(t, "thing1 thing2", w.things())
				} else {
					assert.Equal(t, "[compensated][failed]", states)
					assert.Equal(t, 1, flagged)
					assert.Equal(t, "thing1", w.things())
				}
				require.NoError(t, os.Remove(filepath.Join(w.dir, how+"-thing1")))
				called := w.calls()
				require.NoError(t, travelChild(p, "timetravel"))
				assert.Empty(t, w.things())
				if called != "" {
					assert.Equal(t, called+" thing1", w.calls(), "what was undone is not undone again")
				}
			}
			stopped(t, root, w)
			begun := false
			for _, at := range points(t, log) {
				begun = begun || at == "move.begun#1"
				if !begun || !strings.HasPrefix(at, "move.") && !strings.HasPrefix(at, "ledger.commit") {
					continue
				}
				t.Run(strings.ReplaceAll(at, "#", "-"), func(t *testing.T) {
					t.Parallel()
					root, w := scene(t)
					require.True(t, child(t, root, "timetravel", at, "", soon), "did not reach %s", at)
					if strings.HasPrefix(at, "move.effect") {
						child(t, root, "recover", "move.effect.called#1", "", soon)
					}
					child(t, root, "recover", "", "", soon)
					stopped(t, root, w)
				})
			}
		})
	}
}

// refused runs verb in a process of its own, which is told no.
func refused(t *testing.T, root, verb, log string, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), "CRASH_VERB="+verb, "CRASH_ROOT="+root, "CRASH_LOG="+log), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 1, exit.ExitCode(), "%s", out)
}

// Whoever was taken over for dead does not go on undoing.
func TestCompensationIsFenced(t *testing.T) {
	root, w := effectScene(t)
	p := openPlace(t, root)
	taken := func(context.Context, sideeffect.Effect) error {
		return p.db.Commit(context.Background(), func(tx *ledger.Tx) error {
			_, err := tx.TakeOp(1, p.m.Owner)
			return err
		})
	}
	p.update(func(tx *ledger.Tx) error {
		_, err := tx.Describe(2, func(e *sideeffect.Effect) { e.Compensation = sideeffect.Compensation{Handler: "take"} })
		return err
	})
	p.m.Handlers.Go = map[string]func(context.Context, sideeffect.Effect) error{"take": taken}
	_, err := p.m.Travel(context.Background(), travels["timetravel"])
	require.ErrorIs(t, err, ledger.ErrFenced)
	assert.Empty(t, w.calls(), "the next one is not undone")
	states, _, _ := p.outside()
	assert.Equal(t, "[compensating][]", states, "nor does it say what came of this one")
	p.m.Alive = func(ledger.Owner) bool { return false }
	p.m.Handlers.Go["take"] = func(context.Context, sideeffect.Effect) error { return nil }
	done, err := p.m.Recover(context.Background())
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.Equal(t, ledger.ResultOK, done[0].Result)
	assert.Equal(t, "thing1", w.calls())
}

// A plan that was agreed to with other effects than there are now is not carried
// out.
func TestEffectsArePartOfThePlan(t *testing.T) {
	root, w := effectScene(t)
	p := openPlace(t, root)
	travel := travels["timetravel"]
	travel.Confirm = func(*timeline.Plan) (bool, error) {
		p.update(func(tx *ledger.Tx) error {
			_, err := tx.Describe(1, func(e *sideeffect.Effect) { e.Compensation = sideeffect.Compensation{NotNeeded: "it is gone"} })
			return err
		})
		return true, nil
	}
	_, err := p.m.Travel(context.Background(), travel)
	var moved *timeline.BaseMovedError
	require.ErrorAs(t, err, &moved)
	assert.Empty(t, w.calls())
}
