package repo

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	who  = Ident{Name: "R <x>\n", Email: "r@example.com"}
	when = time.Unix(1_700_000_100, 0).In(time.FixedZone("", -5400))
)

func reflog(g git, ref string) []string {
	out, err := g.try("reflog", "show", "--format=%H %gs", ref)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(out), "\n")
}

// threeCommits has main at two and side at three, both packed.
func threeCommits(t *testing.T) (g git, one, two, three string) {
	g = newGit(t)
	one = g.commit("one")
	two = g.commit("two")
	g.run("checkout", "-q", "-b", "side")
	three = g.commit("three")
	g.run("checkout", "-q", "main")
	g.run("pack-refs", "--all")
	return g, one, two, three
}

func headOf(t *testing.T, g git) Head {
	t.Helper()
	h, err := g.open().Head()
	require.NoError(t, err)
	return h
}

func TestWriteHead(t *testing.T) {
	const main, side = "refs/heads/main", "refs/heads/side"
	cases := []struct {
		name string
		new  func(one, two, three string) Head
		logs []string // those that get an entry
	}{
		{"same branch back", func(one, _, _ string) Head { return Head{Ref: main, ID: one} }, []string{"HEAD", main}},
		{"other branch", func(_, _, three string) Head { return Head{Ref: side, ID: three} }, []string{"HEAD"}},
		{"detached", func(one, _, _ string) Head { return Head{ID: one} }, []string{"HEAD"}},
		{"a branch that is gone", func(one, _, _ string) Head { return Head{Ref: "refs/heads/gone/far", ID: one} },
			[]string{"HEAD", "refs/heads/gone/far"}},
		{"an unborn branch", func(_, _, _ string) Head { return Head{Ref: "refs/heads/new"} }, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, one, two, three := threeCommits(t)
			packed := g.read(".git/packed-refs")
			r, old, to := g.open(), headOf(t, g), c.new(one, two, three)
			before := map[string]int{}
			refs := []string{"HEAD", main, side, "refs/heads/gone/far"}
			for _, ref := range refs {
				before[ref] = strings.Count(readOr(g, ".git/logs/"+ref), "\n")
			}
			require.NoError(t, r.WriteHead(old, to, "retcon: put\nback", who, when))
			noLocks(t, r)
			assert.Equal(t, to, headOf(t, g))
			assert.Equal(t, packed, g.read(".git/packed-refs"))
			if to.Ref != "" {
				assert.Equal(t, to.Ref, g.run("symbolic-ref", "HEAD"))
			}
			if to.ID != "" {
				assert.Equal(t, to.ID, g.run("rev-parse", "HEAD"))
			}
			for _, ref := range refs {
				log := readOr(g, ".git/logs/"+ref)
				want := before[ref]
				if slices.Contains(c.logs, ref) {
					want++
					last := log[strings.LastIndexByte(log[:len(log)-1], '\n')+1:]
					assert.True(t, strings.HasSuffix(last, to.ID+" R x <r@example.com> 1700000100 -0130\tretcon: put back\n"), last)
					assert.Equal(t, to.ID+" retcon: put back", reflog(g, ref)[0])
				}
				assert.Equal(t, want, strings.Count(log, "\n"), ref)
			}
			g.run("fsck", "--strict")
			if to.ID != "" {
				g.run("status")
			}
			require.NoError(t, r.WriteHead(old, to, "again", who, when), "a second time nothing happens")
			assert.NotContains(t, readOr(g, ".git/logs/HEAD"), "again")
		})
	}
}

func readOr(g git, name string) string {
	data, _ := os.ReadFile(filepath.Join(g.dir, name)) // missing is empty
	return string(data)
}

func TestWriteHeadFirstCommit(t *testing.T) {
	g := newGit(t)
	g.write("f", "x")
	g.run("add", "f")
	id := g.run("commit-tree", "-m", "x", g.run("write-tree"))
	require.NoError(t, g.open().WriteHead(Head{Ref: "refs/heads/main"}, Head{Ref: "refs/heads/main", ID: id}, "m", who, when))
	assert.Equal(t, id, g.run("rev-parse", "main"))
	assert.Len(t, reflog(g, "main"), 1)
}

