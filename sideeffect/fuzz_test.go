package sideeffect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"
)

// No line breaks the reader, what is known before a call is known after, and
// every effect can be stored.
func FuzzRecognise(f *testing.F) {
	for _, s := range stories(f) {
		f.Add(s.command, "https://github.com/o/n/issues/1\n", 0)
	}
	f.Add("`\\``gh issue create`\\``", "", 1)
	f.Add("a=$a$a; a=$a$a; $a", "", 0)
	f.Add("for ((;;)) { gh; }", "", 0)
	f.Add("env -S env -S env env env sudo", "", 0)
	f.Fuzz(func(t *testing.T, command, output string, exit int) {
		before := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: command})
		after := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: command, Output: output, Exit: &exit})
		require.Equal(t, lines(before), lines(after))
		for i, e := range after {
			require.NoError(t, e.Compensation.Validate())
			require.NotEmpty(t, e.Rule)
			require.Equal(t, before[i].Command, e.Command)
			require.NotEqual(t, Intended, e.Status)
		}
	})
}

// The reader meets every program that stands in a script, wherever it stands.
func FuzzEveryProgram(f *testing.F) {
	for _, s := range stories(f) {
		f.Add(s.command)
	}
	f.Add("a=(x $(gh a)) b[$(gh b)]=1; let c=$(gh c); ((d=$(gh d))); coproc gh e; select f in $(gh f); do gh g; done; for ((h=$(gh h);;)); do gh i; done")
	f.Add("cat <<< $(gh a) <<E > $(gh b)\n${c:-$(gh c)} ${d/$(gh d)/x} ${e[$(gh e)]} ${f:$(gh f)}\nE")
	f.Fuzz(func(t *testing.T, script string) {
		file, err := parse(script)
		if err != nil {
			return
		}
		want := 0
		syntax.Walk(file, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == "gh" {
				want++
			}
			return true
		})
		found, _, err := read(script)
		require.NoError(t, err)
		got := 0
		for _, inv := range found {
			if inv.argv[0].text == "gh" {
				got++
			}
		}
		require.GreaterOrEqual(t, got, want)
	})
}

// No line takes long, and what would take longer is not read but looked at.
func TestLongLines(t *testing.T) {
	long := func(first, unit string) string { return first + strings.Repeat(unit, (64<<10)/len(unit)) }
	for name, line := range map[string]string{
		"effects":       long("", "gh issue create -t x; "),
		"pipes":         long("", "a | "),
		"lists":         long("", "a && "),
		"subshells":     long("", "(a) "),
		"open brackets": long("", "("),
		"substitution":  long("", "$("),
		"quoted":        long("", "\"$("),
		"hidden":        long("", "( \")\" "),
		"backquotes":    long("", "`"),
		"clauses":       long("", "if "),
		"defaults":      long("", "${x:-"),
		"arithmetic":    long("", "$(("),
		"here":          long("", "cat <<E\n$(gh issue create)\nE\n"),
		"shells":        long("", "bash -c 'gh issue create' ; "),
		"words":         long("x=0123456789abcdef; a ", "x $x "),
		"wrappers":      long("", "env sudo "),
		"curl":          long("curl ", "-d x --next "),
		"machines":      long("", "ssh h "),
		"more machines": long("", "ssh h kubectl exec $x -- "),
		"documents":     long("", "$(cat <<E | x\n"),
		"closed":        long("", "$(cat <<E | x\n)\nE\n"),
		"noise":         long("", "' \" \\ "),
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			effects := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: line, Output: strings.Repeat("https://github.com/o/n/issues/1\n", 1000)})
			assert.Less(t, time.Since(begun), 10*time.Second, "%d effects", len(effects))
		})
	}
	doubled := "a0=0123456789abcdef; "
	for i := range 20 {
		doubled += fmt.Sprintf("a%d=$a%d$a%d; ", i+1, i, i)
	}
	found, _, err := read(doubled + "gh $a20")
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.True(t, found[0].argv[1].unknown(), "%d bytes", len(found[0].argv[1].text))
	found, _, err = read("a=x; b=$a$a; gh $b")
	require.NoError(t, err)
	assert.Equal(t, "xx", found[0].argv[1].text)
	huge := "gh issue create\n" + strings.Repeat("x", maxLine)
	assert.Equal(t, []string{"maybe gh, in a line that can't be read"}, lines(Rules{}.Recognise(ToolCall{Command: huge})))
	documents := strings.Repeat("$(cat <<E | x\n", 100) + strings.Repeat("\nE\n)", 100)
	begun := time.Now()
	_, _, err = read(documents)
	require.NoError(t, err)
	assert.Less(t, time.Since(begun), 10*time.Second, "each document is read once")
	deep := strings.Repeat("(", maxNesting+1) + "gh issue create" + strings.Repeat(")", maxNesting+1)
	assert.Equal(t, []string{"maybe gh, in a line that can't be read"}, lines(Rules{}.Recognise(ToolCall{Command: deep})))
	nested := "gh issue create"
	for range maxScripts + 1 {
		nested = "bash -c " + typed(nested)
	}
	assert.Equal(t, []string{"maybe gh, in a line that can't be read"}, lines(Rules{}.Recognise(ToolCall{Command: nested})))
}
