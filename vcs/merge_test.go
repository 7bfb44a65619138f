package vcs

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// state is a worktree written down: content of files by path, with these
// prefixes: "->" a link, "x:" executable, "0600:" a mode of its own. A path that
// ends in a slash is a directory.
type state map[string]string

// become makes dir hold s and nothing else.
func become(t testing.TB, dir string, s state) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != ".git" && e.Name() != "."+StoreName {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	for path, what := range s {
		full := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if strings.HasSuffix(path, "/") {
			require.NoError(t, os.MkdirAll(full, 0o755))
			continue
		}
		if to, ok := strings.CutPrefix(what, "->"); ok {
			require.NoError(t, os.Symlink(to, full))
			continue
		}
		mode := os.FileMode(0o644)
		if rest, ok := strings.CutPrefix(what, "x:"); ok {
			what, mode = rest, 0o755
		} else if rest, ok := strings.CutPrefix(what, "0600:"); ok {
			what, mode = rest, 0o600
		}
		require.NoError(t, os.WriteFile(full, []byte(what), 0o644))
		require.NoError(t, os.Chmod(full, mode))
	}
}

// stateOf writes a commit down. Directories are named where they are empty.
func stateOf(t testing.TB, w *Worktree, c Commit) state {
	t.Helper()
	all := states(t, w, c)
	s := make(state)
	for path, st := range all {
		switch st.Kind {
		case KindDir:
			empty := true
			for other := range all {
				empty = empty && !strings.HasPrefix(other, path+"/")
			}
			if empty {
				s[path+"/"] = ""
			}
		case KindLink, KindFile:
			b, err := w.Content(st)
			require.NoError(t, err)
			prefix := ""
			switch {
			case st.Kind == KindLink:
				prefix = "->"
			case st.Mode == 0o755:
				prefix = "x:"
			case st.Mode == 0o600:
				prefix = "0600:"
			}
			s[path] = prefix + string(b)
		default:
			s[path] = "(" + st.Kind + ")"
		}
	}
	return s
}

