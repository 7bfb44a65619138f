package workflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/workflow"
)

// effects are those of the newest run, oldest first.
func (l *lab) effects() (es []ledger.Effect) {
	l.Helper()
	require.NoError(l, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		runs, err := tx.Runs(ledger.RunQuery{Limit: 1})
		if err != nil || len(runs) == 0 {
			return err
		}
		newest, err := tx.Effects(ledger.EffectQuery{Run: runs[0].ID})
		for _, e := range newest {
			es = append([]ledger.Effect{e}, es...)
		}
		return err
	}))
	return es
}

// undone is how an effect is undone, in short.
func undone(c sideeffect.Compensation) string {
	switch {
	case c.Shell != nil:
		return fmt.Sprint("sh ", c.Shell.Text, c.Shell.Args)
	case c.Command != nil:
		return strings.Join(c.Command, " ")
	case c.HTTP != nil:
		return fmt.Sprint(c.HTTP.Method, " ", c.HTTP.URL, c.HTTP.Body)
	}
	return fmt.Sprint(c.MCP, c.Handler, c.NotNeeded, c.Impossible)
}

func TestEffectsOfTasks(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"a line", `effect("echo 12", name="x", undo="tracker close {{.out}}")`, "succeeded x 12: sh tracker close \"${1}\"[{{.out}}]"},
		{"a line with quotes", `effect("echo 12", name="x", undo="close 'no {{.out}}' \"{{.key}}\"")`,
			"succeeded x 12: sh close 'no '\"${1}\"'' \"${2}\"[{{.out}} {{.key}}]"},
		{"words", `effect("echo 12", name="x", undo=["tracker", "close", "{{.out}}"])`, "succeeded x 12: tracker close {{.out}}"},
		{"a request", `effect("echo 12", name="x", undo={"url": "http://h/x", "body": {"id": "{{.out}}"}})`, "succeeded x 12: POST http://h/xmap[id:{{.out}}]"},
		{"a handler", `effect("echo 12", name="x", undo={"handler": "close"})`, "succeeded x 12: <nil>close"},
		{"nothing to undo", `effect("echo 12", name="x", undo={"not_needed": "it reads"})`, "succeeded x 12: <nil>it reads"},
		{"a command that says so", `sh("echo 12", name="x", undo="true")`, "succeeded x 12: sh true[]"},
		{"a saga's undo", `effect("echo 12", name="x", undo=lambda v: sh("true"))`, "succeeded x 12: <nil>"},
		{"JSON", `effect("echo '{\"out\": \"a\", \"n\": 12345678901234567, \"b\": true, \"l\": [1]}'", name="x", json=True)`,
			"succeeded x a 12345678901234567 true: <nil>"},
		{"it fails", `effect("exit 3", name="x").result()`, "failed x: <nil>"},
		{"it is killed", `effect("kill -9 $$", name="x").result()`, "unknown x: <nil>"},
		{"it takes too long", `effect("sleep 60", name="x", timeout=0.2).result()`, "unknown x: <nil>"},
		{"it prints something else", `effect("echo 12x", name="x", json=True).result()`, "succeeded x 12x: <nil>"},
		{"nobody is there", `http("POST", "http://127.0.0.1:1/x", name="x").result()`, "failed x: <nil>"},
		{"a request that reads", `http("GET", "http://127.0.0.1:1/x", name="x").result()`, ""},
		{"a command that is known", `sh("test a = b && npm publish || true", name="x").result()`, "unknown npm publish: …"},
		{"a command that does nothing outside", `sh("ls", name="x")`, ""},
		{"a push", `sh("false && git push", name="x").result()`, "unknown git push: …"},
		{"words that are known", `sh(["sh", "-c", "false; gh issue close 'a b'; true"], name="x").result()`, "unknown gh issue close: …"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			r := l.start("def main(ctx):\n    " + test.body + "\n")
			require.NoError(t, r.Err)
			var got []string
			for _, e := range l.effects() {
				what := strings.TrimSpace(string(e.Status) + " " + e.Rule)
				for _, f := range []string{"out", "n", "b"} {
					if v := e.Fields[f]; v != "" {
						what += " " + v
					}
				}
				got = append(got, what+": "+undone(e.Compensation))
			}
			if begin, ok := strings.CutSuffix(test.want, "…"); ok {
				require.Len(t, got, 1)
				assert.True(t, strings.HasPrefix(got[0], begin), got[0])
				return
			}
			assert.Equal(t, test.want, strings.Join(got, "\n"))
		})
	}
}

// A compensation that can't work is found when the body is run, before anything
// is done.
func TestUndoIsChecked(t *testing.T) {
	for name, undo := range map[string]string{
		"it is stored before there is an outcome": `t`,
		"a line for the shell":                    `7`,
		"it does nothing":                         `{}`,
		"a placeholder does not end":              `"close {{.out"`,
		"unknown field":                           `{"urls": "x"}`,
		"one way is enough":                       `{"handler": "a", "not_needed": "b"}`,
		"a host without placeholders":             `{"url": "http://{{.out}}/"}`,
		"shell is empty":                          `""`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			r := l.start("def main(ctx):\n    t = sh('true', name='a')\n    effect('touch ../done', name='x', undo=" + undo + ")\n")
			var bad *workflow.BodyError
			require.ErrorAs(t, r.Err, &bad)
			assert.Contains(t, bad.Message, name)
			assert.NoFileExists(t, filepath.Join(filepath.Dir(l.root), "done"))
		})
	}
}

