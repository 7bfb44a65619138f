package vcs

import (
	"context"
	"fmt"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// merger merges two commits, and makes the records of the directories of a
// third.
type merger struct {
	w                  *Worktree
	ctx                context.Context
	wr                 *object.Writer
	opt                *MergeOptions
	side               int
	base, ours, theirs modes
	dirs               []*dirRec // the root first, parents before children
	conflicts          []Conflict
}

// trio is one path as the three commits have it; nil where they do not.
type trio struct{ b, o, t *node }

func (m *merger) add(parent int32, path string, mode, flags uint32) int32 {
	d := &dirRec{path: path, parent: parent, mode: mode & 0o7777, flags: flags, ignoreAt: -1}
	d.changed.Store(true)
	m.dirs = append(m.dirs, d)
	return int32(len(m.dirs) - 1)
}

// level merges a directory into the record at.
func (m *merger) level(path string, b, o, t level, at int32) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	var lists [3][]node
	for i, of := range []struct {
		level
		modes
	}{{b, m.base}, {o, m.ours}, {t, m.theirs}} {
		var err error
		if lists[i], err = m.w.list(of.level, of.modes); err != nil {
			return err
		}
	}
	for {
		x, ok := nextName(&lists)
		if !ok {
			break
		}
		if err := m.path(at, x); err != nil {
			return fmt.Errorf("%s: %w", join(path, x.name()), err)
		}
	}
	if d := m.dirs[at]; onlySparse(m.dirs, d) {
		d.flags |= dirVirtual
	}
	return nil
}

// nextName takes the first name off three sorted lists.
func nextName(lists *[3][]node) (x trio, ok bool) {
	first := ""
	for _, l := range lists {
		if len(l) > 0 && (!ok || l[0].name < first) {
			first, ok = l[0].name, true
		}
	}
	for i, to := range []**node{&x.b, &x.o, &x.t} {
		if l := lists[i]; len(l) > 0 && l[0].name == first {
			*to, lists[i] = &l[0], l[1:]
		}
	}
	return x, ok
}

func (x trio) name() string {
	for _, n := range []*node{x.o, x.t, x.b} {
		if n != nil {
			return n.name
		}
	}
	return ""
}

// path decides about one name in the directory at.
func (m *merger) path(at int32, x trio) error {
	alike, err := m.alike(x.o, m.ours, x.t, m.theirs)
	switch {
	case err != nil:
		return err
	case alike:
		return m.take(at, x.o, m.ours)
	case !solid(x.o) || !solid(x.t):
		return m.unknown(at, x)
	}
	if !solid(x.b) {
		x.b = nil
	}
	for _, one := range []struct {
		same, take      *node
		sameIn, takenIn modes
	}{{x.o, x.t, m.ours, m.theirs}, {x.t, x.o, m.theirs, m.ours}} {
		unchanged, err := m.alike(x.b, m.base, one.same, one.sameIn)
		if err != nil {
			return err
		}
		if unchanged {
			return m.take(at, one.take, one.takenIn)
		}
	}
	return m.both(at, x)
}

// both decides where both sides changed something.
func (m *merger) both(at int32, x trio) error {
	files, dirs := x.split()
	switch {
	case dirs != (trio{}):
		return m.mixed(at, x, files, dirs)
	case x.o == nil || x.t == nil:
		return m.keep(at, x, ConflictDeleteModify)
	case x.o.Kind == KindGitlink || x.t.Kind == KindGitlink:
		return m.keep(at, x, ConflictRepository)
	case x.o.Sparse || x.t.Sparse:
		return m.keep(at, x, ConflictNotCaptured)
	case x.o.Kind == KindLink || x.t.Kind == KindLink:
		return m.keep(at, x, ConflictLink)
	}
	return m.file(at, x)
}

// split tells directories from what is none. A path that became the one from
// the other is two that came and went.
func (x trio) split() (files, dirs trio) {
	for _, one := range []struct{ from, file, dir **node }{
		{&x.b, &files.b, &dirs.b}, {&x.o, &files.o, &dirs.o}, {&x.t, &files.t, &dirs.t},
	} {
		switch {
		case *one.from == nil:
		case (*one.from).isDir():
			*one.dir = *one.from
		default:
			*one.file = *one.from
		}
	}
	return files, dirs
}