func TestMerge(t *testing.T) {
	big := strings.Repeat("line\n", 3) + "\x00"
	cases := []struct {
		name               string
		base, ours, theirs state
		want               state
		conflicts          []string
	}{
		{"one side each", state{"a": "1", "b": "1"}, state{"a": "2", "b": "1"}, state{"a": "1", "b": "2"}, state{"a": "2", "b": "2"}, nil},
		{"both alike", state{"a": "1"}, state{"a": "2", "n": "n"}, state{"a": "2", "n": "n"}, state{"a": "2", "n": "n"}, nil},
		{"new on each", state{}, state{"a": "1"}, state{"d/b": "2"}, state{"a": "1", "d/b": "2"}, nil},
		{"gone on each", state{"a": "1", "b": "1", "c": "1"}, state{"b": "1", "c": "1"}, state{"a": "1", "c": "1"}, state{"c": "1"}, nil},
		{"lines", state{"a": "1\n2\n3\n4\n5\n"}, state{"a": "one\n2\n3\n4\n5\n"}, state{"a": "1\n2\n3\n4\nfive\n"}, state{"a": "one\n2\n3\n4\nfive\n"}, nil},
		{"lines that touch", state{"a": "1\n2\n3\n"}, state{"a": "one\n2\n3\n"}, state{"a": "1\ntwo\n3\n"}, state{"a": "one\n2\n3\n"}, []string{"a content"}},
		{"the same lines", state{"a": "1\n2\n3\n"}, state{"a": "x\n2\n3\n"}, state{"a": "y\n2\n3\n"}, state{"a": "x\n2\n3\n"}, []string{"a content"}},
		{"content and mode", state{"a": "1\n2\n3\n"}, state{"a": "x:1\n2\n3\n"}, state{"a": "1\n2\nthree\n"}, state{"a": "x:1\n2\nthree\n"}, nil},
		{"two modes", state{"a": "1"}, state{"a": "x:1"}, state{"a": "0600:1"}, state{"a": "x:1"}, []string{"a mode"}},
		{"content here, two modes", state{"a": "1"}, state{"a": "x:1"}, state{"a": "0600:2"}, state{"a": "x:2"}, []string{"a mode"}},
		{"binary", state{"a": big}, state{"a": big + "x"}, state{"a": "x" + big}, state{"a": big + "x"}, []string{"a binary"}},
		{"deleted here", state{"a": "1", "k": ""}, state{"k": ""}, state{"a": "2", "k": ""}, state{"k": ""}, []string{"a delete/modify"}},
		{"deleted there", state{"a": "1"}, state{"a": "2"}, state{}, state{"a": "2"}, []string{"a delete/modify"}},
		{"mode here, deleted there", state{"a": "1"}, state{"a": "x:1"}, state{}, state{"a": "x:1"}, []string{"a delete/modify"}},
		{"added twice", state{}, state{"a": "1"}, state{"a": "2"}, state{"a": "1"}, []string{"a add/add"}},
		{"added twice, other modes", state{}, state{"a": "x:1"}, state{"a": "1"}, state{"a": "x:1"}, []string{"a mode"}},
		{"two links", state{"a": "->x"}, state{"a": "->y"}, state{"a": "->z"}, state{"a": "->y"}, []string{"a link"}},
		{"link here", state{"a": "1"}, state{"a": "->y"}, state{"a": "2"}, state{"a": "->y"}, []string{"a link"}},
		{"link on one side", state{"a": "1"}, state{"a": "->y"}, state{"a": "1"}, state{"a": "->y"}, nil},
		{"directory here, file there", state{}, state{"a/b": "1"}, state{"a": "2"}, state{"a/b": "1"}, []string{"a file/directory"}},
		{"file here, directory there", state{}, state{"a": "1"}, state{"a/b": "2"}, state{"a": "1"}, []string{"a file/directory"}},
		{"file becomes a directory", state{"a": "1"}, state{"a/b": "1"}, state{"a": "1", "c": "1"}, state{"a/b": "1", "c": "1"}, nil},
		{"directory becomes a file", state{"a/b": "1"}, state{"a/b": "1", "c": ""}, state{"a": "1"}, state{"a": "1", "c": ""}, nil},
		{"directory becomes a file, changed inside", state{"a/b": "1"}, state{"a/b": "2"}, state{"a": "1"}, state{"a/b": "2"}, []string{"a file/directory"}},
		{"file becomes a directory, changed there", state{"a": "1"}, state{"a/b": "1"}, state{"a": "2"}, state{"a/b": "1"}, []string{"a file/directory"}},
		{"became a file here, empty there", state{"a/b": "1"}, state{"a": "1"}, state{"a/": ""}, state{"a": "1"}, nil},
		{"a directory goes there, and gets a file here", state{"d/a": "1", "d/e/b": "1"}, state{"d/a": "1", "d/e/b": "1", "d/n": "1"}, state{}, state{"d/n": "1"}, nil},
		{"a directory goes here, changed there", state{"d/a": "1", "d/b": "1"}, state{}, state{"d/a": "2", "d/b": "1"}, state{}, []string{"d/a delete/modify"}},
		{"empty directories", state{"o/": "", "t/": "", "b/": ""}, state{"t/": "", "b/": "", "new/": ""}, state{"o/": "", "b/": "", "d/e/": ""}, state{"b/": "", "new/": "", "d/e/": ""}, nil},
		{"emptied by both", state{"d/a": "1", "d/b": "1"}, state{"d/a": "1"}, state{"d/b": "1"}, state{"d/": ""}, nil},
		{"deep", state{"a/b/c/d": "1", "a/b/e": "1"}, state{"a/b/c/d": "2", "a/b/e": "1"}, state{"a/b/c/d": "1", "a/b/e": "2", "a/f": "1"}, state{"a/b/c/d": "2", "a/b/e": "2", "a/f": "1"}, nil},
		{"no end of line", state{"a": "1\n2\n3"}, state{"a": "one\n2\n3"}, state{"a": "1\n2\n3\n4"}, state{"a": "one\n2\n3\n4"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			w := open(t, dir, Options{Create: true})
			var commits []Commit
			for _, s := range []state{c.base, c.ours, c.theirs} {
				become(t, dir, s)
				commits = append(commits, capture(t, w).Commit)
			}
			m, err := w.Merge(context.Background(), commits[0], commits[1:], MergeOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.want, stateOf(t, w, m.Commit))
			var got []string
			for _, x := range m.Conflicts {
				assert.Equal(t, 1, x.Side)
				assert.Equal(t, stateAt(t, w, commits[0], x.Path), x.Base)
				assert.Equal(t, stateAt(t, w, commits[1], x.Path), x.Ours)
				assert.Equal(t, stateAt(t, w, commits[2], x.Path), x.Theirs)
				got = append(got, x.Path+" "+x.Kind)
			}
			assert.Equal(t, c.conflicts, got)
			_, _, err = w.Restore(context.Background(), m.Commit)
			require.NoError(t, err)
			assert.Equal(t, c.want, stateOf(t, w, capture(t, w).Commit), "a worktree can go there")
		})
	}
}

