package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ImportStats says what Import did.
type ImportStats struct {
	Packs, Loose int  // linked
	Copied       int  // objects written, since they could not be linked
	Missing      []ID // mentioned, but nowhere: history cut short, or left at a remote
}

// Import makes id, and all that can be reached from it, present in the store
// from these object directories and their alternates. A pack is linked whole;
// where linking cannot be, what is needed is written. It goes no further down
// than to what was here before, since that was complete. What is nowhere is
// not an error but said in Missing, and a commit whose parents are missing is
// noted as the end of history, as in a shallow clone. When id itself is
// nowhere the error is a *MissingError.
func (s *Store) Import(id ID, from []string) (ImportStats, error) {
	unlock, err := s.sharedWait()
	if err != nil {
		return ImportStats{}, err
	}
	defer unlock()
	if open, err := s.pendings(); err == nil && len(open) == 0 {
		if _, complete := newImporter(s, nil, true).had(id); complete {
			return ImportStats{}, nil
		}
	}
	p, err := s.beginPending()
	if err != nil {
		return ImportStats{}, err
	}
	// The owner's gc may take away what was found; then look again.
	var im *importer
	for try := 0; ; try++ {
		if im, err = s.walkImport(id, from, p); err == nil {
			err = im.fetch()
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try == 3 {
			break
		}
	}
	if err != nil {
		return im.stats, fmt.Errorf("import %s: %w", id, errors.Join(err, p.abandon()))
	}
	return im.stats, p.done()
}

// walkImport finds out what is needed. It trusts what is here only if nobody
// else is linking.
func (s *Store) walkImport(id ID, from []string, p *pending) (*importer, error) {
	alone, err := p.alone()
	im := newImporter(s, from, alone)
	if err != nil {
		return im, err
	}
	if err := im.walk(id); err != nil || !alone {
		return im, err
	}
	if still, err := p.alone(); still || err != nil {
		return im, err
	}
	im = newImporter(s, from, false)
	return im, im.walk(id)
}

type importer struct {
	s     *Store
	from  *Store
	trust bool
	parts map[string]bool // packs that hold objects without what these mention

	seen    map[ID]bool
	queue   []reference
	packs   map[string][]ID
	loose   []ID
	dirs    map[ID]string // of loose objects
	shallow []ID
	stats   ImportStats
}

func newImporter(s *Store, from []string, trust bool) *importer {
	return &importer{
		s: s, from: Foreign(from), trust: trust, parts: readPartial(s.dir),
		seen: map[ID]bool{}, packs: map[string][]ID{}, dirs: map[ID]string{},
	}
}

func (im *importer) walk(id ID) error {
	im.push(reference{id: id})
	for len(im.queue) > 0 {
		r := im.queue[len(im.queue)-1]
		im.queue = im.queue[:len(im.queue)-1]
		if err := im.visit(r); err != nil {
			return err
		}
	}
	if slices.Contains(im.stats.Missing, id) {
		return &MissingError{ID: id}
	}
	return nil
}

func (im *importer) push(r reference) {
	if !im.seen[r.id] {
		im.seen[r.id] = true
		im.queue = append(im.queue, r)
	}
}

func (im *importer) visit(r reference) error {
	if had, complete := im.had(r.id); had {
		if complete || r.kind == Blob {
			return nil
		}
		return im.descend(im.s, r)
	}
	err := im.from.locate(r.id, func(p *pack, _ int64) error {
		im.packs[p.base] = append(im.packs[p.base], r.id)
		return nil
	}, func(path string) error {
		if _, err := os.Lstat(path); err != nil {
			return err
		}
		im.loose = append(im.loose, r.id)
		im.dirs[r.id] = filepath.Dir(filepath.Dir(path))
		return nil
	})
	if errors.Is(err, ErrMissing) {
		im.stats.Missing = append(im.stats.Missing, r.id)
		return nil
	}
	if err != nil || r.kind == Blob {
		return err
	}
	return im.descend(im.from, r)
}

// had reports whether the store has the object, and whether then all that it
// mentions is here too.
func (im *importer) had(id ID) (had, complete bool) {
	if !im.s.Has(id) {
		return false, false
	}
	if !im.trust {
		return true, false
	}
	if len(im.parts) == 0 {
		return true, true
	}
	p, _, _ := im.s.find(im.s.set(), &id) // loose ones are found below
	return true, p != nil && !im.parts[filepath.Base(p.base)]
}

// descend queues what an object mentions.
func (im *importer) descend(s *Store, r reference) error {
	kind := r.kind
	if kind == 0 {
		var err error
		if kind, _, err = s.Header(r.id); err != nil {
			return err
		}
	}
	if kind == Blob {
		return nil
	}
	kind, data, err := s.Read(r.id, nil)
	if err != nil {
		return err
	}
	cut := false
	err = references(kind, data, func(m reference) error {
		if m.parent && !im.seen[m.id] && !im.s.Has(m.id) && !im.from.Has(m.id) {
			cut = true
		}
		im.push(m)
		return nil
	})
	if err != nil {
		return &CorruptError{ID: r.id, Where: s.where(r.id), Err: err}
	}
	if cut {
		im.shallow = append(im.shallow, r.id)
	}
	return nil
}

// fetch makes present what walk found needed.
func (im *importer) fetch() error {
	l := &linker{dst: im.s.objects[0], touched: map[string]bool{}}
	w := im.s.NewWriter()
	defer w.Abort()
	for base, ids := range im.packs {
		ok, err := l.pack(base)
		if err != nil {
			return err
		}
		if !ok {
			if err := im.copy(w, ids); err != nil {
				return err
			}
		}
	}
	for _, id := range im.loose {
		h := id.String()
		ok, err := l.loose(loosePath(im.dirs[id], id), h[:2], h[2:])
		if err != nil {
			return err
		}
		if !ok {
			if err := im.copy(w, []ID{id}); err != nil {
				return err
			}
		}
	}
	im.stats.Packs, im.stats.Loose, im.stats.Copied = l.stats.Packs, l.stats.Loose, w.Len()
	if err := w.Commit(true); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return err
	}
	if err := appendShallow(im.s.dir, im.shallow); err != nil {
		return err
	}
	if set := im.s.cur.Load(); set != nil && l.stats.Packs+l.stats.Loose > 0 {
		im.s.rescan(set)
	}
	return nil
}

func (im *importer) copy(w *Writer, ids []ID) error {
	for _, id := range ids {
		if err := copyObject(w, im.from, id); err != nil {
			return err
		}
	}
	return nil
}

// copyObject writes one object of another store, verified.
func copyObject(w *Writer, from *Store, id ID) error {
	kind, size, err := from.Header(id)
	if err != nil {
		return err
	}
	if kind != Blob || size <= smallStream {
		kind, data, err := from.ReadVerified(id, nil)
		if err != nil {
			return err
		}
		return w.AddHashed(id, kind, data)
	}
	_, _, r, err := from.Stream(id)
	if err != nil {
		return err
	}
	defer r.Close()
	got, err := w.AddStream(size, r)
	if err == nil && got != id {
		return &CorruptError{ID: id, Where: from.where(id), Err: fmt.Errorf("content hashes to %s", got)}
	}
	return err
}