// mixed merges a path that is a directory somewhere. If in the end it would be
// a file as well, it is what ours is.
func (m *merger) mixed(at int32, x, files, dirs trio) error {
	d := m.dirs[at]
	made, entries, names, conflicts := len(m.dirs), len(d.entries), len(d.names), len(m.conflicts)
	if dirs.o != nil || dirs.t != nil {
		if err := m.dir(at, dirs); err != nil {
			return err
		}
	}
	inside := len(m.conflicts)
	if err := m.path(at, files); err != nil {
		return err
	}
	if len(d.entries) < entries+2 {
		if len(m.conflicts) > inside && (x.o != files.o || x.t != files.t) { // the directory took part in it
			m.conflicts = m.conflicts[:inside]
			m.conflict(at, x, ConflictFileDir)
		}
		return nil
	}
	m.dirs, d.entries, d.names, m.conflicts = m.dirs[:made], d.entries[:entries], d.names[:names], m.conflicts[:conflicts]
	return m.keep(at, x, ConflictFileDir)
}

// unknown decides where one side has what is not in its commit: ours stays, and
// it is a conflict if theirs has something new.
func (m *merger) unknown(at int32, x trio) error {
	quiet := x.t == nil || x.t.Ignored || x.t.Kind == KindIgnored || x.t.Kind == KindSpecial
	if !quiet {
		var err error
		if quiet, err = m.alike(x.b, m.base, x.t, m.theirs); err != nil {
			return err
		}
	}
	if quiet {
		return m.take(at, x.o, m.ours)
	}
	return m.keep(at, x, ConflictNotCaptured)
}

// keep notes a conflict and takes ours.
func (m *merger) keep(at int32, x trio, kind string) error {
	m.conflict(at, x, kind)
	return m.take(at, x.o, m.ours)
}

func (m *merger) conflict(at int32, x trio, kind string) {
	of := func(n *node) State {
		if n == nil {
			return State{Kind: KindAbsent}
		}
		return n.State
	}
	m.conflicts = append(m.conflicts, Conflict{Path: join(m.dirs[at].path, x.name()), Kind: kind, Side: m.side,
		Base: of(x.b), Ours: of(x.o), Theirs: of(x.t)})
}

// take puts n, of a commit with these modes, into the directory at.
func (m *merger) take(at int32, n *node, in modes) error {
	if n == nil {
		return nil
	}
	e, err := m.entry(n)
	if err != nil {
		return err
	}
	if n.isDir() {
		if e.child, err = m.takeDir(at, n, in); err != nil {
			return err
		}
	}
	m.dirs[at].add([]byte(n.name), e)
	return nil
}

// takeDir takes a directory as it is. Its trees are right if they leave out the
// same modes as ours.
func (m *merger) takeDir(at int32, n *node, in modes) (int32, error) {
	child := m.add(at, join(m.dirs[at].path, n.name), n.Mode, nestedFlag(n))
	d := m.dirs[child]
	if in == m.ours {
		d.tree, d.aux = n.sub.tree, n.sub.aux
		d.changed.Store(false)
		return child, nil
	}
	nodes, err := m.w.list(n.sub, in)
	if err != nil {
		return child, err
	}
	for i := range nodes {
		if err := m.take(child, &nodes[i], in); err != nil {
			return child, err
		}
	}
	if onlySparse(m.dirs, d) {
		d.flags |= dirVirtual
	}
	return child, nil
}

// entry is entryOf with what the listing of a commit leaves out.
func (m *merger) entry(n *node) (entry, error) {
	e := entryOf(n)
	if e.class != classIgnoredFile && e.flags&flagTorn == 0 {
		return e, nil
	}
	_, size, err := m.w.store.Header(n.id)
	e.size = size
	return e, err
}

// dir merges what is in a directory, and the directory itself: one that only
// one side has stays only if something in it does.
func (m *merger) dir(at int32, x trio) error {
	var b, o, t level
	var n node
	if x.b != nil {
		b = x.b.sub
	}
	switch {
	case x.t == nil:
		n, o = *x.o, x.o.sub
	case x.o == nil:
		n, t = *x.t, x.t.sub
	default:
		n, o, t = *x.o, x.o.sub, x.t.sub
		if x.b != nil {
			if err := m.self(at, x, &n); err != nil {
				return err
			}
		}
	}
	path := join(m.dirs[at].path, n.name)
	child := m.add(at, path, n.Mode, nestedFlag(&n))
	if err := m.level(path, b, o, t, child); err != nil {
		return err
	}
	if (x.o == nil || x.t == nil) && len(m.dirs[child].entries) == 0 {
		m.dirs = m.dirs[:child]
		return nil
	}
	e := entryOf(&n)
	e.child = child
	m.dirs[at].add([]byte(n.name), e)
	return nil
}

