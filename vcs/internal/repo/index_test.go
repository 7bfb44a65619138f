package repo

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func splitNUL(s string) []string { return strings.Split(strings.TrimSuffix(s, "\x00"), "\x00") }

// debugged is what git ls-files says about every entry, in our words.
func debugged(g git, extra ...string) []string {
	out := g.run(append([]string{"ls-files", "-s", "-z", "--debug"}, extra...)...)
	var lines []string
	for len(out) > 0 {
		// mode SP oid SP stage TAB name NUL, then five lines of debug
		head, rest, _ := strings.Cut(out, "\x00")
		meta, name, _ := strings.Cut(head, "\t")
		fields := strings.Fields(meta)
		var n [10]uint64
		var flags uint64
		debug := rest
		for i, key := range []string{"ctime: ", ":", "mtime: ", ":", "dev: ", "ino: ", "uid: ", "gid: ", "size: ", "flags: "} {
			_, after, _ := strings.Cut(debug, key)
			end := strings.IndexAny(after, ":\t\n")
			if end < 0 {
				end = len(after)
			}
			if key == "flags: " {
				flags, _ = strconv.ParseUint(after[:end], 16, 64)
			} else {
				n[i], _ = strconv.ParseUint(after[:end], 10, 64)
			}
			debug = after[end:]
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %q c=%d.%d m=%d.%d dev=%d ino=%d uid=%d gid=%d size=%d valid=%t skip=%t ita=%t",
			fields[0], fields[1], fields[2], name, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8],
			flags&0x8000 != 0, flags&(1<<30) != 0, flags&(1<<29) != 0))
		out = strings.TrimPrefix(debug, "\n")
	}
	return lines
}

func described(x *Index) []string {
	var lines []string
	for i, e := range x.Entries {
		lines = append(lines, fmt.Sprintf("%06o %s %d %q c=%d.%d m=%d.%d dev=%d ino=%d uid=%d gid=%d size=%d valid=%t skip=%t ita=%t",
			e.Mode, e.OID, e.Stage, x.Name(i), e.Ctime.Sec, e.Ctime.Nsec, e.Mtime.Sec, e.Mtime.Nsec, e.Dev, e.Ino,
			e.UID, e.GID, e.Size, e.Flags&AssumeValid != 0, e.Flags&SkipWorktree != 0, e.Flags&IntentToAdd != 0))
	}
	return lines
}

// sameIndex reads the index and compares it with git's view.
func sameIndex(t *testing.T, g git, extra ...string) *Index {
	t.Helper()
	want := debugged(g, extra...)
	x, err := g.open().ReadIndex(IndexOptions{VerifyChecksum: true})
	require.NoError(t, err)
	assert.Equal(t, want, described(x))
	signature, err := g.open().IndexSignature()
	require.NoError(t, err)
	assert.Equal(t, x.Signature, signature)
	for i := range x.Entries {
		found := x.Find(x.Name(i))
		assert.True(t, found >= 0 && found <= i && x.Name(found) == x.Name(i))
	}
	return x
}

// populated has names of many shapes and every kind of entry.
func populated(t *testing.T) git {
	g := newGit(t)
	for _, name := range []string{"a", "a-b", "a/b", "a/c/d", "a.c", "b/long", "z\xff", "tab\tq\"", "sp ace",
		strings.Repeat("n", 200) + "/" + strings.Repeat("m", 200) + "/" + strings.Repeat("o", 200) + "/x"} {
		if name != "a" {
			g.write(name, "content of "+name)
		}
	}
	deep := strings.Repeat(strings.Repeat("d", 250)+"/", 17) // longer than the index can say
	g.write("script", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(g.dir+"/script", 0o755))
	require.NoError(t, os.Symlink("a/b", g.dir+"/link"))
	g.run("init", "-q", "nested")
	g.at("nested").commit("inner")
	g.run("-c", "advice.addEmbeddedRepo=false", "add", "-A")
	oid := g.run("hash-object", "-w", "--", "script")
	g.run("update-index", "--add", "--cacheinfo", "100644,"+oid+","+deep+"f")
	g.run("commit", "-q", "-m", "all")
	g.run("update-index", "--assume-unchanged", "a/b")
	return g
}

