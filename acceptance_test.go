package retcon_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
)

// The acceptance tests are cases in which a tool of this kind failed somebody,
// turned around. Their names carry the number of the case in docs/coverage.md: P
// a public report, T a line of the checklist of moves, E a scenario that went
// wrong with a peer, A what that study demands.
//
// A command that Exec records plays the agent; what is edited outside it is the
// user's doing.

// TestCoverageNamesExist holds docs/coverage.md to the tests there are, and to
// having an answer for every case.
func TestCoverageNamesExist(t *testing.T) {
	there := map[string]bool{}
	tests := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	scripts := regexp.MustCompile(`\b[a-z]+\.txtar\b`)
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case strings.HasSuffix(path, ".txtar"):
			there[filepath.Base(path)] = true
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range tests.FindAllSubmatch(text, -1) {
				there[string(m[1])] = true
			}
		}
		return nil
	}))
	text, err := os.ReadFile("docs/coverage.md")
	require.NoError(t, err)
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 2 || !regexp.MustCompile(`^ *[A-Z]\d+ *$`).MatchString(cells[0]) {
			continue
		}
		number := strings.TrimSpace(cells[0])
		assert.False(t, rows[number], "%s is there twice", number)
		rows[number] = true
		if len(cells) == 2 {
			continue // of verbs that are still to come
		}
		answer := strings.TrimSpace(cells[len(cells)-1])
		assert.NotEmpty(t, answer, "%s has neither a test nor a reason", number)
		for _, name := range append(regexp.MustCompile(`\b(Test|Fuzz)\w+`).FindAllString(answer, -1), scripts.FindAllString(answer, -1)...) {
			assert.True(t, there[name], "%s: there is no %s", number, name)
		}
	}
	for prefix, last := range map[string]int{"P": 78, "E": 15, "A": 8} {
		for i := range last {
			number := fmt.Sprintf("%s%02d", prefix, i+1)
			assert.True(t, rows[number], "%s is missing", number)
		}
	}
	for i := 140; i <= 148; i++ {
		assert.True(t, rows[fmt.Sprintf("T%d", i)], "T%d is missing", i)
	}
	// And the other way round: no case is tested without a line for it.
	for name := range there {
		if m := regexp.MustCompile(`^Test([PEA]\d\d|T1\d\d)[A-Z]`).FindStringSubmatch(name); m != nil {
			assert.Contains(t, string(text), name, "%s is not named at %s", name, m[1])
		}
	}
}

// digest is what can be seen of a directory, without the git directory and the
// store at its top: the type, mode and content of every path.
func digest(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path) // both are absolute
		if rel == ".git" || rel == ".retcon" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		what := fi.Mode().String()
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(b))
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what = "link " + to
		}
		all[rel] = what
		return nil
	}))
	return all
}

func (p *place) digest() map[string]string { p.t.Helper(); return digest(p.t, p.dir) }

// gitState is what a user would miss of a repository: HEAD, index, refs, stash.
func gitState(t testing.TB, dir string) string {
	t.Helper()
	var all []string
	for _, args := range []string{"symbolic-ref -q HEAD", "ls-files -s -v", "for-each-ref", "stash list", "diff --cached", "config --local --list"} {
		all = append(all, git(t, dir, append([]string{"--no-optional-locks"}, strings.Fields(args)...)...))
	}
	return strings.Join(all, "\n--\n")
}

// newCommitted is a repository with one commit of some files, and a clean tree.
func newCommitted(t testing.TB, files ...string) *place {
	t.Helper()
	p := newRepo(t)
	for _, name := range append(files, "a.txt", "b.txt", "sub/c.txt") {
		p.write(name, name+"\n")
	}
	git(t, p.dir, "add", "-A")
	git(t, p.dir, "commit", "-qm", "first")
	return p
}

// restore puts a checkpoint back, which must succeed.
func (p *place) restore(ref retcon.Ref, paths ...string) *retcon.Result {
	p.t.Helper()
	r, err := p.Restore(ctx, retcon.RestoreOptions{Ref: ref, Paths: paths})
	require.NoError(p.t, err)
	return r
}

func (p *place) undo() *retcon.Result {
	p.t.Helper()
	r, err := p.Undo(ctx, retcon.MoveOptions{})
	require.NoError(p.t, err)
	return r
}

func (p *place) redo() *retcon.Result {
	p.t.Helper()
	r, err := p.Redo(ctx, retcon.MoveOptions{})
	require.NoError(p.t, err)
	return r
}

// refused is the code of a restore that must not succeed, nor change anything.
func (p *place) refused(o retcon.RestoreOptions) string {
	p.t.Helper()
	before := p.digest()
	_, err := p.Restore(ctx, o)
	require.Error(p.t, err)
	assert.Equal(p.t, before, p.digest(), "a restore that failed changed something")
	return code(err)
}

// shell runs a script in the worktree, as an agent's shell tool would.
func (p *place) shell(script string) {
	p.t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s: %s", script, out)
}

// agent records a script as a run of the agent's.
func (p *place) agent(script string) *retcon.ExecResult {
	p.t.Helper()
	return p.exec("agent", func() { p.shell(script) })
}

func (p *place) remove(name string) { p.t.Helper(); require.NoError(p.t, os.RemoveAll(p.path(name))) }

func (p *place) mode(name string) fs.FileMode {
	p.t.Helper()
	fi, err := os.Lstat(p.path(name))
	require.NoError(p.t, err)
	return fi.Mode()
}

func (p *place) gone(name string) {
	p.t.Helper()
	_, err := os.Lstat(p.path(name))
	assert.ErrorIs(p.t, err, fs.ErrNotExist, name)
}

// healthy looks at every object of every checkpoint.
func (p *place) healthy() {
	p.t.Helper()
	h, err := p.Doctor(ctx, retcon.DoctorOptions{Deep: true})
	require.NoError(p.t, err)
	assert.True(p.t, h.OK, "%+v", h.Checks)
	assert.Empty(p.t, h.Unrestorable)
}

// reopen opens the same workspace as another process would.
func (p *place) reopen() *place { p.t.Helper(); return openPlace(p.t, p.dir, retcon.Options{}) }

// steps are the paths that a plan changes, in order.
func steps(plan *retcon.Plan) []string {
	out := []string{}
	for _, s := range plan.Changes {
		out = append(out, s.Path)
	}
	return out
}

// kept are the paths that a plan leaves alone.
func kept(plan *retcon.Plan) []string {
	out := []string{}
	for _, n := range plan.Kept {
		out = append(out, n.Path)
	}
	return out
}

// asNobody is for tests of what a mode forbids, which mean nothing to root: for
// root it runs the test again as somebody else, and tells that it passed there.
func asNobody(t *testing.T) (passed bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	scratch, err := os.MkdirTemp("", "nobody")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(scratch) })
	require.NoError(t, os.Chmod(scratch, 0o777))
	exe := filepath.Join(scratch, "test")
	copyProgram(t, exe)
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = scratch
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Skipf("cannot run as another user: %v", err)
	}
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: "+t.Name(), string(out))
	return true
}

func copyProgram(t testing.TB, to string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	from, err := os.Open(self)
	require.NoError(t, err)
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(f, from)
	require.NoError(t, errors.Join(err, f.Close()))
}

// packs are the files of the store that hold objects.
func (p *place) packs() []string {
	p.t.Helper()
	all, err := filepath.Glob(filepath.Join(p.Folder(), "store.git", "objects", "pack", "*.pack"))
	require.NoError(p.t, err)
	slices.Sort(all)
	return all
}
