package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// said is what one command line left behind.
type said struct {
	code     int
	out, err string
}

func run(t *testing.T, env Env, line ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(append([]string{"retcon"}, line...), strings.NewReader(""), &out, &errs, env)
	return said{code, out.String(), errs.String()}
}

// Flags and arguments arrive, in whatever order they were written.
func TestLine(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		line string // words separated by blanks; _ is an empty word
		want probed
	}{
		{"flags first", "probe --label x -n 3 r1", probed{Args: []string{"r1"}, Label: "x", N: 3}},
		{"flags last", "probe r1 --label x -n 3 --yes", probed{Args: []string{"r1"}, Label: "x", N: 3, Yes: true}},
		{"flags between", "probe r1 -n 3 a --yes b", probed{Args: []string{"r1", "a", "b"}, N: 3, Yes: true}},
		{"with an equals sign", "probe r1 --label=x=y -n=3", probed{Args: []string{"r1"}, Label: "x=y", N: 3}},
		{"one dash for a long name", "probe r1 -label x", probed{Args: []string{"r1"}, Label: "x"}},
		{"an alias", "p r1 -m x --number 4", probed{Args: []string{"r1"}, Label: "x", N: 4}},
		{"a switch turned off", "probe r1 --yes=false", probed{Args: []string{"r1"}}},
		{"a value that looks like a flag", "probe r1 --label --yes", probed{Args: []string{"r1"}, Label: "--yes"}},
		{"shared flags after the command", "probe r1 --quiet", probed{Args: []string{"r1"}, Quiet: true}},
		{"shared flags before the command", "--quiet probe r1", probed{Args: []string{"r1"}, Quiet: true}},
		{"a shared flag with a value", "probe r1 -C " + dir, probed{Args: []string{"r1"}, Dir: dir}},
		{"nothing is a flag behind --", "probe -- r1 --yes -n", probed{Args: []string{"r1", "--yes", "-n"}}},
		{"flags before --", "probe r1 --yes -- --quiet", probed{Args: []string{"r1", "--quiet"}, Yes: true}},
		{"a second -- is an argument", "probe r1 -- a -- b", probed{Args: []string{"r1", "a", "--", "b"}}},
		{"a dash is an argument", "probe - -n 1", probed{Args: []string{"-"}, N: 1}},
		{"a negative number is an argument", "probe r1 -5 --yes", probed{Args: []string{"r1", "-5"}, Yes: true}},
		{"unless there is such a flag", "probe r1 -1", probed{Args: []string{"r1"}, One: true}},
		{"a negative number is a value", "probe r1 -n -3", probed{Args: []string{"r1"}, N: -3}},
		{"an empty argument", "probe r1 _", probed{Args: []string{"r1", ""}}},
		{"an argument with the name of a command", "probe help version", probed{Args: []string{"help", "version"}}},
		{"an argument with the name of a flag", "probe json --yes", probed{Args: []string{"json"}, Yes: true}},
		{"commas survive", `probe r1 -i {"a":1,"b":2}`, probed{Args: []string{"r1"}, I: `{"a":1,"b":2}`}},
		{"commas survive in lists", "probe r1 --only a,b --only c", probed{Args: []string{"r1"}, Only: []string{"a,b", "c"}}},
		{"a command of a group", "group log -n 2", probed{Args: []string{"group log"}, N: 2}},
		{"its flag before its name", "group --quiet log", probed{Args: []string{"group log"}}},
		{"its argument before its flag", "group show 3 --quiet", probed{Args: []string{"3"}}},
		{"another program's line", "wrap -- claude -p hi -m x --help", probed{Args: []string{"claude", "-p", "hi", "-m", "x", "--help"}}},
		{"without --", "wrap -m x claude -p hi -m y --version", probed{Args: []string{"claude", "-p", "hi", "-m", "y", "--version"}, Label: "x"}},
		{"with -- in it", "wrap sh -c -- x", probed{Args: []string{"sh", "-c", "--", "x"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			words := strings.Fields(test.line)
			for i := range words {
				if words[i] == "_" {
					words[i] = ""
				}
			}
			got := run(t, Env{}, append([]string{"--json"}, words...)...)
			require.Equal(t, 0, got.code, got.err)
			test.want.JSON = !strings.HasPrefix(test.line, "group show")
			var v probed
			require.NoError(t, json.Unmarshal([]byte(got.out), &v))
			assert.Equal(t, test.want, v)
			assert.Empty(t, got.err)
		})
	}
}