func stateAt(t testing.TB, w *Worktree, c Commit, path string) State {
	t.Helper()
	if s, ok := states(t, w, c)[path]; ok {
		return s
	}
	return State{Kind: KindAbsent}
}

func TestMergeMarkers(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	var commits []Commit
	for _, s := range []string{"a\nb\nc\n", "a\nx\nmine\nz\nc\n", "a\nx\nyours\nz\nc", "a\nthird\nc\n"} {
		become(t, dir, state{"f": s})
		commits = append(commits, capture(t, w).Commit)
	}
	opt := MergeOptions{Markers: true, Labels: []string{"one", "two"}}
	m, err := w.Merge(context.Background(), commits[0], commits[1:3], opt)
	require.NoError(t, err)
	assert.Equal(t, "a\nx\n<<<<<<< one\nmine\nz\nc\n=======\nyours\nz\nc\n>>>>>>> two\n", content(t, w, m.Commit, "f"))
	require.Len(t, m.Conflicts, 1)

	m, err = w.Merge(context.Background(), commits[0], []Commit{commits[1], commits[3]}, MergeOptions{Markers: true})
	require.NoError(t, err)
	assert.Equal(t, "a\n<<<<<<< side 1\nx\nmine\nz\n=======\nthird\n>>>>>>> side 2\nc\n", content(t, w, m.Commit, "f"))
}

// Of lines that conflict those of the first side are taken, and the rest of the
// text is merged.
func TestMergeLines(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	var commits []Commit
	for _, s := range []string{"a\nb\nc\nd\ne\nf\ng\n", "a\nmine\nc\nd\ne\nf\ng\n", "a\nyours\nc\nd\ne\nf\nyours, too\n"} {
		become(t, dir, state{"f": s})
		commits = append(commits, capture(t, w).Commit)
	}
	for _, test := range []struct {
		sides []Commit
		want  string
	}{
		{[]Commit{commits[1], commits[2]}, "a\nmine\nc\nd\ne\nf\nyours, too\n"},
		{[]Commit{commits[2], commits[1]}, "a\nyours\nc\nd\ne\nf\nyours, too\n"},
	} {
		m, err := w.Merge(context.Background(), commits[0], test.sides, MergeOptions{Lines: true, Sync: true})
		require.NoError(t, err)
		assert.Equal(t, test.want, content(t, w, m.Commit, "f"))
		require.Len(t, m.Conflicts, 1)
		assert.Equal(t, ConflictContent, m.Conflicts[0].Kind)
	}
}

func TestMergeMany(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	lines := func(n int) string {
		out := strings.Split("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", "\n")
		if n >= 0 {
			out[n] = "changed"
		}
		return strings.Join(out, "\n")
	}
	become(t, dir, state{"f": lines(-1)})
	base := capture(t, w).Commit
	var sides []Commit
	for i := range 5 {
		become(t, dir, state{"f": lines(2 * i), fmt.Sprint("n", i): "new", "same": fmt.Sprint(i / 4)})
		sides = append(sides, capture(t, w).Commit)
	}
	m, err := w.Merge(context.Background(), base, sides, MergeOptions{})
	require.NoError(t, err)
	assert.Equal(t, "changed\n1\nchanged\n3\nchanged\n5\nchanged\n7\nchanged\n9\n", content(t, w, m.Commit, "f"))
	assert.Contains(t, states(t, w, m.Commit), "n4")
	require.Len(t, m.Conflicts, 1)
	assert.Equal(t, "same", m.Conflicts[0].Path)
	assert.Equal(t, 4, m.Conflicts[0].Side)

	alone, err := w.Merge(context.Background(), base, sides[:1], MergeOptions{})
	require.NoError(t, err)
	assert.Equal(t, sides[0], alone.Commit)
	for _, pair := range [][]Commit{{sides[0], base}, {base, sides[0]}, {sides[0], sides[0]}} {
		m, err := w.Merge(context.Background(), base, pair, MergeOptions{})
		require.NoError(t, err)
		assert.Equal(t, sides[0], m.Commit)
	}
	_, err = w.Merge(context.Background(), base, []Commit{base, Commit(strings.Repeat("0", 40))}, MergeOptions{})
	assert.ErrorIs(t, err, ErrMissing)
}

