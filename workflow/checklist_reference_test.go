package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What docs/workflows.md says of the builtins, tried.
func TestReference(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"pure finds no files", `sh("ls | wc -l", fx="pure").out()`, "0"},
		{"read finds them", `sh("ls", fx="read").out()`, "here"},
		{"a list is no shell line", `sh(["echo", "$HOME"], fx="read").out()`, "$HOME"},
		{"named by its first word", `sh("/bin/echo x", fx="read").id.split("~")[0]`, "echo"},
		{"any exit", `sh("echo o; echo e >&2; exit 3", any_exit=True).out()`, "{exit:3,stderr:e,stdout:o}"},
		{"json", `sh("echo '[1, 2.5]'", json=True).out()`, "[1,2.5]"},
		{"stdin and dir", `[sh("mkdir -p sub").out(), sh("cat > f; pwd | sed 's/.*work.//'", stdin="x", dir="sub").out()]`, "[,sub]"},
		{"no dir above", `sh("true", dir="..").result()["error"]["type"]`, "start"},
		{"schema", `sh("echo 3", json=True, schema={"type": "string"}).result()["error"]["type"]`, "schema"},
		{"not json", `sh("echo x", json=True).result()["error"]["type"]`, "output"},
		{"too long", `sh("head -c 9000000 /dev/zero").result()["error"]["code"]`, "truncated"},
		{"signal as code", `sh("kill -9 $$").result()["error"]["code"]`, "SIGKILL"},
		{"no such agent here", `agent("a", prompt="x", env={"PATH": "/nowhere"}).result()["error"]["type"]`, "start"},
		{"upstream", `sh("echo", env={"X": sh("exit 1")}).result()["error"]["type"]`, "upstream"},
		{"fail in pure", `pure(lambda: fail("no")).result()["error"]["type"]`, "fail"},
		{"error in pure", `pure(lambda: 1 // 0).result()["error"]["type"]`, "error"},
		{"pure", `pure(lambda a, b: a + b, 1, sh("echo 2", json=True)).out()`, "3"},
		{"fallback is a value", `sh("exit 1", fallback={"a": 1}).out()`, "{a:1}"},
		{"race of failures", `race([sh("exit 1", name="a"), sh("exit 2", name="b")]).result()["error"]["type"]`, "race"},
		{"loop", `loop(lambda i: "at %d" % i if i == 2 else None)`, "at 2"},
		{"parallel of a list", `parallel([lambda: 1, lambda: 2])`, "[1,2]"},
		{"each of a task", `each(sh("echo '[1, 2]'", json=True, fx="read"), lambda n: n * 2)`, "[2,4]"},
		{"not merged", `[parallel({"a": lambda: sh("echo x > left").out()}, merge=False)["a"], sh("ls", fx="read").out()]`, "[,here]"},
		{"merged", `[parallel({"a": lambda: sh("echo x > left").out()})["a"], sh("ls", fx="read").out()]`, "[,here\nleft]"},
		{"once gives the value", `once("x", lambda: sh("echo sent"))`, "sent"},
		{"checkpoint gives the label", `checkpoint("here")`, "here"},
		{"no RETCON_ but what the run says", `sh("echo $RETCON_TOKEN.$RETCON_RUN.$RETCON_ATTEMPT", fx="read").out()`, ".r1.1"},
		{"one is not one point nought", `[1 == 1.0, sh("true", name="t", env={"A": 1}).id == sh("true", name="t", env={"A": 1.0}).id]`, "[true,false]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.write("here", "")
			r := l.start("def main(ctx):\n    return " + test.body + "\n")
			require.NoError(t, r.Err)
			assert.Equal(t, test.want, shownValue(r.Value))
		})
	}
}

// Branches that have changed the same lines are not merged, and what could not
// be is named.
func TestReferenceConflict(t *testing.T) {
	l := newLab(t)
	l.write("f", "one\n")
	r := l.start(`
def main(ctx):
    parallel({"a": lambda: sh("echo a > f").out(), "b": lambda: sh("echo b > f").out()})
`)
	assert.Equal(t, "failed", r.Status)
	assert.ErrorContains(t, r.Err, "branches changed the same: f")
	assert.Equal(t, "one\n", l.file("f"))
}

// What decides whether a task is kept, and what does not.
func TestReferenceKept(t *testing.T) {
	before := `
def main(ctx):
    sh("echo x > x", name="a", retry=1, timeout="1m").out()
    sh("cat x", name="b", fx="read", env={"E": "1"}).out()
`
	for _, test := range []struct {
		name, after string
		ran         []string
	}{
		{"retry and timeout", `
def main(ctx):
    sh("echo x > x", name="a", retry=5, timeout="2m", fallback="f", cache="1h").out()
    sh("cat x", name="b", fx="read", env={"E": "1"}).out()
`, nil},
		{"a key", `
def main(ctx):
    sh("echo x > x", name="a", key="k").out()
    sh("cat x", name="b", fx="read", env={"E": "1"}).out()
`, nil},
		{"into a branch", `
def main(ctx):
    sh("echo x > x", name="a").out()
    parallel({"p": lambda: sh("cat x", name="b", fx="read", env={"E": "1"}).out()})
`, nil},
		{"env", `
def main(ctx):
    sh("echo x > x", name="a").out()
    sh("cat x", name="b", fx="read", env={"E": "2"}).out()
`, []string{"b"}},
		{"other files, the same text", `
def main(ctx):
    sh("echo x > x; touch y", name="a").out()
    sh("cat x", name="b", fx="read", env={"E": "1"}).out()
`, []string{"a", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			r := l.start(before)
			require.NoError(t, r.Err)
			l.ran()
			r = l.resume(r.Run, test.after)
			require.NoError(t, r.Err)
			assert.Equal(t, test.ran, l.ran())
		})
	}
}