func TestReadIndex(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		x, err := newGit(t).open().ReadIndex(IndexOptions{})
		require.NoError(t, err)
		assert.Empty(t, x.Entries)
		assert.Equal(t, IndexSignature{}, x.Signature)
		assert.Equal(t, -1, x.Find("a"))
		assert.False(t, x.HasPrefix(""))
	})
	for version := 2; version <= 4; version++ {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			g := populated(t)
			if version == 3 {
				g.run("update-index", "--skip-worktree", "a/c/d")
				g.write("ita", "x")
				g.run("add", "-N", "ita")
			}
			if version == 4 {
				g.run("update-index", "--index-version", "4")
			}
			x := sameIndex(t, g)
			assert.Equal(t, version, x.Version)
			assert.Empty(t, x.Degraded)
		})
	}
	t.Run("version 4 with flags", func(t *testing.T) {
		g := populated(t)
		g.run("update-index", "--index-version", "4")
		g.run("update-index", "--skip-worktree", "a/c/d")
		assert.Equal(t, 4, sameIndex(t, g).Version)
	})
	t.Run("merge stages", func(t *testing.T) {
		g := newGit(t)
		g.write("f", "0")
		g.commit("base")
		g.run("checkout", "-q", "-b", "side")
		g.write("f", "1")
		g.commit("s")
		g.run("checkout", "-q", "main")
		g.write("f", "2")
		g.commit("m")
		_, err := g.try("merge", "side")
		require.Error(t, err)
		x := sameIndex(t, g)
		i := x.Find("f")
		assert.Equal(t, uint8(1), x.Entries[i].Stage)
		assert.Equal(t, uint8(3), x.Entries[i+2].Stage)
	})
	t.Run("untracked cache and others", func(t *testing.T) {
		g := populated(t)
		g.run("update-index", "--force-untracked-cache")
		g.run("-c", "index.threads=2", "status")
		assert.Contains(t, string(sameIndex(t, g).Raw), "UNTR")
	})
	t.Run("skipHash", func(t *testing.T) {
		g := populated(t)
		path := g.dir + "/.git/index"
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		clear(raw[len(raw)-20:])
		require.NoError(t, os.WriteFile(path, raw, 0o644))
		x, err := g.open().ReadIndex(IndexOptions{VerifyChecksum: true})
		require.NoError(t, err)
		assert.NotEmpty(t, x.Entries)
	})
	t.Run("split index", func(t *testing.T) {
		for _, version := range []string{"2", "4"} {
			g := populated(t)
			for i := range 100 {
				g.write(fmt.Sprintf("many/%d", i), fmt.Sprint(i))
			}
			g.run("add", "many")
			g.run("update-index", "--index-version", version)
			g.run("config", "splitIndex.maxPercentChange", "100")
			g.run("update-index", "--split-index")
			g.write("a/c/d", "changed")
			g.write("many/7", "changed")
			g.write("many/99x", "new")
			g.write("0new", "new")
			g.run("add", "a/c/d", "many/7", "many/99x", "0new")
			g.run("rm", "-q", "--cached", "b/long", "many/50", "z\xff")
			x := sameIndex(t, g)
			assert.Empty(t, x.Degraded)
			assert.Contains(t, string(x.Raw), "link")
			shared, err := filepath.Glob(g.dir + "/.git/sharedindex.*")
			require.NoError(t, err)
			for _, path := range shared {
				require.NoError(t, os.Remove(path))
			}
			x, err = g.open().ReadIndex(IndexOptions{})
			require.NoError(t, err)
			assert.Contains(t, x.Degraded, "split index")
			assert.Nil(t, x.Entries)
		}
	})
	t.Run("sparse index", func(t *testing.T) {
		g := newGit(t)
		for _, name := range []string{"top", "in/x", "in/y", "out/x", "out/sub/y", "zed/q"} {
			g.write(name, name)
		}
		g.commit("one")
		g.run("sparse-checkout", "init", "--cone", "--sparse-index")
		g.run("sparse-checkout", "set", "in")
		x := sameIndex(t, g, "--sparse")
		assert.True(t, x.Sparse)
		assert.Equal(t, "sparse index", x.Degraded)
		out := x.Find("out/")
		require.GreaterOrEqual(t, out, 0)
		assert.Equal(t, uint32(ModeDir), x.Entries[out].Mode)
		assert.NotZero(t, x.Entries[out].Flags&SkipWorktree)
		for dir, want := range map[string]bool{"": true, "in": true, "out": true, "out/sub": true, "out/sub/deep": true,
			"ou": false, "nope": false, "in/x": false} {
			assert.Equal(t, want, x.HasPrefix(dir), dir)
		}
		assert.True(t, g.open().Settings.SparseCheckout)
	})
	t.Run("linked worktree", func(t *testing.T) {
		g := newGit(t)
		g.commit("one")
		g.run("worktree", "add", "-q", "../linked")
		linked := g.at("../linked")
		linked.write("more", "x")
		linked.run("add", "more")
		assert.GreaterOrEqual(t, sameIndex(t, linked).Find("more"), 0)
		assert.Equal(t, -1, sameIndex(t, g).Find("more"))
	})
}

