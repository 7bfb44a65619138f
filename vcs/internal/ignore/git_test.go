package ignore

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A world is a worktree as far as ignore rules see it.
type world struct {
	fold     bool
	excludes string            // core.excludesFile
	info     string            // info/exclude
	files    map[string]string // contents of .gitignore by directory, "" the root
	paths    []string          // to ask about; a final slash marks a directory
}

const (
	excludesName = ".git/excludes"
	infoName     = ".git/info/exclude"
)

// An answer is one line of `git check-ignore -v`.
type answer struct {
	Decision Decision
	Rule     Rule
}

func (a answer) String() string {
	return fmt.Sprintf("%s by %s:%d:%q", a.Decision, a.Rule.Source, a.Rule.Line, a.Rule.Pattern)
}

// ours walks down to each path the way a walker of the worktree does.
func (w world) ours() []answer {
	root := Root(Options{FoldCase: w.fold},
		Source{excludesName, []byte(w.excludes)}, Source{infoName, []byte(w.info)},
	).WithFile([]byte(w.files[""]))
	var out []answer
	for _, p := range w.paths {
		p, isDir := strings.CutSuffix(p, "/")
		names := strings.Split(p, "/")
		c := root
		for i, name := range names[:len(names)-1] {
			if c.Match(name, true) == Ignored {
				c = c.EnterIgnored(name)
			} else {
				c = c.Enter(name, []byte(w.files[strings.Join(names[:i+1], "/")]))
			}
		}
		d, r := c.Explain(names[len(names)-1], isDir)
		if got := c.Match(names[len(names)-1], isDir); got != d {
			panic(fmt.Sprintf("BUG: Match says %v, Explain %v", got, d))
		}
		out = append(out, answer{d, r})
	}
	return out
}

// gits asks git, in a fresh repository under dir.
func (w world) gits(t fataler, dir string) []answer {
	write := func(name, data string) {
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		must(t, os.WriteFile(name, []byte(data), 0o666))
	}
	write(".git/HEAD", "ref: refs/heads/main\n")
	write(".git/config", fmt.Sprintf("[core]\n\tignoreCase = %v\n\texcludesFile = %s\n", w.fold, excludesName))
	write(excludesName, w.excludes)
	write(infoName, w.info)
	for _, d := range []string{".git/objects", ".git/refs"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o777))
	}
	for _, d := range slices.Sorted(maps.Keys(w.files)) {
		write(path.Join(d, ".gitignore"), w.files[d])
	}
	var stdin bytes.Buffer
	for _, p := range w.paths {
		name, isDir := strings.CutSuffix(p, "/")
		if !isDir {
			p = path.Dir(name)
		}
		must(t, os.MkdirAll(filepath.Join(dir, p), 0o777))
		stdin.WriteString(name + "\x00")
	}
	cmd := exec.Command("git", "check-ignore", "-v", "-n", "-z", "--no-index", "--stdin")
	cmd.Dir, cmd.Stdin = dir, &stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/.git", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	stdout, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: no path is ignored
		t.Fatalf("%v: %s\n%+v", err, stderr.String(), w)
	}
	fields := strings.Split(strings.TrimSuffix(string(stdout), "\x00"), "\x00")
	if len(fields) != 4*len(w.paths) {
		t.Fatalf("git answers with %d fields for %d paths: %s\n%+v", len(fields), len(w.paths), stderr.String(), w)
	}
	var out []answer
	for i := range w.paths {
		f := fields[4*i : 4*i+4]
		var a answer
		if f[0] != "" {
			line, err := strconv.Atoi(f[1])
			must(t, err)
			a = answer{Ignored, Rule{f[0], line, f[2]}}
			if strings.HasPrefix(f[2], "!") {
				a.Decision = Included
			}
		}
		out = append(out, a)
	}
	return out
}

// requireSame compares our answers with git's, and returns ours.
func requireSame(t fataler, w world, dir string) []answer {
	git, our := w.gits(t, dir), w.ours()
	for i, p := range w.paths {
		if git[i] != our[i] {
			t.Fatalf("%q\n git: %v\nours: %v\n%+v", p, git[i], our[i], w)
		}
	}
	return our
}

// Before 2.52 git compared the pattern's literal start by itself and then took
// "**" for the start of the pattern; see the package documentation.
var (
	prefixQuirk = sync.OnceValue(func() bool {
		dir, err := os.MkdirTemp("", "ignore")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		w := world{files: map[string]string{"": "foo**/bar\n"}, paths: []string{"foobar"}}
		return w.gits(panicker{}, dir)[0].Decision == Ignored
	})
	quirky = regexp.MustCompile(`(?s)^!?[^*?\[\\]*[^*?\[\\/]\*\*+(/|\\/|$)`)
)

// agreed returns the rule, or one in its place where this git is known to differ.
func agreed(rule string) string {
	if prefixQuirk() && quirky.MatchString(rule) {
		return "a*"
	}
	return rule
}

// A fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Fatalf(format string, args ...any)
}

func must(t fataler, err error) {
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// panicker is a fataler outside a test.
type panicker struct{}

func (panicker) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