// What a checkout leaves out has not been removed by who works there; what is
// there and not captured is a conflict, and never overwritten.
func TestMergeWithNotCaptured(t *testing.T) {
	ctx := context.Background()
	dir := committed(t)
	write(t, dir, ".gitignore", "*.log\nbuild/\n")
	write(t, dir, "kept.log", "1")
	write(t, dir, "build/out", "1")
	write(t, dir, "large", strings.Repeat("x", 200))
	write(t, dir, "shrinks", strings.Repeat("x", 200))
	git(t, dir, "config", "user.name", "x") // HEAD and index are the first side's
	w := open(t, dir, Options{MaxFile: 100})
	base := capture(t, w)
	o := checkedOut(t, w, base.Commit, "one")
	write(t, o.Root(), "a", "agent's")
	write(t, o.Root(), "other.log", "theirs")
	write(t, o.Root(), "huge", strings.Repeat("x", 200))
	write(t, o.Root(), "shrinks", "small now")
	theirs := capture(t, o)
	write(t, dir, "b", "mine")
	ours := capture(t, w)

	m, err := w.Merge(ctx, base.Commit, []Commit{ours.Commit, theirs.Commit}, MergeOptions{})
	require.NoError(t, err)
	got := states(t, w, m.Commit)
	was := states(t, w, ours.Commit)
	for _, path := range []string{"kept.log", "build", "large", "shrinks", "b"} {
		assert.Equal(t, was[path], got[path], path)
	}
	assert.Equal(t, "agent's", content(t, w, m.Commit, "a"))
	assert.NotContains(t, got, "other.log")
	assert.NotContains(t, got, "huge")
	var conflicts []string
	for _, c := range m.Conflicts {
		conflicts = append(conflicts, c.Path+" "+c.Kind)
	}
	assert.Equal(t, []string{"huge not-captured", "shrinks not-captured"}, conflicts)
	head, _, err := w.Describe(m.Commit)
	require.NoError(t, err)
	assert.Equal(t, ours.Head, head)
	index, err := w.readCommit(m.Commit)
	require.NoError(t, err)
	first, err := w.readCommit(ours.Commit)
	require.NoError(t, err)
	assert.Equal(t, first.index, index.index)
	assert.Equal(t, 1, len(changedPaths(t, w, ours.Commit, m.Commit)), "nothing but a")
}

func changedPaths(t testing.TB, w *Worktree, from, to Commit) (out []string) {
	t.Helper()
	changes, err := w.Diff(context.Background(), from, to)
	require.NoError(t, err)
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return out
}

// Commits that leave out other modes are merged all the same.
func TestMergeOfOtherModes(t *testing.T) {
	dir := t.TempDir()
	base := state{"a": "0600:1", "d/b": "1", "d/e/c": "1", "f/g": "1"}
	w := open(t, dir, Options{Create: true})
	become(t, dir, base)
	b := capture(t, w)
	theirs := state{"a": "1", "d/b": "1", "d/e/c": "1", "f/g": "2", "n": "0600:1"}
	become(t, dir, theirs)
	require.NoError(t, os.Remove(w.cachePath()))
	for i := range 20 { // now 0600 is what most have
		write(t, dir, fmt.Sprint("f/", i), "x")
		require.NoError(t, os.Chmod(filepath.Join(dir, fmt.Sprint("f/", i)), 0o600))
	}
	c := capture(t, w)
	br, err := w.readCommit(b.Commit)
	require.NoError(t, err)
	cr, err := w.readCommit(c.Commit)
	require.NoError(t, err)
	require.NotEqual(t, br.meta.Modes, cr.meta.Modes, "the test's point")
	m, err := w.Merge(context.Background(), b.Commit, []Commit{b.Commit, c.Commit}, MergeOptions{})
	require.NoError(t, err)
	assert.Empty(t, m.Conflicts)
	assert.Equal(t, stateOf(t, w, c.Commit), stateOf(t, w, m.Commit))

	// The trees of d are the same, and what they leave out is not.
	become(t, dir, state{"d/a": "1", "d/b": "1"})
	require.NoError(t, os.Remove(w.cachePath()))
	b = capture(t, w)
	all := state{"d/a": "0600:1", "d/b": "0600:1"}
	become(t, dir, all)
	require.NoError(t, os.Remove(w.cachePath()))
	c = capture(t, w)
	require.Equal(t, b.Tree, c.Tree)
	m, err = w.Merge(context.Background(), b.Commit, []Commit{b.Commit, c.Commit}, MergeOptions{})
	require.NoError(t, err)
	assert.Equal(t, all, stateOf(t, w, m.Commit))
}

