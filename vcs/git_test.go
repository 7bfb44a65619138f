package vcs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitEnv is an environment in which git reads no configuration but the
// repository's, and commits the same ids every time.
func gitEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "HOME=") && !strings.HasPrefix(kv, "XDG_") {
			env = append(env, kv)
		}
	}
	return append(env, "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_TERMINAL_PROMPT=0")
}

// git runs git in dir and returns what it printed, without the last line end.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return gitWith(t, dir, nil, args...)
}

func gitWith(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, append(gitEnv(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// gitTree is what git makes of the worktree, without touching its index.
func gitTree(t testing.TB, dir string) string {
	t.Helper()
	tmp := filepath.Join(t.TempDir(), "index")
	gitDir := git(t, dir, "rev-parse", "--absolute-git-dir")
	if err := copyIndex(filepath.Join(gitDir, "index"), tmp); err != nil {
		t.Fatal(err)
	}
	env := []string{"GIT_INDEX_FILE=" + tmp}
	gitWith(t, dir, env, "-c", "advice.addEmbeddedRepo=false", "add", "-A")
	return gitWith(t, dir, env, "write-tree")
}

// copyIndex copies an index, if there is one, with the time it was written: by
// that git knows which entries it must not believe.
func copyIndex(from, to string) error {
	fi, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, fi.ModTime(), fi.ModTime())
}

func newRepo(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	git(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	return dir
}

func write(t testing.TB, root, path, content string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, opt Options) *Worktree {
	t.Helper()
	w, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func capture(t testing.TB, w *Worktree) *Capture {
	t.Helper()
	c, err := w.Capture(context.Background(), CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