func TestIndexLookup(t *testing.T) {
	x := sameIndex(t, populated(t))
	for dir, want := range map[string]bool{"": true, "a": true, "a/c": true, "b": true, "nested": false, "script": false,
		"a.": false, "a/c/d": false, "A": false, "zz": false} {
		assert.Equal(t, want, x.HasPrefix(dir), dir)
	}
	assert.Equal(t, -1, x.Find("a"))
	assert.Equal(t, -1, x.Find(""))
	assert.Equal(t, -1, x.Find("zzz"))
}

func TestCacheTree(t *testing.T) {
	g := populated(t)
	g.run("read-tree", "HEAD")
	x := sameIndex(t, g)
	require.NotNil(t, x.Tree)
	assert.Equal(t, len(x.Entries), x.Tree.Count)
	assert.Equal(t, g.run("rev-parse", "HEAD^{tree}"), x.Tree.OID.String())
	var walk func(node *CacheTree, path string) int
	walk = func(node *CacheTree, path string) int {
		n := 1
		for i := range node.Children {
			c := &node.Children[i]
			assert.Equal(t, g.run("rev-parse", "HEAD:"+path+c.Name), c.OID.String())
			n += walk(c, path+c.Name+"/")
		}
		return n
	}
	assert.Equal(t, strings.Count(g.run("ls-tree", "-r", "-d", "-t", "HEAD"), " tree ")+1, walk(x.Tree, ""))
	g.write("a/c/d", "changed")
	g.run("add", "a/c/d")
	x = sameIndex(t, g)
	assert.Equal(t, -1, x.Tree.Count)
	for _, c := range x.Tree.Children {
		assert.Equal(t, c.Name == "a", c.Count == -1, c.Name)
	}
}

func TestIndexCorrupt(t *testing.T) {
	g := populated(t)
	path := g.dir + "/.git/index"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	read := func(data []byte, opts IndexOptions) error {
		require.NoError(t, os.WriteFile(path, data, 0o644))
		_, err := g.open().ReadIndex(opts)
		return err
	}
	for _, n := range []int{0, 3, 11, 31, 100, len(raw) / 2} {
		assert.ErrorIs(t, read(raw[:n], IndexOptions{}), ErrIndex, "%d bytes", n)
	}
	flipped := []byte(string(raw))
	flipped[60] ^= 1 // in an object id: nothing but the checksum can tell
	assert.NoError(t, read(flipped, IndexOptions{}))
	assert.ErrorIs(t, read(flipped, IndexOptions{VerifyChecksum: true}), ErrIndex)

	many := []byte(string(raw))
	binary.BigEndian.PutUint32(many[8:], 1<<31)
	assert.ErrorIs(t, read(many, IndexOptions{}), ErrIndex)

	swapped := strings.Replace(string(raw), "a/c/d\x00", "\xff/c/d\x00", 1)
	assert.ErrorIs(t, read([]byte(swapped), IndexOptions{}), ErrIndex, "out of order")

	// What is too new is degraded, not broken.
	for from, to := range map[string]string{"DIRC\x00\x00\x00\x02": "DIRC\x00\x00\x00\x09", "TREE": "tree"} {
		changed := []byte(strings.Replace(string(raw), from, to, 1))
		require.NoError(t, os.WriteFile(path, changed, 0o644))
		x, err := g.open().ReadIndex(IndexOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, x.Degraded)
	}
	upper := []byte(strings.Replace(string(raw), "TREE", "Tree", 1))
	assert.NoError(t, read(upper, IndexOptions{}))
}

