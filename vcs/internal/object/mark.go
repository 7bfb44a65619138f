package object

import (
	"context"
	"fmt"
)

// A node is an object that a root reaches. Nodes are in the order they were
// met, newest root first.
type node struct {
	id   ID
	size int64
	off  int64  // in the new pack, 0 when not there
	path uint64 // says which path it was met at: versions of one file share it
	name uint32 // sorts names that look alike next to each other
	kind Kind
	deep uint8 // deltas below it in the new pack
}

// A marker finds all that the roots reach, each object once. It fails at the
// first that cannot be read: then nobody may call anything dead.
type marker struct {
	s        *Store
	absent   func(ID) bool
	progress func(done int)
	shallow  map[ID]bool

	nodes   []node
	index   map[ID]int32
	commits []ID // to be visited after the trees of those before
	stack   []visit
	buf     []byte
}

type visit struct {
	id   ID
	kind Kind
	path uint64
	name uint32
}

func newMarker(s *Store, opt RepackOptions) *marker {
	m := &marker{s: s, absent: opt.Absent, index: map[ID]int32{}, shallow: readShallow(s.dir)}
	if m.absent == nil {
		m.absent = func(ID) bool { return false }
	}
	m.progress = func(done int) {
		if opt.Progress != nil {
			opt.Progress("mark", done, 0)
		}
	}
	return m
}

// all marks from every root. Called again it adds what has come since.
func (m *marker) all(ctx context.Context, roots func(yield func(ID) error) error) error {
	return roots(func(id ID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return m.root(ctx, id)
	})
}

const rootPath = 0xcbf29ce484222325

func (m *marker) root(ctx context.Context, id ID) error {
	if _, ok := m.index[id]; ok {
		return nil
	}
	kind, _, err := m.s.Header(id)
	if err != nil {
		return fmt.Errorf("root %s: %w", id, err)
	}
	m.push(visit{id: id, kind: kind, path: rootPath})
	for {
		for len(m.stack) > 0 {
			v := m.stack[len(m.stack)-1]
			m.stack = m.stack[:len(m.stack)-1]
			if err := m.visit(v); err != nil {
				return fmt.Errorf("root %s: %w", id, err)
			}
		}
		if len(m.commits) == 0 {
			return ctx.Err()
		}
		m.push(visit{id: m.commits[0], kind: Commit, path: rootPath})
		m.commits = m.commits[1:]
	}
}

func (m *marker) push(v visit) {
	if _, ok := m.index[v.id]; !ok {
		m.stack = append(m.stack, v)
	}
}

func (m *marker) visit(v visit) error {
	if _, ok := m.index[v.id]; ok {
		return nil
	}
	n := node{id: v.id, kind: v.kind, path: v.path, name: v.name}
	var err error
	if v.kind == Blob {
		n.kind, n.size, err = m.s.Header(v.id)
	} else {
		n.kind, m.buf, err = m.s.ReadVerified(v.id, m.buf)
		n.size = int64(len(m.buf))
	}
	if err != nil {
		if m.absent(v.id) {
			return nil
		}
		return err
	}
	if v.kind != 0 && n.kind != v.kind {
		return &CorruptError{ID: v.id, Where: m.s.where(v.id), Err: fmt.Errorf("is a %s, not a %s", n.kind, v.kind)}
	}
	m.index[v.id] = int32(len(m.nodes))
	m.nodes = append(m.nodes, n)
	if len(m.nodes)%1024 == 0 {
		m.progress(len(m.nodes))
	}
	if n.kind == Blob {
		return nil
	}
	first := len(m.stack)
	err = references(n.kind, m.buf, func(r reference) error { return m.mention(v, r) })
	if err != nil {
		return &CorruptError{ID: v.id, Where: m.s.where(v.id), Err: err}
	}
	for i, j := first, len(m.stack)-1; i < j; i, j = i+1, j-1 { // visit in the order they stand
		m.stack[i], m.stack[j] = m.stack[j], m.stack[i]
	}
	return nil
}

func (m *marker) mention(from visit, r reference) error {
	if r.parent {
		if !m.shallow[from.id] {
			if _, ok := m.index[r.id]; !ok {
				m.commits = append(m.commits, r.id)
			}
		}
		return nil
	}
	v := visit{id: r.id, kind: r.kind, path: from.path, name: from.name}
	if r.name != "" {
		v.path = pathHash(v.path, r.name)
		v.name = nameHash(v.name, r.name)
	}
	if v.kind == 0 { // what a tag names
		kind, _, err := m.s.Header(r.id)
		if err != nil && !m.absent(r.id) {
			return err
		}
		v.kind = kind
	}
	m.push(v)
	return nil
}

// pathHash continues the hash of a path with one more name.
func pathHash(h uint64, name string) uint64 {
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return (h ^ '/') * 0x100000001b3
}

// nameHash weighs the last bytes most, so that names that end alike are
// close.
func nameHash(h uint32, name string) uint32 {
	h = h>>2 + '/'<<24
	for i := range len(name) {
		h = h>>2 + uint32(name[i])<<24
	}
	return h
}
