package retcon_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
)

var ctx = context.Background()

// place is a workspace of a test's, checked when the test ends.
type place struct {
	t testing.TB
	*retcon.Workspace
	dir   string
	clock time.Time
}

func newFolder(t testing.TB) *place {
	t.Helper()
	return openPlace(t, filepath.Join(t.TempDir(), "work"), retcon.Options{Create: true})
}

func newRepo(t testing.TB) *place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	git(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	return openPlace(t, dir, retcon.Options{})
}

func openPlace(t testing.TB, dir string, o retcon.Options) *place {
	t.Helper()
	p := &place{t: t, dir: dir, clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	o.Dir, o.Now = dir, func() time.Time { return p.clock }
	w, err := retcon.Open(ctx, o)
	require.NoError(t, err)
	p.Workspace = w
	t.Cleanup(func() {
		require.NoError(t, w.Close())
		ledgertest.Check(t, filepath.Join(w.Folder(), "ledger.db"))
	})
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name, content string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
	require.NoError(p.t, os.WriteFile(p.path(name), []byte(content), 0o644))
}

func (p *place) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.path(name))
	require.NoError(p.t, err)
	return string(b)
}

func (p *place) checkpoint(o retcon.CheckpointOptions) *retcon.Checkpoint {
	p.t.Helper()
	c, err := p.Checkpoint(ctx, o)
	require.NoError(p.t, err)
	return c
}

// exec records a command that does something to the worktree.
func (p *place) exec(name string, do func()) *retcon.ExecResult {
	p.t.Helper()
	r, err := p.Exec(ctx, retcon.ExecOptions{Name: name, Argv: []string{"do", name},
		Run: func(context.Context, []string) (int, error) { do(); return 0, nil }})
	require.NoError(p.t, err)
	return r
}

// names are the paths of changes, each with a sign in front.
func names(changes []retcon.FileChange) string {
	var out []string
	for _, c := range changes {
		sign := "~"
		switch {
		case c.Old.Kind == retcon.KindAbsent:
			sign = "+"
		case c.New.Kind == retcon.KindAbsent:
			sign = "-"
		}
		out = append(out, sign+c.Path)
	}
	return strings.Join(out, " ")
}

// git runs git in dir with no configuration but the repository's.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "HOME=") && !strings.HasPrefix(kv, "XDG_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
	return strings.TrimSuffix(string(out), "\n")
}
