package object

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The owner rewrites history and collects garbage: what was linked stays.
func TestLinkOutlivesOwner(t *testing.T) {
	dir := history(t, 8)
	gitDir := filepath.Join(dir, ".git")
	git(t, dir, "repack", "-qad")
	write(t, dir, "later", []byte("loose\n"))
	commitAll(t, dir, "later")
	all := everything(t, gitDir)

	s := newStore(t)
	stats, err := s.Link([]string{filepath.Join(gitDir, "objects")})
	require.NoError(t, err)
	assert.Equal(t, 1, stats.Packs)
	assert.Equal(t, 3, stats.Loose)
	assert.Zero(t, stats.NotLinked)
	requireReads(t, s, all)

	again, err := s.Link([]string{filepath.Join(gitDir, "objects")})
	require.NoError(t, err)
	assert.Equal(t, LinkStats{}, again)

	git(t, dir, "checkout", "-q", "--orphan", "fresh")
	git(t, dir, "rm", "-rqf", ".")
	write(t, dir, "only", []byte("only\n"))
	commitAll(t, dir, "rewritten")
	git(t, dir, "branch", "-D", "-q", "main")
	git(t, dir, "reflog", "expire", "--expire=all", "--all")
	git(t, dir, "gc", "-q", "--prune=now", "--aggressive")
	assert.Less(t, len(everything(t, gitDir)), 5, "the owner has dropped them")

	requireReads(t, reopened(t, s), all)
	fsck(t, s.Dir())
	fsck(t, gitDir)
	open, err := s.pendings()
	require.NoError(t, err)
	assert.Empty(t, open)
}

func TestLinkSkips(t *testing.T) {
	dir := history(t, 2)
	git(t, dir, "repack", "-qad")
	objects := filepath.Join(dir, ".git/objects")
	packs, _ := listPacks(filepath.Join(objects, "pack"))
	require.Len(t, packs, 1)
	write(t, objects, "pack/pack-1234.pack", []byte("no index"))
	write(t, objects, "pack/pack-5678.pack", []byte("no pack"))
	write(t, objects, "pack/pack-5678.idx", []byte("no index"))
	write(t, objects, "00/tmp_obj_123456", []byte("being written"))
	require.NoError(t, os.WriteFile(packs[0]+".keep", nil, 0o600))

	s := newStore(t)
	stats, err := s.Link([]string{objects, filepath.Join(dir, "nowhere")})
	require.NoError(t, err)
	assert.Equal(t, 1, stats.Packs)
	assert.Equal(t, 1, stats.NotLinked)
	require.ErrorIs(t, stats.Why, ErrCorrupt)
	names, err := readNames(s.packDir())
	require.NoError(t, err)
	assert.Len(t, names, 2)
}

func TestImport(t *testing.T) {
	dir := history(t, 3)
	gitDir := filepath.Join(dir, ".git")
	objects := filepath.Join(gitDir, "objects")
	git(t, dir, "repack", "-qad")
	write(t, dir, "d0/later", []byte("loose\n"))
	head := commitAll(t, dir, "later")
	write(t, dir, "unrelated", []byte("unrelated\n"))
	commitAll(t, dir, "not asked for")

	s := newStore(t)
	stats, err := s.Import(head, []string{objects})
	require.NoError(t, err)
	assert.Equal(t, ImportStats{Packs: 1, Loose: 4}, stats)
	fsck(t, s.Dir())
	_, err = tryGit("", nil, "--git-dir="+s.Dir(), "rev-list", "--objects", head.String())
	require.NoError(t, err)

	stats, err = s.Import(head, []string{objects})
	require.NoError(t, err)
	assert.Equal(t, ImportStats{}, stats)

	_, err = s.Import(Sum(Blob, []byte("nowhere")), []string{objects})
	require.ErrorIs(t, err, ErrMissing)
}

