package vcs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

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
	d := differ{w: w, ctx: ctx, am: a.meta.Modes, bm: b.meta.Modes}
	if err := d.level("", a.top, b.top); err != nil {
		return nil, err
	}
	slices.SortFunc(d.out, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return d.out, nil
}

// Files returns every path of a commit, as Diff against nothing.
func (w *Worktree) Files(ctx context.Context, c Commit) ([]FileChange, error) {
	r, err := w.readCommit(c)
	if err != nil {
		return nil, err
	}
	d := differ{w: w, ctx: ctx, bm: r.meta.Modes}
	if err := d.level("", level{}, r.top); err != nil {
		return nil, err
	}
	slices.SortFunc(d.out, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return d.out, nil
}

type differ struct {
	w      *Worktree
	ctx    context.Context
	am, bm modes
	out    []FileChange
}

func (d *differ) level(path string, a, b level) error {
	if a == b && d.am == d.bm {
		return nil
	}
	if err := d.ctx.Err(); err != nil {
		return err
	}
	as, err := d.w.list(a, d.am)
	if err != nil {
		return err
	}
	bs, err := d.w.list(b, d.bm)
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
		d.out = append(d.out, FileChange{Path: path, Old: from, New: to})
	}
	return d.level(path, sub, dub)
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
