package vcs

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// Head is where the user's repository stood: on a branch, which may be unborn
// (ID ""), or detached (Ref "").
type Head struct {
	Ref string `json:"ref,omitempty"`
	ID  string `json:"id,omitempty"`
}

func (h Head) String() string {
	switch {
	case h.Ref == "" && h.ID == "":
		return "unknown"
	case h.ID == "":
		return h.Ref + " (unborn)"
	case h.Ref == "":
		return h.ID
	}
	return h.Ref + " " + h.ID
}

// indexExtra is an entry of the index that its tree cannot hold: a side of a
// conflict, or a flag.
type indexExtra struct {
	Path  []byte `json:"path"` // base64: names are bytes
	Stage uint8  `json:"stage,omitempty"`
	Mode  uint32 `json:"mode"`
	ID    string `json:"id"`
	Flags uint8  `json:"flags,omitempty"`
}

// gitFacts is what was last seen of the user's repository.
type gitFacts struct {
	Head      Head
	Operation string
	Signature repo.IndexSignature // of the index file that Tree was made from
	Tree      string
	Extra     []indexExtra
	Sparse    bool
	Links     bool   // there are submodules
	Degraded  string // the index could not be understood
	Imported  string // newest HEAD known to be whole in the store
}

// gitSide reads HEAD and, when the file has moved since prev, the index. The
// tree of the index is written, and what it and HEAD need is made to be in the
// store. The trackedSet is nil unless the index was read.
func (w *Worktree) gitSide(prev gitFacts, wr *object.Writer, needIndex bool) (gitFacts, *trackedSet, error) {
	now := prev
	if w.repo == nil {
		return gitFacts{}, nil, nil
	}
	head, err := w.repo.Head()
	if err != nil && !errors.Is(err, repo.ErrBadRef) {
		return now, nil, err
	}
	now.Head = Head{Ref: head.Ref, ID: head.ID} // a HEAD git could not read is recorded as unknown
	now.Operation = w.repo.Operation()
	if w.reason != "" {
		return now, nil, nil
	}
	dirs, err := w.repo.ObjectDirs()
	if err != nil {
		return now, nil, err
	}
	if now.Head.ID != "" && now.Head.ID != prev.Imported {
		if id, err := object.ParseID(now.Head.ID); err == nil {
			if _, err := w.store.Import(id, dirs); err != nil && !errors.Is(err, object.ErrMissing) {
				return now, nil, err
			}
			now.Imported = now.Head.ID
		}
	}
	sig, err := w.repo.IndexSignature()
	if err != nil {
		return now, nil, err
	}
	moved := sig != prev.Signature || prev.Tree == "" && prev.Degraded == ""
	if !moved && !needIndex {
		return now, nil, nil
	}
	x, set, err := w.readIndex(sig)
	if errors.Is(err, repo.ErrIndex) {
		now.Degraded, now.Tree, now.Extra, now.Signature = err.Error(), "", nil, sig
		return now, nil, nil
	}
	if err != nil {
		return now, nil, err
	}
	now.Degraded, now.Signature = x.Degraded, x.Signature
	if x.Degraded != "" {
		now.Tree, now.Extra = "", nil
		if x.Entries == nil {
			return now, nil, nil
		}
		now.Sparse, now.Links = set.sparse(), set.links
		return now, set, nil
	}
	now.Sparse, now.Links = set.sparse(), set.links
	if moved || now.Tree == "" {
		it := indexTree{x: x, store: w.store, wr: wr, foreign: dirs}
		id, err := it.write("", 0, len(x.Entries), x.Tree)
		if err != nil {
			return now, nil, err
		}
		if id.IsZero() {
			if id, err = wr.Add(object.Tree, nil); err != nil {
				return now, nil, err
			}
		}
		now.Tree, now.Extra = id.String(), it.extra
	}
	return now, set, nil
}