func TestWriteHeadRefuses(t *testing.T) {
	const main, side = "refs/heads/main", "refs/heads/side"
	lockOf := func(name string) func(git) {
		return func(g git) { g.write(".git/"+name+".lock", "") }
	}
	cases := []struct {
		name string
		do   func(g git)
		old  func(one, two, three string) Head
		new  func(one, two, three string) Head
		want string // file that is locked, or ""
		is   error
	}{
		{"HEAD on another commit", nil, func(one, _, _ string) Head { return Head{Ref: main, ID: one} },
			func(_, _, three string) Head { return Head{ID: three} }, "", ErrRefMoved},
		{"HEAD on another branch", nil, func(_, two, _ string) Head { return Head{Ref: side, ID: two} },
			func(_, _, three string) Head { return Head{ID: three} }, "", ErrRefMoved},
		{"the branch has moved", nil, nil, func(one, _, _ string) Head { return Head{Ref: side, ID: one} }, "", ErrRefMoved},
		{"the branch was born", nil, nil, func(_, _, _ string) Head { return Head{Ref: side} }, "", ErrRefMoved},
		{"this branch was born", nil, nil, func(_, _, _ string) Head { return Head{Ref: main} }, "", ErrRefMoved},
		{"HEAD is locked", lockOf("HEAD"), nil, func(one, _, _ string) Head { return Head{ID: one} }, "HEAD.lock", nil},
		{"the branch is locked", lockOf(main), nil, func(one, _, _ string) Head { return Head{Ref: main, ID: one} }, main + ".lock", nil},
		{"bad name", nil, nil, func(one, _, _ string) Head { return Head{Ref: "refs/../x", ID: one} }, "", ErrBadRef},
		{"bad id", nil, nil, func(_, _, _ string) Head { return Head{Ref: main, ID: "xyz"} }, "", ErrBadRef},
		{"nothing", nil, nil, func(_, _, _ string) Head { return Head{} }, "", ErrBadRef},
		{"below a packed ref", nil, nil, func(one, _, _ string) Head { return Head{Ref: side + "/x", ID: one} }, "", ErrBadRef},
		{"above a packed ref", func(g git) {
			g.run("branch", "dir/leaf")
			g.run("pack-refs", "--all")
		}, nil, func(one, _, _ string) Head { return Head{Ref: "refs/heads/dir", ID: one} }, "", ErrBadRef},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, one, two, three := threeCommits(t)
			if c.do != nil {
				c.do(g)
			}
			r, was := g.open(), headOf(t, g)
			old := was
			if c.old != nil {
				old = c.old(one, two, three)
			}
			err := r.WriteHead(old, c.new(one, two, three), "m", who, when)
			require.Error(t, err)
			if c.is != nil {
				assert.ErrorIs(t, err, c.is)
				noLocks(t, r)
			} else {
				var locked *LockExistsError
				require.ErrorAs(t, err, &locked)
				assert.Equal(t, filepath.Join(g.dir, ".git", c.want), locked.Path)
				require.NoError(t, os.Remove(locked.Path), "somebody else's lock was taken away")
				noLocks(t, r)
			}
			assert.Equal(t, was, headOf(t, g))
			assert.NotContains(t, readOr(g, ".git/logs/HEAD"), "R x")
		})
	}
}

func TestWriteHeadOtherWorktrees(t *testing.T) {
	g, one, two, three := threeCommits(t)
	g.run("worktree", "add", "-q", "../linked", "side")
	linked := g.at("../linked")
	var used *BranchInUseError

	err := g.open().WriteHead(headOf(t, g), Head{Ref: "refs/heads/side", ID: three}, "m", who, when)
	require.ErrorAs(t, err, &used)
	err = g.open().WriteRef("refs/heads/side", three, one, "m", who, when)
	require.ErrorAs(t, err, &used)
	err = linked.open().WriteHead(headOf(t, linked), Head{Ref: "refs/heads/main", ID: two}, "m", who, when)
	require.ErrorAs(t, err, &used)
	assert.Equal(t, filepath.Join(g.dir, ".git"), used.GitDir)

	require.NoError(t, linked.open().WriteHead(headOf(t, linked), Head{Ref: "refs/heads/side", ID: one}, "m", who, when))
	assert.Equal(t, one, linked.run("rev-parse", "HEAD"))
	assert.Equal(t, one+" m", reflog(linked, "HEAD")[0])
	assert.Equal(t, two, g.run("rev-parse", "HEAD"))
	assert.NotContains(t, readOr(g, ".git/logs/HEAD"), "R x")
}

