package repo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// git is the oracle: real repositories, with no configuration but their own
// and a fixed clock and author.
type git struct {
	t    *testing.T
	dir  string
	home string
}

// newGit makes an empty repository on branch main.
func newGit(t *testing.T, initArgs ...string) git {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	g := git{t: t, dir: filepath.Join(base, "work"), home: filepath.Join(base, "home")}
	require.NoError(t, os.MkdirAll(g.dir, 0o755))
	require.NoError(t, os.MkdirAll(g.home, 0o755))
	g.run(append([]string{"init", "-q", "-b", "main"}, initArgs...)...)
	return g
}

// at returns the same git, run in another directory, relative or absolute.
func (g git) at(dir string) git {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(g.dir, dir)
	}
	g.dir = dir
	return g
}

func (g git) try(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = g.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "LC_ALL=C",
		"GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=1700000000 +0100",
		"GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.com", "GIT_COMMITTER_DATE=1700000000 +0100",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (g git) run(args ...string) string {
	g.t.Helper()
	out, err := g.try(args...)
	require.NoError(g.t, err, "git %s: %s", strings.Join(args, " "), out)
	return strings.TrimSuffix(out, "\n")
}

// write puts a file into the directory, with its parents.
func (g git) write(name, content string) {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	require.NoError(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(g.t, os.WriteFile(path, []byte(content), 0o644))
}

func (g git) read(name string) string {
	g.t.Helper()
	data, err := os.ReadFile(filepath.Join(g.dir, name))
	require.NoError(g.t, err)
	return string(data)
}

// commit writes a file named after the message and commits everything.
func (g git) commit(message string) string {
	g.t.Helper()
	g.write(message+".txt", message)
	g.run("add", "-A")
	g.run("commit", "-q", "-m", message)
	return g.run("rev-parse", "HEAD")
}

// open discovers the repository from the directory.
func (g git) open() *Repo {
	g.t.Helper()
	r, err := Discover(g.dir, Options{})
	require.NoError(g.t, err)
	return r
}

// noLocks checks that nothing in the git directories is called .lock.
func noLocks(t *testing.T, r *Repo) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(r.CommonDir, func(path string, _ os.DirEntry, err error) error {
		require.False(t, strings.HasSuffix(path, ".lock"), "left behind: %s", path)
		return err
	}))
}