// indexTree writes the tree of an index, as git write-tree does, using what git
// has already written of it.
type indexTree struct {
	x       *repo.Index
	store   *object.Store
	wr      *object.Writer
	foreign []string
	extra   []indexExtra
}

// write writes the tree of entries [from, to), all below prefix. Zero means
// that it would be empty.
func (t *indexTree) write(prefix string, from, to int, node *repo.CacheTree) (object.ID, error) {
	if node != nil && node.Count == to-from && node.Count > 0 {
		id := object.ID(node.OID)
		if t.store.Has(id) {
			t.note(from, to)
			return id, nil
		}
		if _, err := t.store.Import(id, t.foreign); err == nil {
			t.note(from, to)
			return id, nil
		}
	}
	var in []object.TreeEntry
	for i := from; i < to; {
		e := &t.x.Entries[i]
		rest := t.x.Name(i)[len(prefix):]
		slash := strings.IndexByte(rest, '/')
		if slash >= 0 && e.Mode != repo.ModeDir {
			sub := prefix + rest[:slash+1]
			end := i + 1
			for end < to && strings.HasPrefix(t.x.Name(end), sub) {
				end++
			}
			id, err := t.write(sub, i, end, child(node, rest[:slash]))
			if err != nil {
				return object.ID{}, err
			}
			if !id.IsZero() {
				in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: rest[:slash], ID: id})
			}
			i = end
			continue
		}
		t.note(i, i+1)
		if e.Mode == repo.ModeDir {
			rest = rest[:len(rest)-1]
		}
		if e.Stage == 0 && e.Flags&repo.IntentToAdd == 0 {
			in = append(in, object.TreeEntry{Mode: e.Mode, Name: rest, ID: object.ID(e.OID)})
			if err := t.hold(e); err != nil {
				return object.ID{}, err
			}
		} else if e.Stage != 0 {
			if err := t.hold(e); err != nil {
				return object.ID{}, err
			}
		}
		i++
	}
	if len(in) == 0 {
		return object.ID{}, nil
	}
	object.SortEntries(in)
	data := object.AppendTree(nil, in)
	id := object.Sum(object.Tree, data)
	if t.store.Has(id) {
		return id, nil
	}
	return id, t.wr.AddHashed(id, object.Tree, data)
}

// hold makes the object of an entry present. One that is nowhere, as in a
// partial clone, is not: the index then cannot be put back, and says so when
// somebody asks.
func (t *indexTree) hold(e *repo.Entry) error {
	if e.Mode == repo.ModeGitlink || t.store.Has(object.ID(e.OID)) {
		return nil
	}
	if _, err := t.store.Import(object.ID(e.OID), t.foreign); err != nil && !errors.Is(err, object.ErrMissing) {
		return err
	}
	return nil
}

func (t *indexTree) note(from, to int) {
	for i := from; i < to; i++ {
		e := &t.x.Entries[i]
		if e.Stage == 0 && e.Flags&^repo.SkipWorktree == 0 {
			continue
		}
		t.extra = append(t.extra, indexExtra{Path: []byte(t.x.Name(i)), Stage: e.Stage, Mode: e.Mode,
			ID: e.OID.String(), Flags: uint8(e.Flags)})
	}
}

func child(node *repo.CacheTree, name string) *repo.CacheTree {
	if node == nil {
		return nil
	}
	for i := range node.Children {
		if node.Children[i].Name == name {
			return &node.Children[i]
		}
	}
	return nil
}

// meta is the part of a commit that no tree can say.
type meta struct {
	Version   int          `json:"version"`
	Modes     modes        `json:"modes"`
	Root      uint32       `json:"root"` // permission bits of the root directory
	Head      *Head        `json:"head,omitempty"`
	Operation string       `json:"operation,omitempty"`
	Sparse    bool         `json:"sparse,omitempty"`
	Extra     []indexExtra `json:"index,omitempty"`
	Degraded  string       `json:"degraded,omitempty"`
}

func (m *meta) encode() ([]byte, error) { return json.Marshal(m) }