func TestMergeNested(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "f", "1")
	inner := filepath.Join(dir, "inner")
	git(t, dir, "init", "-q", inner)
	write(t, inner, "g", "2")
	git(t, inner, "add", "-A")
	git(t, inner, "commit", "-qm", "in")
	w := open(t, dir, Options{})
	base := capture(t, w).Commit
	o := checkedOut(t, w, base, "one")
	write(t, filepath.Join(o.Root(), "inner"), "g", "agent's")
	git(t, filepath.Join(o.Root(), "inner"), "commit", "-qam", "agent")
	theirs := capture(t, o).Commit
	write(t, dir, "f", "2")
	ours := capture(t, w).Commit
	m, err := w.Merge(context.Background(), base, []Commit{ours, theirs}, MergeOptions{})
	require.NoError(t, err)
	assert.Empty(t, m.Conflicts)
	assert.Equal(t, "agent's", content(t, w, m.Commit, "inner/g"))
	assert.Equal(t, states(t, w, theirs)["inner"], states(t, w, m.Commit)["inner"])

	write(t, inner, "h", "mine")
	git(t, inner, "add", "-A")
	git(t, inner, "commit", "-qm", "mine")
	ours = capture(t, w).Commit
	m, err = w.Merge(context.Background(), base, []Commit{ours, theirs}, MergeOptions{})
	require.NoError(t, err)
	require.Len(t, m.Conflicts, 1)
	assert.Equal(t, ConflictRepository, m.Conflicts[0].Kind)
	assert.Equal(t, "agent's", content(t, w, m.Commit, "inner/g"))
}

// jumble changes a state at random, in ways that git sees. Every content names
// its path, so that git finds no renames.
func jumble(rng *rand.Rand, s state) state {
	out := make(state)
	for k, v := range s {
		out[k] = v
	}
	names := []string{"a", "b", "d/a", "d/b", "d/e/f", "c", "c/x", "d", "d/e"}
	for range 1 + rng.Intn(3) {
		p := names[rng.Intn(len(names))]
		drop := func() {
			for k := range out {
				if k == p || strings.HasPrefix(k, p+"/") || strings.HasPrefix(p, k+"/") {
					delete(out, k)
				}
			}
		}
		switch rng.Intn(7) {
		case 0:
			drop()
		case 1:
			drop()
			out[p] = fmt.Sprintf("->%s%d", p, rng.Intn(2))
		case 2:
			if v, ok := out[p]; ok && !strings.HasPrefix(v, "->") {
				out[p] = strings.TrimPrefix("x:"+v, "x:x:")
			}
		case 3:
			drop()
			out[p] = fmt.Sprintf("new %s %d", p, rng.Intn(2))
		default:
			v, ok := out[p]
			if !ok || strings.HasPrefix(v, "->") {
				drop()
				v = fiveLines(p)
			}
			ls := strings.SplitAfter(v, "\n")
			ls[rng.Intn(len(ls))] = fmt.Sprintf("%s e%d\n", p, rng.Intn(3))
			out[p] = strings.Join(ls, "")
		}
	}
	return out
}

func fiveLines(path string) (s string) {
	for i := range 5 {
		s += fmt.Sprintf("%s %d\n", path, i)
	}
	return s
}

// TestMergeAsGit merges random states, and compares with git merge-tree: the
// same tree, or a conflict in both.
func TestMergeAsGit(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	objects := t.TempDir()
	bare := filepath.Join(w.Folder(), "store.git")
	run := func(args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"--git-dir", bare, "-c", "merge.renames=false", "-c", "merge.directoryRenames=false"}, args...)...)
		cmd.Env = append(gitEnv(), "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(bare, "objects"))
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit := func(args ...string) string {
		id, err := run(append([]string{"commit-tree", "-m", "c"}, args...)...)
		require.NoError(t, err)
		return id
	}
	clean, rounds := 0, 120
	if testing.Short() {
		rounds = 30
	}
	for seed := range rounds {
		rng := rand.New(rand.NewSource(int64(seed)))
		base := jumble(rng, jumble(rng, state{"a": fiveLines("a"), "d/a": fiveLines("d/a")}))
		var captures []*Capture
		for _, s := range []state{base, jumble(rng, base), jumble(rng, base)} {
			become(t, dir, s)
			captures = append(captures, capture(t, w))
		}
		b := commit(captures[0].Tree)
		out, err := run("merge-tree", "--write-tree", commit("-p", b, captures[1].Tree), commit("-p", b, captures[2].Tree))
		m, merr := w.Merge(context.Background(), captures[0].Commit, []Commit{captures[1].Commit, captures[2].Commit}, MergeOptions{})
		require.NoError(t, merr)
		if err != nil {
			assert.NotEmpty(t, m.Conflicts, "seed %d: git has a conflict\n%s", seed, out)
			continue
		}
		clean++
		assert.Empty(t, m.Conflicts, "seed %d: git has none", seed)
		assert.Equal(t, out, m.Tree, "seed %d", seed)
	}
	assert.Greater(t, clean, rounds/4)
	assert.Less(t, clean, rounds)
}