// What makes no sense is a usage error: one line, a hint that can be pasted,
// nothing on stdout, exit code 64.
func TestMisuse(t *testing.T) {
	for _, test := range []struct{ name, line, message, hint string }{
		{"unknown command", "porbe r1", `"porbe" is not a command`, "retcon probe"},
		{"the beginning of a command", "comp", `"comp" is not a command`, "retcon completion"},
		{"nothing like a command", "xyzzy", `"xyzzy" is not a command`, "retcon --help"},
		{"unknown command, help wanted", "xyzzy --help", `"xyzzy" is not a command`, "retcon --help"},
		{"unknown command of a group", "group lgo", `"lgo" is not a command of retcon group`, "retcon group log"},
		{"a group alone", "group", "retcon group needs one of: log, show", "retcon group --help"},
		{"unknown flag", "probe r1 --lable x", "retcon probe has no flag --lable", "retcon probe --label"},
		{"unknown shared flag", "--jsno probe r1", "retcon probe has no flag --jsno", "retcon probe --json"},
		{"nothing like a flag", "probe r1 --xyzzy=3", "retcon probe has no flag --xyzzy", "retcon probe --help"},
		{"a missing value", "probe r1 --label", "--label needs a value", "retcon probe --help"},
		{"a value of the wrong kind", "probe r1 -n x", `invalid value "x" for flag -n: parse error`, "retcon probe --help"},
		{"a missing argument", "probe --yes", "retcon probe: <run> is missing", "retcon probe --help"},
		{"a missing program", "exec", "retcon exec: <program> is missing", "retcon exec --help"},
		{"a number too small", "op log --limit 0", "--limit is at least 1, not 0", ""},
		{"no number of an operation", "undo last", `"last" is not the number of an operation`, "retcon op log"},
		{"no such side", "undo --conflicts ours", `--conflicts is theirs or mine, not "ours"`, ""},
		{"two forms of a difference", "diff --stat --patch", "--stat, --patch and --name-only exclude each other", ""},
		{"no such tier", "snapshots --tier hand", `there is no tier "hand", only manual, tool, watch, safety, rescue`, ""},
		{"a budget that is no size", "gc --budget much", `--budget: "much" is not a size such as 20MiB`, ""},
		{"a setting of the wrong kind", "config set keep_tools 3", `keep_tools: "3" is not a duration such as 500ms, 10s or 720h`, "retcon config set --help"},
		{"a setting with two values", "config set max_file 1 2", "max_file: takes one value", "retcon config set --help"},
		{"a missing argument of a group's command", "group show", "retcon group show: <operation> is missing", "retcon group show --help"},
		{"an argument too many", "version now", `retcon version: unexpected argument "now"`, "retcon version --help"},
		{"no such help", "help xyzzy", `"xyzzy" is not a command`, "retcon --help"},
		{"no such shell", "completion tcsh", `no completion for "tcsh", only for bash, zsh and fish`, "retcon completion bash"},
		{"a contradiction", "version --color --no-color", "--color and --no-color exclude each other", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := "retcon: " + test.message + "\n"
			hints := []string{}
			if test.hint != "" {
				want += "hint: " + test.hint + "\n"
				hints = append(hints, test.hint)
			}
			got := run(t, Env{}, strings.Fields(test.line)...)
			assert.Equal(t, said{64, "", want}, got)

			got = run(t, Env{}, append([]string{"--json"}, strings.Fields(test.line)...)...)
			assert.Equal(t, 64, got.code)
			assert.Empty(t, got.out)
			var doc struct{ Error failure }
			require.NoError(t, json.Unmarshal([]byte(got.err), &doc), got.err)
			assert.Equal(t, failure{Code: "USAGE", Message: test.message, Hints: hints}, doc.Error)
		})
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name string
		line string
		code int
		err  string
	}{
		{"an error of the system cannot drive the terminal", "fails", 1, "retcon: open evil?[2J: permission denied\nhint: retcon doctor\n"},
		{"a wrapped failure keeps its code and hints", "locked", 5, "retcon: run \"r7\" is locked by pid 4121\nhint: retcon recover r7\n"},
		{"a child's code is not ours", "child 42", 1, "retcon: exit status 42\n"},
		{"nor is 2", "child 2", 1, "retcon: exit status 2\n"},
		{"a negative answer says nothing more", "answers 1", 1, ""},
		{"a code passed on", "answers 3", 3, ""},
		{"but never 2", "answers 2", 1, ""},
		{"a panic", "panics", 1, "retcon: BUG: out of cheese\nhint: run it again with RETCON_DEBUG=1 and report what it prints: https://github.com/retcon-dev/retcon/issues\n"},
		{"no terminal to ask on", "ask", 4, "retcon: throw it away? there is no terminal to ask on\nhint: retcon ask --yes\n"},
		{"a directory that is not there", "-C /does/not/exist version", 3, "retcon: -C /does/not/exist: no such directory\n"},
		{"a relative directory and no current one", "-C x version", 3, "retcon: the current directory is gone\nhint: cd /\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, said{test.code, "", test.err}, run(t, Env{}, strings.Fields(test.line)...))
		})
	}
}