func TestRacyAndSmudged(t *testing.T) {
	at := func(sec, nsec uint32) Timestamp { return Timestamp{sec, nsec} }
	for _, c := range []struct {
		entry, index Timestamp
		want         bool
	}{
		{at(10, 5), at(10, 6), false}, {at(10, 6), at(10, 6), true}, {at(10, 7), at(10, 6), true},
		{at(9, 9), at(10, 1), false}, {at(11, 0), at(10, 9), true},
		{at(10, 0), at(10, 9), true}, {at(10, 9), at(10, 0), true}, {at(9, 0), at(10, 0), false},
	} {
		x := &Index{Entries: []Entry{{Mtime: c.entry}}, Mtime: c.index}
		assert.Equal(t, c.want, x.Racy(0), "%v %v", c.entry, c.index)
	}
	assert.True(t, (&Entry{OID: OID{1}}).Smudged())
	assert.False(t, (&Entry{OID: OID{1}, Size: 1}).Smudged())
	g := newGit(t)
	g.write("empty", "")
	g.commit("one")
	x := sameIndex(t, g)
	assert.False(t, x.Entries[x.Find("empty")].Smudged())
	info, err := os.Stat(g.dir + "/.git/index")
	require.NoError(t, err)
	assert.Equal(t, uint32(info.ModTime().Unix()), x.Mtime.Sec)
	assert.Equal(t, uint32(info.ModTime().Nanosecond()), x.Mtime.Nsec)
}

// manyEntries is an index of n entries in folders of a hundred.
func manyEntries(n int) []IndexEntryOut {
	entries := make([]IndexEntryOut, n)
	for i := range entries {
		entries[i] = IndexEntryOut{Name: fmt.Sprintf("some/folder/of/%05d/file%02d.go", i/100, i%100),
			Entry: Entry{Mode: ModeFile, OID: OID{byte(i), byte(i >> 8)}, Mtime: Timestamp{1, 1}}}
	}
	return entries
}

func TestReadIndexAllocations(t *testing.T) {
	raw, err := encodeIndex(manyEntries(10_000), IndexSignature{Seconds: 100, Nanos: 1})
	require.NoError(t, err)
	n := testing.AllocsPerRun(3, func() {
		if _, err := ParseIndex(raw, IndexOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	assert.Less(t, n, 20.0, "allocations for 10,000 entries")
}

func BenchmarkReadIndex(b *testing.B) {
	raw, err := encodeIndex(manyEntries(100_000), IndexSignature{Seconds: 100, Nanos: 1})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.WriteFile(dir+"/index", raw, 0o644); err != nil {
		b.Fatal(err)
	}
	r := &Repo{GitDir: dir, format: format{objectFormat: "sha1"}}
	for b.Loop() {
		if _, err := r.ReadIndex(IndexOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzIndex(f *testing.F) {
	small, _ := encodeIndex([]IndexEntryOut{
		{Name: "a", Entry: Entry{Mode: ModeFile, Flags: SkipWorktree}}, {Name: "a/b", Entry: Entry{Mode: ModeExec}},
	}, IndexSignature{})
	f.Add(small)
	v4 := "DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 60) + "\x00\x01\x00a\x00" + strings.Repeat("\x00", 20)
	f.Add([]byte(v4))
	f.Add([]byte(strings.Replace(v4, "a\x00", "a\x00TREE\x00\x00\x00\x06\x00-1 0\n", 1)))
	f.Add([]byte(strings.Replace(v4, "a\x00", "a\x00link\x00\x00\x00\x2c"+strings.Repeat("\x00", 44), 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := &Index{Raw: data}
		link, err := x.decode(IndexOptions{}, false)
		if err != nil {
			return
		}
		if link != nil {
			base := &Index{Raw: data}
			if _, err := base.decode(IndexOptions{}, true); err != nil {
				return
			}
			if x.merge(base, link) != nil {
				return
			}
		}
		for i := range x.Entries {
			name := x.Name(i)
			if at := x.Find(name); at < 0 || x.Name(at) != name {
				t.Fatalf("entry %d %q found at %d", i, name, at)
			}
			x.HasPrefix(name)
		}
	})
}
