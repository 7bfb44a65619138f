package vcs

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// FileChange is one path that differs between two commits. There is no notion
// of a rename: a moved file is one that went and one that came.
type FileChange struct {
	Path string // bytes, relative to the root
	Old  State
	New  State
}

// MarshalJSON writes "path", and "path_bytes" in base64 as well where the path
// is not UTF-8.
func (c FileChange) MarshalJSON() ([]byte, error) {
	v := struct {
		Path  string `json:"path"`
		Bytes []byte `json:"path_bytes,omitempty"`
		Old   State  `json:"old"`
		New   State  `json:"new"`
	}{Path: c.Path, Old: c.Old, New: c.New}
	if !utf8.ValidString(c.Path) {
		v.Bytes = []byte(c.Path)
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *FileChange) UnmarshalJSON(b []byte) error {
	var v struct {
		Path  string `json:"path"`
		Bytes []byte `json:"path_bytes"`
		Old   State  `json:"old"`
		New   State  `json:"new"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*c = FileChange{Path: v.Path, Old: v.Old, New: v.New}
	if v.Bytes != nil {
		c.Path = string(v.Bytes)
	}
	return nil
}

// Diff returns what differs between two commits, sorted by path. Directories
// appear when they come, go or change their mode. The cost goes with the
// directories that differ.
//
// It fails with ErrMissing or ErrDamaged when the answer is not known: a path
// is never taken as absent because its directory could not be read.
func (w *Worktree) Diff(ctx context.Context, from, to Commit) ([]FileChange, error) {
	if from == to {
		return nil, nil
	}
	a, err := w.readCommit(from)
	if err != nil {
		return nil, err
	}
	b, err := w.readCommit(to)
	if err != nil {
		return nil, err
	}
	return w.diff(ctx, a.meta.Modes, a.top, b.meta.Modes, b.top)
}

// Files returns every path of a commit, as Diff against nothing.
func (w *Worktree) Files(ctx context.Context, c Commit) ([]FileChange, error) {
	r, err := w.readCommit(c)
	if err != nil {
		return nil, err
	}
	return w.diff(ctx, modes{}, level{}, r.meta.Modes, r.top)
}

func (w *Worktree) diff(ctx context.Context, am modes, a level, bm modes, b level) ([]FileChange, error) {
	d := differ{w: w, am: am, bm: bm}
	d.group, d.ctx = errgroup.WithContext(ctx)
	d.group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	d.group.Go(func() error { return d.level("", a, b) })
	if err := d.group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(d.out, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return d.out, nil
}

// differ compares directories, several at once.
type differ struct {
	w      *Worktree
	ctx    context.Context
	am, bm modes
	group  *errgroup.Group // nil: one at a time

	mu  sync.Mutex
	out []FileChange
}

// below compares what is in a directory, beside us if somebody is free.
func (d *differ) below(path string, a, b level) error {
	if a == b && d.am == d.bm {
		return nil
	}
	if d.group != nil && d.group.TryGo(func() error { return d.level(path, a, b) }) {
		return nil
	}
	return d.level(path, a, b)
}

func (d *differ) level(path string, a, b level) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	as, bs, err := d.list(a, b)
	if err != nil {
		return err
	}
	for len(as) > 0 || len(bs) > 0 {
		var x, y *node
		switch {
		case len(bs) == 0 || len(as) > 0 && as[0].name < bs[0].name:
			x, as = &as[0], as[1:]
		case len(as) == 0 || bs[0].name < as[0].name:
			y, bs = &bs[0], bs[1:]
		default:
			x, y, as, bs = &as[0], &bs[0], as[1:], bs[1:]
		}
		if err := d.pair(path, x, y); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names of two levels, but for some of which both say the same.
func (d *differ) list(a, b level) (as, bs []node, err error) {
	var ae, be []object.TreeEntry
	if d.am == d.bm && a.aux == b.aux && !a.tree.IsZero() && !b.tree.IsZero() { // then what trees say alike is alike
		ae, be, err = d.w.differing(a.tree, b.tree)
	} else if ae, err = d.w.entries(a.tree); err == nil {
		be, err = d.w.entries(b.tree)
	}
	if err != nil {
		return nil, nil, err
	}
	if as, err = d.w.nodes(ae, a.aux, d.am); err != nil {
		return nil, nil, err
	}
	bs, err = d.w.nodes(be, b.aux, d.bm)
	return as, bs, err
}

func (d *differ) pair(dir string, x, y *node) error {
	absent := State{Kind: KindAbsent}
	var from, to State = absent, absent
	var sub, dub level
	name := ""
	if x != nil {
		from, name = x.State, x.name
		if x.isDir() {
			sub = x.sub
		}
	}
	if y != nil {
		to, name = y.State, y.name
		if y.isDir() {
			dub = y.sub
		}
	}
	path := join(dir, name)
	if !from.Is(to) || from.Reason != to.Reason || from.Size != to.Size || from.Ignored != to.Ignored {
		d.mu.Lock()
		d.out = append(d.out, FileChange{Path: path, Old: from, New: to})
		d.mu.Unlock()
	}
	return d.below(path, sub, dub)
}

// Size is how many bytes the content behind a state has; -1 when it has none or
// it is not known.
func (w *Worktree) Size(s State) int64 {
	if s.Kind == KindUnknown || s.Kind == KindIgnored {
		return s.Size
	}
	id, err := object.ParseID(s.ID)
	if err != nil || s.Kind == KindGitlink {
		return -1
	}
	_, size, err := w.store.Header(id)
	if err != nil {
		return -1
	}
	return size
}

// Content returns the bytes behind a file's or link's state, verified.
func (w *Worktree) Content(s State) ([]byte, error) {
	id, err := object.ParseID(s.ID)
	if err != nil {
		return nil, err
	}
	_, data, err := w.store.ReadVerified(id, nil)
	return data, err
}
