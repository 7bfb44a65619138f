package workflow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLint(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"used as an argument", "a = sh('x')\n    sh('y', stdin=a)", ""},
		{"used in a function of its own", "a = sh('x')\n    f = lambda: a.out()\n    f()", ""},
		{"never used", "a = sh('x')", "2:5 a is never used"},
		{"assigned again", "a = sh('x')\n    a = sh('y')\n    a.out()", ""},
		{"meant to be left alone", "_a = sh('x')", ""},
		{"data is nobody's business", "a = len([1])", ""},
		{"another sh", "sh = lambda x: x\n    a = sh('x')", ""},
		{"a wait that nobody waits for", "signal('go')", "2:5 what follows does not wait for this signal"},
		{"a wait that is waited for", "signal('go').out()", ""},
		{"a list collected one by one", "l = []\n    for i in [1]:\n        l.append(sh(str(i), fx='read').out())", "4:9 the tasks of this loop run one after the other: each is waited for before the next is declared"},
		{"writers can't run side by side", "l = []\n    for i in [1]:\n        l.append(sh(str(i)).out())", ""},
		{"each turn looks at the last", "l = []\n    for i in [1]:\n        l.append(sh(str(l), fx='read').out())", ""},
		{"keyed by place", "each(range(len([1])), lambda i: i)", "2:5 the branches are keyed by their place in the list, so an item that is put in front runs all of them again"},
		{"keyed by a function", "each(enumerate([1]), lambda i: i, key=lambda p: str(p[1]))", ""},
		{"a number of times", "each(range(3), lambda i: i)", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := load("def main(ctx):\n    " + test.body + "\n")
			require.NoError(t, err)
			got := ""
			for _, f := range p.Lint() {
				got += fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Message)
			}
			assert.Equal(t, test.want, got)
		})
	}
}
