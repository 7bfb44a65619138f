package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/workflow"
)

// thirtyFive is a workflow of 35 tasks: research, a plan, ten units that are
// implemented, tested and reviewed in worktrees of their own, a merge, a test
// and the docs. Each task's result follows from what it is given and from the
// files it finds.
func thirtyFive(research, prompt, rubric, style string) string {
	return fmt.Sprintf(`
FILES = "find . -name '*.txt' | sort | xargs cat 2>/dev/null | cksum"

def agent_like(name, prompt, fx, given=""):
    return sh('echo "$P $G" | cksum; ' + FILES, name=name, fx=fx, env={"P": prompt, "G": given})

def unit(n):
    sh('echo "unit %%s: $P" > unit%%s.txt' %% (n, n), name="implement", env={"P": %q, "PLAN": PLAN[0]}).out()
    t = agent_like("test", "run", "read")
    return sh('echo "$P $G" > review%%s.txt' %% n, name="review", env={"P": %q, "G": t}).out()

PLAN = [""]

def main(ctx):
    r = sh("echo %s; true", name="research", fx="read")
    sh('echo plan > plan.txt', name="plan", env={"R": r}).out()
    each(range(10), unit)
    final = sh(FILES, name="final", fx="read").out()
    sh('echo "%s"', name="docs", fx="pure").out()
    return final
`, prompt, rubric, research, style)
}

// What an edit runs again: the table of what carrying by digest comes to. The
// dry run says so beforehand.
func TestEditInThirtyFiveTasks(t *testing.T) {
	base := [4]string{"r1", "p1", "u1", "s1"}
	for _, test := range []struct {
		name string
		edit [4]string
		want map[string]int
	}{
		{"docs style", [4]string{"r1", "p1", "u1", "s2"}, map[string]int{"docs": 1}},
		{"review rubric", [4]string{"r1", "p1", "u2", "s1"}, map[string]int{"review": 10, "merge": 1, "final": 1}},
		{"implement prompt", [4]string{"r1", "p2", "u1", "s1"},
			map[string]int{"implement": 10, "test": 10, "review": 10, "merge": 1, "final": 1}},
		{"research, with the same plan", [4]string{"r2", "p1", "u1", "s1"}, map[string]int{"research": 1, "plan": 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			r := l.start(thirtyFive(base[0], base[1], base[2], base[3]))
			require.NoError(t, r.Err)
			require.Len(t, r.Tasks, 35)
			l.ran()
			edited := thirtyFive(test.edit[0], test.edit[1], test.edit[2], test.edit[3])
			look, err := workflow.Look(ctx, l.opt, r.Run, workflow.ResumeOptions{Program: l.load(edited)})
			require.NoError(t, err)
			said := map[string]string{}
			for _, p := range look.Tasks {
				said[p.ID] = p.What
			}
			again := l.resume(r.Run, edited)
			require.NoError(t, again.Err)
			got := map[string]int{}
			for _, id := range l.ran() {
				name := id[strings.LastIndex(id, "/")+1:]
				got[strings.TrimSuffix(strings.TrimPrefix(name, "e0."), "[join]")]++
			}
			assert.Equal(t, test.want, got)
			for _, s := range again.Tasks {
				what, ok := said[s.ID]
				if s.Carried || !ok {
					continue
				}
				if what == workflow.WillKeep {
					assert.NotContains(t, test.want, s.ID, "what was said to be kept has run")
				}
			}
		})
	}
}
