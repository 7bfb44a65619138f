package object

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	childFlag = flag.String("object.child", "", "act as a child process: repack or write")
	dirFlag   = flag.String("object.dir", "", "store the child works on")
	dieFlag   = flag.String("object.die", "", "step at which the child kills itself")
	longFlag  = flag.Bool("object.long", false, "run the long versions of tests")
)

func TestMain(m *testing.M) {
	flag.Parse()
	switch *childFlag {
	case "":
		os.Exit(m.Run())
	case "repack":
		os.Exit(childRepack(*dirFlag, *dieFlag))
	case "write":
		os.Exit(childWrite(*dirFlag))
	}
	os.Exit(64)
}

func child(what, dir string, args ...string) *exec.Cmd {
	args = append([]string{"-object.child=" + what, "-object.dir=" + dir}, args...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Stderr = os.Stderr
	return cmd
}

// rootsFile stands for the ledger of the tests: one id a line, oldest first.
func rootsFile(dir string) string { return filepath.Join(dir, "roots.test") }

func fileRoots(dir string) func(func(ID) error) error {
	return func(yield func(ID) error) error {
		b, err := os.ReadFile(rootsFile(dir))
		if err != nil {
			return err
		}
		lines := strings.Fields(string(b))
		for _, l := range slices.Backward(lines) {
			id, err := ParseID(l)
			if err != nil {
				return err
			}
			if err := yield(id); err != nil {
				return err
			}
		}
		return nil
	}
}

func childRepack(dir, die string) int {
	s, err := Open(dir)
	if err == nil {
		_, err = s.Repack(context.Background(), RepackOptions{Roots: fileRoots(dir), Full: true, Crash: func(name string) {
			if name == die {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// A project is a tree of files that changes as if somebody worked in it.
type project struct {
	r     *rand.Rand
	names []string
	files map[string][]byte
}

func newProject(files int) *project {
	p := &project{r: rand.New(rand.NewPCG(1, 2)), files: map[string][]byte{}}
	for i := range files {
		name := fmt.Sprintf("pkg%d/sub%d/file%d.go", i%7, i%31%5, i)
		p.names = append(p.names, name)
		var b bytes.Buffer
		fmt.Fprintf(&b, "package sub%d\n\nimport (\n\t\"fmt\"\n\t\"errors\"\n)\n\n", i%5)
		for range 20 + p.r.IntN(100) {
			p.line(&b)
		}
		p.files[name] = b.Bytes()
	}
	return p
}

var words = strings.Fields("return if err nil func string int value for range select open close write read buffer count name index state error wrap line parse emit next")

func (p *project) line(b *bytes.Buffer) {
	b.WriteByte('\t')
	for range 2 + p.r.IntN(7) {
		b.WriteString(words[p.r.IntN(len(words))])
		b.WriteByte(" .(,"[p.r.IntN(4)])
	}
	fmt.Fprintf(b, "%d)\n", p.r.IntN(1000))
}

// edit changes one to three files: lines replaced, inserted, removed.
func (p *project) edit() {
	for range 1 + p.r.IntN(3) {
		name := p.names[p.r.IntN(1+p.r.IntN(len(p.names)))]
		lines := bytes.SplitAfter(p.files[name], []byte("\n"))
		for range 1 + p.r.IntN(4) {
			var b bytes.Buffer
			p.line(&b)
			at := p.r.IntN(len(lines))
			switch p.r.IntN(3) {
			case 0:
				lines[at] = b.Bytes()
			case 1:
				lines = slices.Insert(lines, at, b.Bytes())
			default:
				if len(lines) > 10 {
					lines = slices.Delete(lines, at, at+1)
				}
			}
		}
		p.files[name] = bytes.Join(lines, nil)
	}
}

// capture writes what the store lacks of the tree and returns its id.
func (p *project) capture(t testing.TB, s *Store) ID {
	t.Helper()
	w := s.NewWriter()
	defer w.Abort()
	id := p.tree(t, s, w, "")
	require.NoError(t, w.Commit(false))
	return id
}

func (p *project) tree(t testing.TB, s *Store, w *Writer, prefix string) ID {
	var entries []TreeEntry
	seen := map[string]bool{}
	for _, name := range p.names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if dir, _, deeper := strings.Cut(rest, "/"); deeper {
			if !seen[dir] {
				seen[dir] = true
				entries = append(entries, TreeEntry{ModeDir, dir, p.tree(t, s, w, prefix+dir+"/")})
			}
			continue
		}
		entries = append(entries, TreeEntry{ModeFile, rest, p.keep(t, s, w, Blob, p.files[name])})
	}
	SortEntries(entries)
	return p.keep(t, s, w, Tree, AppendTree(nil, entries))
}

func (p *project) keep(t testing.TB, s *Store, w *Writer, kind Kind, data []byte) ID {
	id := Sum(kind, data)
	if !s.Has(id) {
		require.NoError(t, w.AddHashed(id, kind, data))
	}
	return id
}

// checkpoints captures n times and returns the roots, oldest first.
func checkpoints(t testing.TB, s *Store, files, n int) []ID {
	t.Helper()
	p := newProject(files)
	var roots []ID
	for range n {
		roots = append(roots, p.capture(t, s))
		p.edit()
	}
	return roots
}

func rootsOf(ids []ID) func(func(ID) error) error {
	return func(yield func(ID) error) error {
		for _, id := range slices.Backward(ids) {
			if err := yield(id); err != nil {
				return err
			}
		}
		return nil
	}
}

// reachable lists what git reaches from the roots.
func reachable(t testing.TB, s *Store, roots []ID) map[ID]string {
	t.Helper()
	out := map[ID]string{}
	args := []string{"--git-dir=" + s.Dir(), "rev-list", "--objects", "--no-object-names", "--stdin"}
	var in bytes.Buffer
	for _, r := range roots {
		fmt.Fprintln(&in, r)
	}
	list, err := tryGit("", in.Bytes(), args...)
	require.NoError(t, err, list)
	info, err := tryGit("", []byte(list), "--git-dir="+s.Dir(), "cat-file", "--batch-check")
	require.NoError(t, err, info)
	for line := range strings.Lines(info) {
		id, err := ParseID(line[:40])
		require.NoError(t, err)
		out[id] = strings.TrimSpace(line[41:])
	}
	return out
}

func packBytes(t testing.TB, dir string) (n int64) {
	t.Helper()
	names, err := readNames(dir)
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".pack") || strings.HasSuffix(name, ".idx") {
			st, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			n += st.Size()
		}
	}
	return n
}

// What a repack makes of many checkpoints is as small as what git does.
func TestRepackRatio(t *testing.T) {
	n, files := 250, 200
	if *longFlag {
		n, files = 1000, 1000
	}
	s := newStore(t)
	roots := checkpoints(t, s, files, n)
	before := packBytes(t, s.packDir())
	all := everything(t, s.Dir())

	theirs := filepath.Join(t.TempDir(), "git")
	git(t, "", "init", "-q", "--bare", theirs)
	names, err := readNames(s.packDir())
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, os.Link(filepath.Join(s.packDir(), name), filepath.Join(theirs, "objects/pack", name)))
	}
	var refs bytes.Buffer
	for i, r := range roots {
		fmt.Fprintf(&refs, "create refs/c/%d %s\n", i, r)
	}
	out, err := tryGit(theirs, refs.Bytes(), "update-ref", "--stdin")
	require.NoError(t, err, out)
	git(t, theirs, "repack", "-qadf", "--window=10", "--depth=50")
	want := packBytes(t, filepath.Join(theirs, "objects/pack"))
	require.NoError(t, os.RemoveAll(theirs))

	stats, err := s.Repack(ctx, RepackOptions{Roots: rootsOf(roots)})
	require.NoError(t, err)
	got := packBytes(t, s.packDir())
	t.Logf("%d bytes before, git %d, ours %d: %.3f; %+v", before, want, got, float64(got)/float64(want), stats)
	assert.LessOrEqual(t, float64(got), 1.1*float64(want))
	assert.Equal(t, len(all), stats.Live)
	fsck(t, s.Dir())
	requireReads(t, s, all)
	assert.LessOrEqual(t, longestChain(t, s), maxDepth)

	again, err := s.Repack(ctx, RepackOptions{Roots: rootsOf(roots)})
	require.NoError(t, err)
	assert.Zero(t, again.Packed, "nothing new: nothing to write")
	assert.Equal(t, got, packBytes(t, s.packDir()))
}

// longestChain asks git how many deltas lie upon one another.
func longestChain(t testing.TB, s *Store) (longest int) {
	t.Helper()
	packs, _ := listPacks(s.packDir())
	for _, base := range packs {
		for line := range strings.Lines(git(t, "", "verify-pack", "-s", base+".idx")) {
			var n int
			if _, err := fmt.Sscanf(line, "chain length = %d:", &n); err == nil {
				longest = max(longest, n)
			}
		}
	}
	require.Positive(t, longest)
	return longest
}

func TestRepackRemovesTheDead(t *testing.T) {
	s := newStore(t)
	roots := checkpoints(t, s, 20, 30)
	live := reachable(t, s, roots[20:])
	all := everything(t, s.Dir())
	require.Less(t, len(live), len(all))
	gen := s.Generation()
	other := reopened(t, s)
	var dead ID
	for id := range all {
		if _, ok := live[id]; !ok {
			dead = id
		}
	}
	require.True(t, other.Has(dead))

	stats, err := s.Repack(ctx, RepackOptions{Roots: rootsOf(roots[20:])})
	require.NoError(t, err)
	assert.Equal(t, len(live), stats.Live)
	assert.Equal(t, live, everything(t, s.Dir()))
	requireReads(t, s, live)
	fsck(t, s.Dir())
	assert.NotEqual(t, gen, s.Generation())

	unlock, err := other.Shared(ctx)
	require.NoError(t, err)
	defer unlock()
	assert.False(t, other.Has(dead), "whoever holds the lock is told the truth")
}

func TestRepackOfNothing(t *testing.T) {
	s := newStore(t)
	put(t, s, []byte("dead"))
	_, err := s.Repack(ctx, RepackOptions{Roots: rootsOf(nil)})
	require.NoError(t, err)
	packs, _ := listPacks(s.packDir())
	assert.Empty(t, packs)
}

// An object that cannot be read may mention any other: nothing is dead then.
func TestRepackFailsClosed(t *testing.T) {
	damage := map[string]func(t *testing.T, s *Store, roots []ID){
		"missing root": func(t *testing.T, s *Store, roots []ID) { roots[0] = Sum(Blob, []byte("nowhere")) },
		"damaged pack": func(t *testing.T, s *Store, roots []ID) {
			packs, _ := listPacks(s.packDir())
			for _, base := range packs {
				b, err := os.ReadFile(base + ".pack")
				require.NoError(t, err)
				copy(b[len(b)/2:], "damage damage")
				require.NoError(t, os.Chmod(base+".pack", 0o600))
				require.NoError(t, os.WriteFile(base+".pack", b, 0o600))
			}
		},
		"damaged index": func(t *testing.T, s *Store, roots []ID) {
			packs, _ := listPacks(s.packDir())
			require.NoError(t, os.Chmod(packs[0]+".idx", 0o600))
			require.NoError(t, os.Truncate(packs[0]+".idx", 1000))
		},
		"damaged blob": func(t *testing.T, s *Store, roots []ID) {
			root, blob := ownPacks(t, s)
			roots[0] = root
			damagePack(t, blob)
		},
		"missing blob": func(t *testing.T, s *Store, roots []ID) {
			root, blob := ownPacks(t, s)
			roots[0] = root
			require.NoError(t, os.Remove(blob+".pack"))
			require.NoError(t, os.Remove(blob+".idx"))
		},
		"lost pack": func(t *testing.T, s *Store, roots []ID) {
			p, _, err := s.find(s.set(), &roots[0])
			require.NoError(t, err)
			require.NoError(t, os.Remove(p.packPath()))
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			roots := checkpoints(t, s, 10, 5)
			put(t, s, []byte("dead"))
			do(t, s, roots)
			s.Close()
			before, err := readNames(s.packDir())
			require.NoError(t, err)
			_, err = s.Repack(ctx, RepackOptions{Roots: rootsOf(roots)})
			require.Error(t, err)
			after, err := readNames(s.packDir())
			require.NoError(t, err)
			assert.ElementsMatch(t, before, after)
		})
	}
}

// ownPacks writes a tree and its only blob in packs of their own and returns
// the tree, and the path of the blob's pack without suffix.
func ownPacks(t *testing.T, s *Store) (root ID, blob string) {
	t.Helper()
	id := put(t, s, noise(77, 3000))[0]
	p, _, err := s.find(s.set(), &id)
	require.NoError(t, err)
	w := s.NewWriter()
	root, err = w.Add(Tree, AppendTree(nil, []TreeEntry{{ModeFile, "f", id}}))
	require.NoError(t, err)
	require.NoError(t, w.Commit(false))
	return root, p.base
}

// When one of two copies goes, the one that stays must be good.
func TestRepackReadsTheCopyThatStays(t *testing.T) {
	dir := history(t, 3)
	git(t, dir, "repack", "-qad")
	head, err := ParseID(git(t, dir, "rev-parse", "HEAD"))
	require.NoError(t, err)
	s := newStore(t)
	w := s.NewWriter()
	id, err := w.Add(Blob, noise(2, 20000)) // is noise.bin of the last commit
	require.NoError(t, err)
	require.NoError(t, w.Commit(false))
	_, err = s.Link([]string{filepath.Join(dir, ".git/objects")})
	require.NoError(t, err)
	var linked *pack
	for _, p := range s.set().packs {
		if x, err := p.index(); err == nil && x.count > 1 {
			linked = p
		}
	}
	x, err := linked.index()
	require.NoError(t, err)
	at := x.offset(x.find(&id))
	f, err := os.OpenFile(linked.packPath(), os.O_RDWR, 0)
	if err != nil {
		require.NoError(t, os.Chmod(linked.packPath(), 0o600))
		f, err = os.OpenFile(linked.packPath(), os.O_RDWR, 0)
		require.NoError(t, err)
	}
	_, err = f.WriteAt([]byte("damage"), at+10000)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	_, err = s.Repack(ctx, RepackOptions{Roots: rootsOf([]ID{head})})
	require.ErrorIs(t, err, ErrCorrupt)
	_, _, err = s.ReadVerified(id, nil)
	require.NoError(t, err, "the good copy is still there")
}

func TestRepackWithoutSpace(t *testing.T) {
	s := newStore(t)
	roots := checkpoints(t, s, 10, 5)
	before, err := readNames(s.packDir())
	require.NoError(t, err)
	_, err = s.Repack(ctx, RepackOptions{Roots: rootsOf(roots), FreeSpace: func() int64 { return 1000 }})
	e, ok := errors.AsType[*NoSpaceError](err)
	require.True(t, ok, err)
	assert.Equal(t, int64(1000), e.Free)
	after, err := readNames(s.packDir())
	require.NoError(t, err)
	assert.ElementsMatch(t, before, after)
}

// While somebody is between asking and recording, nothing is removed.
func TestRepackWaits(t *testing.T) {
	s := newStore(t)
	roots := checkpoints(t, s, 10, 5)
	other := reopened(t, s)
	unlock, err := other.Shared(ctx)
	require.NoError(t, err)
	short, cancel := context.WithCancel(ctx)
	_, err = s.Repack(short, RepackOptions{Roots: rootsOf(roots[4:]), Crash: func(name string) {
		if name == "packed" {
			cancel()
		}
	}})
	_, ok := errors.AsType[*LockedError](err)
	require.True(t, ok, err)
	require.ErrorIs(t, err, context.Canceled)
	requireReads(t, s, reachable(t, s, roots))
	unlock()
	_, err = s.Repack(ctx, RepackOptions{Roots: rootsOf(roots[4:])})
	require.NoError(t, err)
}

// A root that is recorded after the first look is found at the second, even
// when what it needs was dead until then.
func TestRepackLateRoot(t *testing.T) {
	s := newStore(t)
	roots := checkpoints(t, s, 20, 10)
	want := reachable(t, s, []ID{roots[0], roots[9]})
	calls := 0
	_, err := s.Repack(ctx, RepackOptions{Roots: func(yield func(ID) error) error {
		if calls++; calls == 1 {
			return yield(roots[9])
		}
		return rootsOf([]ID{roots[0], roots[9]})(yield)
	}})
	require.NoError(t, err)
	assert.Equal(t, 2, calls)
	requireReads(t, s, want)
	assert.Equal(t, want, everything(t, s.Dir()))
	fsck(t, s.Dir())
}

// Packs shared with the user's repository cost nothing and stay; once they
// are ours alone they are judged by what is alive in them.
func TestRepackLinked(t *testing.T) {
	dir := history(t, 6)
	git(t, dir, "repack", "-qad")
	write(t, dir, "loose", []byte("loose\n"))
	head := commitAll(t, dir, "loose")
	objects := filepath.Join(dir, ".git/objects")
	s := newStore(t)
	_, err := s.Link([]string{objects})
	require.NoError(t, err)
	roots := append([]ID{head}, checkpoints(t, s, 10, 4)...)

	stats, err := s.Repack(ctx, RepackOptions{Roots: rootsOf(roots)})
	require.NoError(t, err)
	assert.Equal(t, 1, stats.PacksKept)
	requireReads(t, s, reachable(t, s, roots))
	fsck(t, s.Dir())

	old, err := ParseID(git(t, dir, "rev-parse", "HEAD~4^{tree}"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(objects))
	stats, err = s.Repack(ctx, RepackOptions{Roots: rootsOf([]ID{old})})
	require.NoError(t, err)
	assert.Zero(t, stats.PacksKept)
	assert.Equal(t, reachable(t, s, []ID{old}), everything(t, s.Dir()))
	fsck(t, s.Dir())
}

// A pack that stays may hold dead objects without what these mention. Import
// must not believe them.
func TestImportAfterPartialRepack(t *testing.T) {
	dir := history(t, 6)
	gitDir := filepath.Join(dir, ".git")
	objects := filepath.Join(gitDir, "objects")
	base, err := ParseID(git(t, dir, "rev-parse", "HEAD"))
	require.NoError(t, err)
	write(t, dir, "d0/later", []byte("in a pack of its own\n"))
	head := commitAll(t, dir, "later")
	blob := git(t, dir, "rev-parse", "HEAD:d0/later")
	var rest bytes.Buffer
	for id := range everything(t, gitDir) {
		if id.String() != blob {
			fmt.Fprintln(&rest, id)
		}
	}
	for _, list := range []string{rest.String(), blob + "\n"} {
		out, err := tryGit(dir, []byte(list), "pack-objects", "-q", ".git/objects/pack/pack")
		require.NoError(t, err, out)
	}
	git(t, dir, "prune-packed")

	s := newStore(t)
	stats, err := s.Link([]string{objects})
	require.NoError(t, err)
	require.Equal(t, 2, stats.Packs)
	_, err = s.Repack(ctx, RepackOptions{Roots: rootsOf([]ID{base})})
	require.NoError(t, err)
	require.True(t, s.Has(head), "in the pack that stays, though dead")
	got, err := s.Import(head, []string{objects})
	require.NoError(t, err)
	assert.Equal(t, 1, got.Packs)
	requireReads(t, s, reachable(t, s, []ID{head}))
	fsck(t, s.Dir())
}

func TestRepackLarge(t *testing.T) {
	s := newStore(t)
	w := s.NewWriter()
	big, err := w.Add(Blob, noise(1, maxDelta+1))
	require.NoError(t, err)
	long, err := w.Add(Blob, text(1, maxDelta+1))
	require.NoError(t, err)
	tree := []TreeEntry{{ModeFile, "big", big}, {ModeFile, "long", long}}
	root, err := w.Add(Tree, AppendTree(nil, tree))
	require.NoError(t, err)
	require.NoError(t, w.Commit(true))
	_, err = s.Repack(ctx, RepackOptions{Roots: rootsOf([]ID{root})})
	require.NoError(t, err)
	requireReads(t, s, everything(t, s.Dir()))
	fsck(t, s.Dir())
}

// A repack killed at any step loses nothing, and the next one completes it.
func TestRepackKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	steps := []string{}
	build := func(t *testing.T) (*Store, map[ID]string) {
		s := newStore(t)
		dir := history(t, 2)
		head, err := ParseID(git(t, dir, "rev-parse", "HEAD"))
		require.NoError(t, err)
		_, err = s.Link([]string{filepath.Join(dir, ".git/objects")})
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(dir))
		roots := append(checkpoints(t, s, 10, 6)[3:], head)
		var b strings.Builder
		for _, r := range roots {
			fmt.Fprintln(&b, r)
		}
		require.NoError(t, os.WriteFile(rootsFile(s.Dir()), []byte(b.String()), 0o600))
		return s, reachable(t, s, roots)
	}

	s, live := build(t)
	_, err := s.Repack(ctx, RepackOptions{Roots: fileRoots(s.Dir()), Full: true, Crash: func(name string) {
		if !slices.Contains(steps, name) {
			steps = append(steps, name)
		}
	}})
	require.NoError(t, err)
	require.Equal(t, live, everything(t, s.Dir()))
	require.Greater(t, len(steps), 8)

	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			s, live := build(t)
			reader := reopened(t, s)
			for id := range live {
				require.True(t, reader.Has(id))
			}
			err := child("repack", s.Dir(), "-object.die="+step).Run()
			ee, ok := errors.AsType[*exec.ExitError](err)
			require.True(t, ok && !ee.Exited(), "the child was killed: %v", err)

			requireReads(t, reader, live)
			fsck(t, s.Dir())
			_, err = s.Repack(ctx, RepackOptions{Roots: fileRoots(s.Dir())})
			require.NoError(t, err)
			assert.Equal(t, live, everything(t, s.Dir()))
			requireReads(t, reader, live)
			fsck(t, s.Dir())
			names, err := readNames(s.packDir())
			require.NoError(t, err)
			assert.Len(t, names, 2, "one pack, one index, no left-overs")
		})
	}
}

