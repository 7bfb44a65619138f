package object

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// git runs real git, the oracle, with nothing of the machine's configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, nil, args...)
	require.NoError(t, err, out)
	return strings.TrimRight(out, "\n")
}

func tryGit(dir string, stdin []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// fsck says that git finds nothing wrong with the repository at dir.
func fsck(t testing.TB, dir string) {
	t.Helper()
	out, err := tryGit("", nil, "--git-dir="+dir, "fsck", "--full", "--strict", "--no-dangling")
	require.NoError(t, err, out)
	for line := range strings.Lines(out) {
		require.Contains(t, line, "notice", "fsck complains")
	}
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "store.git"))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// reopened returns a second Store over the same folder, as another process
// would have.
func reopened(t testing.TB, s *Store) *Store {
	t.Helper()
	r, err := Open(s.Dir())
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// put writes blobs in one pack and returns their ids.
func put(t testing.TB, s *Store, contents ...[]byte) []ID {
	t.Helper()
	w := s.NewWriter()
	defer w.Abort()
	var ids []ID
	for _, c := range contents {
		id, err := w.Add(Blob, c)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.NoError(t, w.Commit(false))
	return ids
}

// noise is n bytes that do not compress, text n bytes that do.
func noise(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	b := make([]byte, n)
	r.Read(b)
	return b
}

func text(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "line %d of %d: %x\n", b.Len(), seed, r.Uint32())
	}
	return b.Bytes()[:n]
}

// repo makes a git repository with a worktree.
func repo(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "config", "gc.auto", "0")
	return dir
}

func write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o644))
}

func commitAll(t testing.TB, dir, msg string) ID {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", msg)
	id, err := ParseID(git(t, dir, "rev-parse", "HEAD"))
	require.NoError(t, err)
	return id
}

// history makes a repository in which files change over n commits.
func history(t testing.TB, n int) string {
	t.Helper()
	dir := repo(t)
	for i := range n {
		for f := range 6 {
			b := text(uint64(f), 3000+100*f)
			copy(b[100*(i%20):], fmt.Sprintf("version %d", i))
			write(t, dir, fmt.Sprintf("d%d/f%d.txt", f%3, f), append(b, fmt.Sprintf("end %d\n", i)...))
		}
		write(t, dir, "noise.bin", noise(uint64(i), 20000))
		write(t, dir, "empty", nil)
		commitAll(t, dir, fmt.Sprintf("c%d", i))
	}
	return dir
}

// everything lists the objects git finds in a repository.
func everything(t testing.TB, gitDir string) map[ID]string {
	t.Helper()
	out := git(t, "", "--git-dir="+gitDir, "cat-file", "--batch-check", "--batch-all-objects")
	all := map[ID]string{}
	for line := range strings.Lines(out) {
		id, err := ParseID(line[:40])
		require.NoError(t, err)
		all[id] = strings.TrimSpace(line[41:])
	}
	return all
}

// requireReads says that s reads all of these objects, every way there is.
func requireReads(t testing.TB, s *Store, all map[ID]string) {
	t.Helper()
	require.NotEmpty(t, all)
	var buf []byte
	for id, want := range all {
		require.True(t, s.Has(id), id)
		kind, size, err := s.Header(id)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("%s %d", kind, size), id)
		kind, data, err := s.ReadVerified(id, buf)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("%s %d", kind, len(data)), id)
		require.True(t, bytes.Equal(data, streamed(t, s, id)), id)
		_, again, err := s.ReadSmall(id, nil, size)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, again), id)
		_, _, err = s.ReadSmall(id, nil, size-1)
		require.ErrorIs(t, err, ErrLarge, id)
		buf = data
	}
}

func streamed(t testing.TB, s *Store, id ID) []byte {
	t.Helper()
	_, size, r, err := s.Stream(id)
	require.NoError(t, err)
	defer r.Close()
	b := bytes.NewBuffer([]byte{})
	n, err := b.ReadFrom(r)
	require.NoError(t, err)
	require.Equal(t, size, n)
	return b.Bytes()
}

var ctx = context.Background()