func TestPanicShowsItsStackWhenAsked(t *testing.T) {
	debug := Env{Getenv: func(k string) string { return map[string]string{"RETCON_DEBUG": "1"}[k] }}
	got := run(t, debug, "panics")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "probe_test.go:")
}

func TestInterrupt(t *testing.T) {
	assert.Equal(t, said{130, "waiting\n", "retcon: interrupted\n"}, run(t, Env{}, "wait"))
}

// Help is an answer: on stdout when it was asked for, and then only.
func TestHelp(t *testing.T) {
	for _, line := range []string{"probe --help", "probe -h", "--help probe", "help probe", "probe r1 --yes --help", "probe --help --label"} {
		got := run(t, Env{}, strings.Fields(line)...)
		assert.Equal(t, 0, got.code, line)
		assert.Empty(t, got.err, line)
		assert.Contains(t, got.out, "usage: retcon probe <run> [<path>...] [--flag...]\n", line)
		assert.Contains(t, got.out, "  --label, -m <run>     a <run> to name\n", line)
		assert.Contains(t, got.out, "64 usage", line)
		assert.NotContains(t, got.out, "looks like a number", "hidden flags stay hidden")
	}
	for _, line := range []string{"", "help", "--help", "-h"} {
		got := run(t, Env{}, strings.Fields(line)...)
		assert.Equal(t, 0, got.code, line)
		assert.Contains(t, got.out, "usage: retcon <command>", line)
		assert.Contains(t, got.out, "  completion", line)
		assert.NotContains(t, got.out, completeName, line)
	}
	got := run(t, Env{}, "group", "--help")
	assert.Contains(t, got.out, "usage: retcon group <command> [--flag...]")
	assert.Contains(t, got.out, "  show  another\n")

	got = run(t, Env{}, "version", "--help", "--json")
	var doc usage
	require.NoError(t, json.Unmarshal([]byte(got.out), &doc))
	assert.Equal(t, "retcon version", doc.Synopsis)
}

// Whatever the words, there is an answer or an error, never a panic and never
// exit code 2.
func FuzzMain(f *testing.F) {
	f.Add("probe r1 -n 3 --json -- -x")
	f.Add("group -- log")
	f.Add("op log --limit 0")
	f.Add("config set max_file x")
	f.Add("--json=maybe -C=/ probe -1 - -- --")
	f.Add("__complete -- probe -n")
	f.Add("= -= --= ---a -\x00")
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		for _, w := range words {
			switch w {
			case "panics", "child", "wait", "answers", "exec", "watch", "-C":
				t.Skip() // they do as they are told
			}
		}
		got := run(t, Env{}, words...)
		switch got.code {
		case exitDone, exitFailed, exitNotFound, exitRefused, exitLocked, exitUsage:
		default:
			t.Fatalf("exit code %d\n%s", got.code, got.err)
		}
		if strings.Contains(got.err, "BUG") {
			t.Fatal(got.err)
		}
		if got.code != 0 && got.out != "" {
			t.Fatalf("an error and an answer: %q %q", got.out, got.err)
		}
	})
}