// T118: what undoes an effect is not part of what the task is: an edit of it
// keeps the result, and what was stored.
func TestT118UndoIsNoPartOfATask(t *testing.T) {
	l := newLab(t)
	body := func(undo string) string {
		return "def main(ctx):\n    effect('echo 1', name='x', undo='" + undo + "').out()\n    sh('test -e fixed', name='y').out()\n"
	}
	r := l.start(body("one"))
	require.Error(t, r.Err)
	l.write("fixed", "")
	l.ran()
	require.NoError(t, l.resume(r.Run, body("two")).Err)
	assert.Equal(t, []string{"y"}, l.ran())
	assert.Equal(t, "one", l.effects()[0].Compensation.Shell.Text)
}

// T109, T110: whenever the process dies, what is in the world is in the ledger,
// and the run comes to its end with one thing made, under one key.
func TestT110KilledAroundAnEffect(t *testing.T) {
	const body = `
def main(ctx):
    sh("echo 1 > a", name="a").out()
    effect("mkdir -p $COUNT.d; touch $COUNT.d/$(echo $RETCON_EFFECT_KEY | tr / _); echo 7", name="send", undo="true {{.out}}").out()
    sh("echo 2 > b", name="b").out()
`
	all := t.TempDir()
	root, passed := filepath.Join(all, "work"), filepath.Join(all, "passed")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.False(t, kill(t, root, filepath.Join(all, "count"), 0, "", "KILL_PASSED="+passed, "KILL_BODY="+body))
	b, err := os.ReadFile(passed)
	require.NoError(t, err)
	var points int
	_, err = fmt.Sscan(string(b), &points)
	require.NoError(t, err)
	require.Greater(t, points, 20)
	made := func(count string) int {
		things, _ := filepath.Glob(count + ".d/*")
		return len(things)
	}
	between := 0
	for at := 1; at <= points; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			dir := t.TempDir()
			root, count := filepath.Join(dir, "work"), filepath.Join(dir, "count")
			require.NoError(t, os.Mkdir(root, 0o755))
			if !kill(t, root, count, at, "", "KILL_BODY="+body) {
				return
			}
			l := openLab(t, root)
			l.opt.Env = append(l.opt.Env, "COUNT="+count)
			l.opt.Alive = func(ledger.Owner) bool { return false }
			require.NoError(t, l.interrupt())
			if es := l.effects(); made(count) > 0 || len(es) > 0 {
				require.Len(t, es, 1)
				if es[0].Status == sideeffect.Unknown {
					between++
				} else {
					assert.Equal(t, sideeffect.Succeeded, es[0].Status)
					assert.Equal(t, 1, made(count))
				}
			}
			if len(l.effects()) == 0 {
				return // the rest is TestKilledAtEveryEvent's
			}
			_, err := workflow.Resume(ctx, l.opt, 1, workflow.ResumeOptions{})
			if err != nil {
				require.ErrorAs(t, err, new(*workflow.FinishedError))
			}
			es := l.effects()
			require.Len(t, es, 1)
			assert.Equal(t, sideeffect.Succeeded, es[0].Status)
			assert.Equal(t, "7", es[0].Fields["out"])
			assert.Equal(t, 1, made(count), "the key is the same")
		})
	}
	assert.Positive(t, between, "no kill was in the middle")
}

// What somebody says of an effect while it goes on stands.
func TestEffectSettledByHand(t *testing.T) {
	l := newLab(t)
	l.opt.On = func(p workflow.Progress) {
		if p.Line == "ready" {
			assert.NoError(t, l.opt.Ledger.Update(ctx, func(tx *ledger.Tx) error {
				_, err := tx.Settle(1, sideeffect.Succeeded, nil)
				return err
			}))
			l.write("../go", "")
		}
	}
	r := l.start("def main(ctx):\n    effect('echo ready; until test -e ../go; do sleep 0.01; done; exit 3', name='x').result()\n")
	require.NoError(t, r.Err)
	assert.Equal(t, sideeffect.Succeeded, l.effects()[0].Status)
}

// A call that may have arrived is not taken for failed because the same call,
// made again, is refused.
func TestUnknownStays(t *testing.T) {
	l := newLab(t)
	body := "def main(ctx):\n    effect('test -e first && exit 3; touch first; kill -9 $$', name='x', fx='write', undo='true', retry={\"max\": 2, \"keep_files\": True}).result()\n"
	require.NoError(t, l.start(body).Err)
	es := l.effects()
	require.Len(t, es, 1)
	assert.Equal(t, sideeffect.Unknown, es[0].Status)
}