// self merges what a directory is, apart from what is in it.
func (m *merger) self(at int32, x trio, n *node) error {
	n.Mode = pick(x.b.Mode, x.o.Mode, x.t.Mode)
	if x.o.Mode != x.t.Mode && x.o.Mode != x.b.Mode && x.t.Mode != x.b.Mode {
		m.conflict(at, x, ConflictMode)
	}
	n.Kind = pick(x.b.Kind, x.o.Kind, x.t.Kind)
	if n.Kind != KindRepo {
		return nil
	}
	type head struct {
		git uint32
		id  object.ID
	}
	b, o, t := head{x.b.git, x.b.id}, head{x.o.git, x.o.id}, head{x.t.git, x.t.id}
	is := pick(b, o, t)
	if n.Kind = KindRepo; is.git == object.ModeGitlink {
		n.git, n.id, n.ID = is.git, is.id, is.id.String()
	}
	if o != t && o != b && t != b {
		m.conflict(at, x, ConflictRepository)
	}
	return nil
}

// file merges content and permission bits of a file that is one on both sides.
func (m *merger) file(at int32, x trio) error {
	n, b := *x.o, node{}
	if x.b != nil && x.b.Kind == KindFile && !x.b.Sparse {
		b = *x.b
	}
	n.Reason = ""
	kind, err := m.content(&n, &b, x)
	if err != nil {
		return err
	}
	n.Mode, n.git = pick(b.Mode, x.o.Mode, x.t.Mode), pick(b.git, x.o.git, x.t.git)
	if kind == "" && x.o.Mode != x.t.Mode && x.o.Mode != b.Mode && x.t.Mode != b.Mode {
		kind = ConflictMode
	}
	if kind != "" {
		m.conflict(at, x, kind)
	}
	return m.take(at, &n, m.ours)
}

// content merges the content of a file into n, which has that of ours, and
// returns the kind of conflict there is.
func (m *merger) content(n, b *node, x trio) (kind string, err error) {
	switch {
	case x.o.id == x.t.id, x.t.id == b.id:
		return "", nil
	case x.o.id == b.id:
		n.id, n.ID = x.t.id, x.t.ID
		return "", nil
	}
	kind = ConflictContent
	if b.id.IsZero() {
		kind = ConflictAddAdd
	}
	var texts [3][]byte
	for i, id := range []object.ID{b.id, x.o.id, x.t.id} {
		data, ok, err := m.text(id)
		if err != nil {
			return "", err
		}
		if !ok {
			if kind != ConflictAddAdd {
				kind = ConflictBinary
			}
			return kind, nil
		}
		texts[i] = data
	}
	text, clean := mergeText(texts[0], texts[1], texts[2], [2]string{m.opt.label(0), m.opt.label(m.side)})
	switch {
	case clean, m.opt.Markers:
	case m.opt.Lines:
		text = mergeOurs(texts[0], texts[1], texts[2])
	default:
		return kind, nil
	}
	if n.id, err = m.wr.Add(object.Blob, text); err != nil {
		return "", err
	}
	if n.ID = n.id.String(); clean {
		kind = ""
	}
	return kind, nil
}

// alike tells that two commits have the same at a path, and below it.
func (m *merger) alike(x *node, xm modes, y *node, ym modes) (bool, error) {
	if x == nil || y == nil {
		return x == y, nil
	}
	if !x.State.Is(y.State) || x.Ignored != y.Ignored || x.Size != y.Size {
		return false, nil
	}
	switch {
	case !x.isDir():
		return x.git == y.git, nil
	case xm == ym:
		return x.sub == y.sub, nil
	}
	changes, err := m.w.diff(m.ctx, xm, x.sub, ym, y.sub)
	return err == nil && len(changes) == 0, err
}

// solid tells that all of what is at a path is known, so that its absence on
// another side means something.
func solid(n *node) bool {
	return n == nil || known(n.State) || n.Kind == KindGitlink || n.Sparse && n.Kind == KindFile
}