func TestWriteRef(t *testing.T) {
	g, one, two, three := threeCommits(t)
	r := g.open()
	assert.ErrorIs(t, r.WriteRef("refs/heads/side", two, one, "m", who, when), ErrRefMoved)
	assert.ErrorIs(t, r.WriteRef("refs/heads/side", "", one, "m", who, when), ErrRefMoved)
	assert.ErrorIs(t, r.WriteRef("refs/heads/side", three, "", "m", who, when), ErrBadRef)
	require.NoError(t, r.WriteRef("refs/heads/side", three, one, "m", who, when))
	assert.Equal(t, one, g.run("rev-parse", "side"))
	assert.Equal(t, []string{one + " m"}, reflog(g, "side")[:1])
	assert.NotContains(t, readOr(g, ".git/logs/HEAD"), "R x")

	require.NoError(t, r.WriteRef("refs/heads/main", two, one, "m", who, when))
	assert.Equal(t, one+" m", reflog(g, "HEAD")[0])

	require.NoError(t, os.MkdirAll(g.dir+"/.git/refs/heads/fresh/empty/er", 0o755))
	require.NoError(t, r.WriteRef("refs/heads/fresh", "", one, "m", who, when))
	assert.Equal(t, one, g.run("rev-parse", "fresh"))

	g.run("config", "core.logAllRefUpdates", "false")
	require.NoError(t, g.open().WriteRef("refs/heads/silent", "", one, "m", who, when))
	assert.NoFileExists(t, g.dir+"/.git/logs/refs/heads/silent")

	g.run("symbolic-ref", "refs/heads/alias", "refs/heads/side")
	require.NoError(t, g.open().WriteRef("refs/heads/alias", one, two, "m", who, when))
	assert.Equal(t, two, g.run("rev-parse", "side"))
	assert.Equal(t, "refs/heads/side", g.run("symbolic-ref", "refs/heads/alias"))
	g.run("fsck", "--strict")
	noLocks(t, r)
}

func TestWriteShared(t *testing.T) {
	g, one, two, _ := threeCommits(t)
	g.run("config", "core.sharedRepository", "0666")
	require.NoError(t, g.open().WriteHead(headOf(t, g), Head{Ref: "refs/heads/deep/main", ID: two}, "m", who, when))
	require.NoError(t, g.open().WriteHead(headOf(t, g), Head{ID: one}, "m", who, when))
	for name, want := range map[string]os.FileMode{"HEAD": 0o666, "refs/heads/deep/main": 0o666, "refs/heads/deep": os.ModeDir | os.ModeSetgid | 0o777} {
		info, err := os.Stat(filepath.Join(g.dir, ".git", name))
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode(), name)
	}
}

func TestWriteIndex(t *testing.T) {
	for _, version := range []int{2, 3} {
		g := populated(t)
		if version == 3 {
			g.run("update-index", "--skip-worktree", "a/c/d")
			g.write("ita", "x")
			g.run("add", "-N", "ita")
		}
		want, status := debugged(g), g.run("status", "--porcelain")
		r := g.open()
		x, err := r.ReadIndex(IndexOptions{})
		require.NoError(t, err)
		out := make([]IndexEntryOut, 0, len(x.Entries))
		for i := range x.Entries {
			out = append([]IndexEntryOut{x.Out(i)}, out...) // in reverse
		}
		signature := x.Signature
		signature.Seconds++ // so that nothing is racy and must come back changed
		raw, err := encodeIndex(out, signature)
		require.NoError(t, err)
		require.NoError(t, r.publishIndex(raw, x.Signature))
		noLocks(t, r)
		assert.Equal(t, want, debugged(g))
		assert.Equal(t, version, sameIndex(t, g).Version)
		g.run("fsck", "--strict")
		assert.Equal(t, status, g.run("status", "--porcelain"))
		assert.Equal(t, g.run("write-tree"), g.run("write-tree"))

		// Once more as callers do, with what was just read.
		x, err = r.ReadIndex(IndexOptions{})
		require.NoError(t, err)
		require.NoError(t, r.WriteIndex(out, x.Signature))
		assert.Equal(t, status, g.run("status", "--porcelain"))
	}
}

func TestWriteIndexStages(t *testing.T) {
	g := newGit(t)
	oid := func(content string) OID {
		g.write("f", content)
		raw, err := hex.DecodeString(g.run("hash-object", "-w", "f"))
		require.NoError(t, err)
		return OID(raw)
	}
	var out []IndexEntryOut
	for stage := uint8(3); stage > 0; stage-- {
		out = append(out, IndexEntryOut{Name: "f", Entry: Entry{Mode: ModeFile, OID: oid(fmt.Sprint(stage)), Stage: stage}})
	}
	require.NoError(t, g.open().WriteIndex(out, IndexSignature{}))
	assert.Equal(t, "3\n2\n1", strings.Join([]string{g.run("show", ":3:f"), g.run("show", ":2:f"), g.run("show", ":1:f")}, "\n"))
	assert.Contains(t, g.run("status", "--porcelain"), "UU f")
}