// A link that died may have left a commit without its tree: what is here is
// then no proof of what it mentions.
func TestImportAfterDeadLink(t *testing.T) {
	dir := history(t, 2)
	objects := filepath.Join(dir, ".git/objects")
	head, err := ParseID(git(t, dir, "rev-parse", "HEAD"))
	require.NoError(t, err)

	s := newStore(t)
	l := &linker{dst: s.objects[0], touched: map[string]bool{}}
	h := head.String()
	p, err := s.beginPending()
	require.NoError(t, err)
	_, err = l.loose(filepath.Join(objects, h[:2], h[2:]), h[:2], h[2:])
	require.NoError(t, err)
	require.NoError(t, p.abandon())

	stats, err := s.Import(head, []string{objects})
	require.NoError(t, err)
	assert.NotZero(t, stats.Loose)
	fsck(t, s.Dir())
	_, err = tryGit("", nil, "--git-dir="+s.Dir(), "rev-list", "--objects", h)
	require.NoError(t, err)
}

// History cut short, as in a shallow clone, ends in ours as well.
func TestImportShallow(t *testing.T) {
	dir := history(t, 4)
	clone := filepath.Join(t.TempDir(), "c")
	git(t, "", "clone", "-q", "--depth=2", "file://"+dir, clone)
	head, err := ParseID(git(t, clone, "rev-parse", "HEAD"))
	require.NoError(t, err)

	s := newStore(t)
	stats, err := s.Import(head, []string{filepath.Join(clone, ".git/objects")})
	require.NoError(t, err)
	assert.Len(t, stats.Missing, 1)
	assert.Len(t, readShallow(s.Dir()), 1)
	fsck(t, s.Dir())
}

// Where nothing can be linked, what is needed is written.
func TestImportCopies(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "object")
	if err != nil {
		t.Skip("no second file system: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	dir := history(t, 3)
	write(t, dir, "big", noise(9, 2<<20))
	commitAll(t, dir, "big")
	git(t, dir, "repack", "-qad")
	write(t, dir, "later", []byte("loose\n"))
	head := commitAll(t, dir, "later")
	objects := filepath.Join(dir, ".git/objects")

	s, err := Create(filepath.Join(shm, "store.git"))
	require.NoError(t, err)
	link, err := s.Link([]string{objects})
	require.NoError(t, err)
	assert.Equal(t, 4, link.NotLinked)
	require.ErrorIs(t, link.Why, unix.EXDEV)

	stats, err := s.Import(head, []string{objects})
	require.NoError(t, err)
	all := everything(t, filepath.Join(dir, ".git"))
	assert.Equal(t, ImportStats{Copied: len(all)}, stats)
	requireReads(t, s, all)
	fsck(t, s.Dir())
}

func TestCleanTemp(t *testing.T) {
	s := newStore(t)
	idle := filepath.Join(s.packDir(), "tmp_pack_123")
	require.NoError(t, os.WriteFile(idle, []byte("x"), 0o600))
	orphan := filepath.Join(s.packDir(), "pack-123.pack")
	require.NoError(t, os.WriteFile(orphan, []byte("x"), 0o600))
	w := s.NewWriter()
	for i := range 3 {
		_, err := w.Add(Blob, noise(uint64(i), 1<<20))
		require.NoError(t, err)
	}
	require.NotNil(t, w.out.f, "large enough to have a file")
	require.NoError(t, reopened(t, s).CleanTemp())
	assert.NoFileExists(t, idle)
	assert.FileExists(t, orphan, "somebody writes: it may be his")
	assert.FileExists(t, w.out.f.Name())
	require.NoError(t, w.Commit(false))
	require.NoError(t, s.CleanTemp())
	assert.NoFileExists(t, orphan)
	fsck(t, s.Dir())
}

// The first Commit tidies up when it happens to see left-overs.
func TestCommitCleans(t *testing.T) {
	s := newStore(t)
	idle := filepath.Join(s.packDir(), "tmp_pack_123")
	require.NoError(t, os.WriteFile(idle, []byte("x"), 0o600))
	require.False(t, s.Has(ID{}))
	put(t, s, []byte(fmt.Sprint("x")))
	assert.NoFileExists(t, idle)
}
