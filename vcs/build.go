package vcs

import (
	"bytes"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// What a commit looks like in the store: a tree of
//
//	tree    the worktree as `git add -A && git write-tree` would write it
//	aux     what such a tree cannot say; absent when there is nothing to say
//	index   the tree of the user's index
//	meta    HEAD, the operation git is in, index entries no tree can hold
//
// aux mirrors the directories of tree. For each directory it has
//
//	a       lines about the directory's own entries (see auxLine)
//	d       the aux trees of its subdirectories
//	i       ignored files that were captured
//	n       nested repositories: for each their own tree and aux
//
// Nothing in a commit depends on when or by whom it was made, so that the same
// state is the same commit.

// modes are the permission bits that are not recorded because most paths have
// them.
type modes struct {
	File uint32 `json:"file"`
	Exec uint32 `json:"exec"`
	Dir  uint32 `json:"dir"`
}

func (m modes) of(e *entry) uint32 {
	if e.flags&flagExec != 0 { // as the tree says it, which is how it is read
		return m.Exec
	}
	return m.File
}

// builder makes the trees of all directories that changed, deepest first.
type builder struct {
	s     *scanner
	modes modes
	buf   []byte             // scratch of this builder, as the next
	in    []object.TreeEntry // of the directory at hand
}

// commonModes counts the permission bits and returns the most frequent ones.
func commonModes(dirs []*dirRec) modes {
	var file, exec, dir [0o10000]int
	for _, d := range dirs {
		if d.gone {
			continue
		}
		dir[d.mode&0o7777]++
		for i := range d.entries {
			switch e := &d.entries[i]; {
			case e.class != classFile:
			case e.flags&flagExec != 0:
				exec[e.mode&0o7777]++
			default:
				file[e.mode&0o7777]++
			}
		}
	}
	best := func(counts *[0o10000]int, otherwise uint32) uint32 {
		at, most := otherwise, 0
		for m, n := range counts {
			if n > most {
				at, most = uint32(m), n
			}
		}
		return at
	}
	return modes{File: best(&file, 0o644), Exec: best(&exec, 0o755), Dir: best(&dir, 0o755)}
}

// manyLeaves is from how many directories on they are built on all cores.
const manyLeaves = 32

// build brings tree and aux of every directory up to date.
func (b *builder) build() error {
	done, err := b.leaves()
	if err != nil {
		return err
	}
	for i := len(b.s.dirs) - 1; i >= 0; i-- {
		if d := b.s.dirs[i]; !d.gone && d.changed.Load() && !done[i] {
			if err := b.update(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaves builds the directories that no other lies in, which wait for nobody,
// on all cores when there are many. It returns by position which it built.
func (b *builder) leaves() (done []bool, err error) {
	done = make([]bool, len(b.s.dirs))
	var leaves []*dirRec
	for i, d := range b.s.dirs {
		if !d.gone && d.changed.Load() && !slices.ContainsFunc(d.entries, func(e entry) bool { return e.child >= 0 }) {
			leaves, done[i] = append(leaves, d), true
		}
	}
	if len(leaves) < manyLeaves {
		clear(done)
		return done, nil
	}
	var next atomic.Int64
	var work errgroup.Group
	for range cores() {
		own := &builder{s: b.s, modes: b.modes}
		work.Go(func() error {
			for i := next.Add(1); i <= int64(len(leaves)); i = next.Add(1) {
				if err := own.update(leaves[i-1]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return done, work.Wait()
}

// update builds a directory, and tells its parent what is new.
func (b *builder) update(d *dirRec) error {
	d.dropGone()
	tree, aux, err := b.dir(d)
	if err != nil || tree == d.tree && aux == d.aux {
		return err
	}
	d.tree, d.aux = tree, aux
	d.touched.Store(true)
	if d.parent >= 0 {
		b.s.dirs[d.parent].changed.Store(true)
	}
	return nil
}

func (d *dirRec) dropGone() {
	kept := d.entries[:0]
	for i := range d.entries {
		if d.entries[i].class != classGone {
			kept = append(kept, d.entries[i])
		}
	}
	d.entries = kept
}

func (b *builder) dir(d *dirRec) (tree, aux object.ID, err error) {
	var sub, ign, nested []object.TreeEntry
	var lines []byte
	in, names := b.in[:0], string(d.names)
	for i := range d.entries {
		e := &d.entries[i]
		name := names[e.nameOff : e.nameOff+uint32(e.nameLen)]
		switch e.class {
		case classFile:
			mode := object.ModeFile
			if e.flags&flagExec != 0 {
				mode = object.ModeExec
			}
			in = append(in, object.TreeEntry{Mode: mode, Name: name, ID: e.id})
			if perm := e.mode & 0o7777; perm != b.modes.of(e) {
				lines = appendLine(lines, "mode", perm, 0, name)
			}
			if e.flags&flagTorn != 0 {
				lines = appendLine(lines, "torn", e.mode&0o7777, e.size, name)
			}
		case classLink:
			in = append(in, object.TreeEntry{Mode: object.ModeSymlink, Name: name, ID: e.id})
		case classSparse:
			in = append(in, object.TreeEntry{Mode: e.mode, Name: name, ID: e.id})
			lines = appendLine(lines, "sparse", 0, 0, name)
		case classGitlink:
			in = append(in, object.TreeEntry{Mode: object.ModeGitlink, Name: name, ID: e.id})
			lines = appendLine(lines, "dir", b.modes.Dir, 0, name)
		case classIgnoredFile:
			ign = append(ign, object.TreeEntry{Mode: object.ModeFile, Name: name, ID: e.id})
			lines = appendLine(lines, "ignored", e.mode&0o7777, e.size, name)
		case classIgnored:
			lines = appendLine(lines, "ignored", 0, 0, name)
		case classSpecial:
			lines = appendLine(lines, "special", e.mode&(0o7777|unix.S_IFMT), 0, name)
		case classSkipped:
			lines = appendLine(lines, "skip-"+e.reason.String(), e.mode&0o7777, e.size, name)
		case classDir:
			c := b.s.dirs[e.child]
			perm := c.mode & 0o7777
			switch {
			case c.flags&dirUnreadable != 0:
				lines = appendLine(lines, "skip-"+Unreadable.String(), perm, 0, name)
				continue
			case c.flags&dirNested != 0:
				if !e.id.IsZero() { // where its HEAD is
					in = append(in, object.TreeEntry{Mode: object.ModeGitlink, Name: name, ID: e.id})
				}
				lines = appendLine(lines, "repo", perm, 0, name)
				id, err := b.pair(c.tree, c.aux)
				if err != nil {
					return tree, aux, err
				}
				nested = append(nested, object.TreeEntry{Mode: object.ModeDir, Name: name, ID: id})
				continue
			case c.tree.IsZero():
				if c.flags&dirUnderIgnored == 0 {
					lines = appendLine(lines, "dir", perm, 0, name)
				}
			default:
				in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: name, ID: c.tree})
				if perm != b.modes.Dir && c.flags&dirVirtual == 0 {
					lines = appendLine(lines, "mode", perm, 0, name)
				}
			}
			if !c.aux.IsZero() {
				sub = append(sub, object.TreeEntry{Mode: object.ModeDir, Name: name, ID: c.aux})
			}
		}
	}
	b.in = in
	if tree, err = b.tree(in); err != nil {
		return tree, aux, err
	}
	var all []object.TreeEntry
	if len(lines) > 0 {
		id, err := b.add(object.Blob, lines)
		if err != nil {
			return tree, aux, err
		}
		all = append(all, object.TreeEntry{Mode: object.ModeFile, Name: "a", ID: id})
	}
	for _, part := range []struct {
		name    string
		entries []object.TreeEntry
	}{{"d", sub}, {"i", ign}, {"n", nested}} {
		id, err := b.tree(part.entries)
		if err != nil {
			return tree, aux, err
		}
		if !id.IsZero() {
			all = append(all, object.TreeEntry{Mode: object.ModeDir, Name: part.name, ID: id})
		}
	}
	aux, err = b.tree(all)
	return tree, aux, err
}

// pair is the tree that holds a nested repository's tree and aux.
func (b *builder) pair(tree, aux object.ID) (object.ID, error) {
	var in []object.TreeEntry
	if !aux.IsZero() {
		in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: "aux", ID: aux})
	}
	if !tree.IsZero() {
		in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: "tree", ID: tree})
	}
	if in == nil {
		return b.add(object.Tree, nil)
	}
	return b.tree(in)
}

// tree writes the tree of these entries; none is no tree.
func (b *builder) tree(in []object.TreeEntry) (object.ID, error) {
	if len(in) == 0 {
		return object.ID{}, nil
	}
	object.SortEntries(in)
	b.buf = object.AppendTree(b.buf[:0], in)
	return b.add(object.Tree, b.buf)
}

func (b *builder) add(kind object.Kind, data []byte) (object.ID, error) {
	id := object.Sum(kind, data)
	if b.s.writer.Had(id) {
		return id, nil
	}
	return id, b.s.writer.AddHashed(id, kind, data)
}

// appendLine appends "word mode size name\n", the name last and quoted only
// when it holds a line end or a quote: names are bytes.
func appendLine(to []byte, word string, mode uint32, size int64, name string) []byte {
	to = append(to, word...)
	to = append(to, ' ')
	to = strconv.AppendUint(to, uint64(mode), 8)
	to = append(to, ' ')
	to = strconv.AppendInt(to, size, 10)
	to = append(to, ' ')
	if bytes.ContainsAny([]byte(name), "\n\"") {
		to = strconv.AppendQuote(to, name)
	} else {
		to = append(to, name...)
	}
	return append(to, '\n')
}

// commit writes the root of the commit, unless it is known.
func (b *builder) commit(git gitFacts, known Commit) (Commit, string, error) {
	root := b.s.dirs[0]
	m := meta{Version: 1, Modes: b.modes, Root: root.mode & 0o7777, Operation: git.Operation, Sparse: git.Sparse,
		Extra: git.Extra, Degraded: git.Degraded}
	if git.Head != (Head{}) {
		m.Head = &git.Head
	}
	js, err := m.encode()
	if err != nil {
		return "", "", err
	}
	metaID, tree := object.Sum(object.Blob, js), root.tree
	if root.tree.IsZero() {
		tree = object.Sum(object.Tree, nil)
	}
	in := []object.TreeEntry{
		{Mode: object.ModeFile, Name: "meta", ID: metaID},
		{Mode: object.ModeDir, Name: "tree", ID: tree},
	}
	if !root.aux.IsZero() {
		in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: "aux", ID: root.aux})
	}
	if git.Tree != "" {
		id, err := object.ParseID(git.Tree)
		if err != nil {
			return "", "", err
		}
		in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: "index", ID: id})
	}
	object.SortEntries(in)
	data := object.AppendTree(nil, in)
	id := object.Sum(object.Tree, data)
	if Commit(id.String()) == known {
		return known, tree.String(), nil
	}
	if root.tree.IsZero() {
		if _, err := b.add(object.Tree, nil); err != nil {
			return "", "", err
		}
	}
	if _, err := b.add(object.Blob, js); err != nil {
		return "", "", err
	}
	_, err = b.add(object.Tree, data)
	return Commit(id.String()), tree.String(), err
}