// childWrite captures, under the shared lock, and records the root, as a hook
// does.
func childWrite(dir string) int {
	for i := range 150 {
		if err := writeOne(dir, i); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			return 1
		}
	}
	return 0
}

func writeOne(dir string, i int) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	unlock, err := s.Shared(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	w := s.NewWriter()
	defer w.Abort()
	var entries []TreeEntry
	for f := range 5 { // some that a repack may just be removing
		data := fmt.Appendf(nil, "file %d version %d of %d", f, (i+f)%4, os.Getpid()*((f+i)%2))
		id := Sum(Blob, data)
		if !s.Has(id) {
			if err := w.AddHashed(id, Blob, data); err != nil {
				return err
			}
		}
		entries = append(entries, TreeEntry{ModeFile, fmt.Sprint(f), id})
	}
	root, err := w.Add(Tree, AppendTree(nil, entries))
	if err != nil {
		return err
	}
	if err := w.Commit(i%5 == 0); err != nil {
		return err
	}
	f, err := os.OpenFile(rootsFile(dir), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(root.String() + "\n")
	return err
}

// Two processes write while a third repacks, which also forgets some roots.
func TestWritersAndRepack(t *testing.T) {
	s := newStore(t)
	require.NoError(t, os.WriteFile(rootsFile(s.Dir()), nil, 0o600))
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- child("write", s.Dir()).Run() }()
	}
	// Every other root is forgotten, as gc forgets old checkpoints.
	kept := func(yield func(ID) error) error {
		return fileRoots(s.Dir())(func(id ID) error {
			if id[0]&1 == 0 {
				return nil
			}
			return yield(id)
		})
	}
	repacks := 0
	for left := 2; left > 0; {
		select {
		case err := <-done:
			require.NoError(t, err)
			left--
		default:
			_, err := s.Repack(ctx, RepackOptions{Roots: kept})
			require.NoError(t, err)
			repacks++
		}
	}
	t.Logf("%d repacks", repacks)
	fsck(t, s.Dir())
	var roots []ID
	require.NoError(t, kept(func(id ID) error { roots = append(roots, id); return nil }))
	requireReads(t, s, reachable(t, s, roots))
	problems, err := s.Verify(ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, problems)
}