// A file changed in the same moment as the old index was written must not
// look clean because the new index is younger.
func TestWriteIndexKeepsRaciness(t *testing.T) {
	g := newGit(t)
	g.write("f", "old!")
	g.commit("one")
	r := g.open()
	x, err := r.ReadIndex(IndexOptions{})
	require.NoError(t, err)
	entry := x.Out(x.Find("f"))
	entry.Mtime = x.Mtime
	raw, err := encodeIndex([]IndexEntryOut{entry}, x.Signature)
	require.NoError(t, err)
	y, err := ParseIndex(raw, IndexOptions{VerifyChecksum: true})
	require.NoError(t, err)
	assert.True(t, y.Entries[0].Smudged())

	entry.Mtime.Sec -= 10
	raw, err = encodeIndex([]IndexEntryOut{entry}, x.Signature)
	require.NoError(t, err)
	y, err = ParseIndex(raw, IndexOptions{})
	require.NoError(t, err)
	assert.False(t, y.Entries[0].Smudged())
}

func TestWriteIndexRefuses(t *testing.T) {
	g := newGit(t)
	g.commit("one")
	r := g.open()
	x, err := r.ReadIndex(IndexOptions{})
	require.NoError(t, err)
	before := g.read(".git/index")
	good := IndexEntryOut{Name: "a", Entry: Entry{Mode: ModeFile}}

	for name, entries := range map[string][]IndexEntryOut{
		"twice":         {good, good},
		"both merged":   {good, {Name: "a", Entry: Entry{Mode: ModeFile, Stage: 1}}},
		"directory":     {{Name: "a", Entry: Entry{Mode: ModeDir}}},
		"no mode":       {{Name: "a"}},
		"stage":         {{Name: "a", Entry: Entry{Mode: ModeFile, Stage: 4}}},
		"empty":         {{Name: "", Entry: Entry{Mode: ModeFile}}},
		"absolute":      {{Name: "/a", Entry: Entry{Mode: ModeFile}}},
		"dot dot":       {{Name: "a/../b", Entry: Entry{Mode: ModeFile}}},
		"git directory": {{Name: "a/.GIT/config", Entry: Entry{Mode: ModeFile}}},
		"NUL":           {{Name: "a\x00b", Entry: Entry{Mode: ModeFile}}},
	} {
		assert.ErrorIs(t, r.WriteIndex(entries, x.Signature), ErrIndex, name)
	}
	assert.ErrorIs(t, r.WriteIndex(nil, IndexSignature{}), ErrIndexChanged)
	assert.ErrorIs(t, r.WriteRawIndex([]byte("DIRC"), x.Signature), ErrIndex)
	assert.Equal(t, before, g.read(".git/index"))
	noLocks(t, r)

	g.write(".git/index.lock", "")
	var locked *LockExistsError
	require.ErrorAs(t, r.WriteIndex(nil, x.Signature), &locked)
	assert.FileExists(t, locked.Path)
	require.NoError(t, os.Remove(locked.Path))

	g.write("new", "x")
	g.run("add", "new")
	before = g.read(".git/index")
	assert.ErrorIs(t, r.WriteIndex(nil, x.Signature), ErrIndexChanged)
	assert.Equal(t, before, g.read(".git/index"))
	noLocks(t, r)
}

func TestWriteRawIndex(t *testing.T) {
	g := populated(t)
	g.run("update-index", "--index-version", "4")
	r := g.open()
	saved, err := r.ReadIndex(IndexOptions{})
	require.NoError(t, err)
	want := debugged(g)
	g.run("rm", "-q", "--cached", "a/b", "script")
	x, err := r.ReadIndex(IndexOptions{})
	require.NoError(t, err)
	require.NoError(t, r.WriteRawIndex(saved.Raw, x.Signature))
	assert.Equal(t, want, debugged(g))
	assert.Equal(t, string(saved.Raw), g.read(".git/index"))

	g.run("update-index", "--split-index")
	x, err = r.ReadIndex(IndexOptions{})
	require.NoError(t, err)
	assert.ErrorIs(t, r.WriteRawIndex(x.Raw, x.Signature), ErrIndex)
}

// Many writers, git among them: every one either wins or is told, and no
// entry is lost.
func TestWriteRefConcurrently(t *testing.T) {
	g, one, _, _ := threeCommits(t)
	r := g.open()
	const writers = 8
	results := make(chan error, writers)
	for i := range writers {
		go func() {
			results <- r.WriteRef("refs/heads/race", "", one, fmt.Sprint(i), who, when)
		}()
	}
	won := 0
	for range writers {
		err := <-results
		var locked *LockExistsError
		if err == nil {
			won++
		} else if !assert.ErrorAs(t, err, &locked) {
			t.Log(err)
		}
	}
	assert.GreaterOrEqual(t, won, 1)
	assert.Len(t, reflog(g, "race"), 1, "the first creates it, the others find it where it should be")
	noLocks(t, r)
}
