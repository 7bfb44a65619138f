package object

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// A Problem is something Verify found wrong.
type Problem struct {
	Path string
	ID   ID // zero when not one object
	Err  error
}

func (p Problem) String() string {
	if p.ID.IsZero() {
		return p.Path + ": " + p.Err.Error()
	}
	return p.Path + ": object " + p.ID.String() + ": " + p.Err.Error()
}

// verify re-hashes the object at off, in bounded memory when it is no delta.
func (p *pack) verify(id ID, off int64, cache *baseCache) error {
	kind, size, r, err := p.stream(id, off, cache)
	if err != nil {
		return withID(err, id)
	}
	defer r.Close()
	h := hashers.Get().(*Hasher)
	defer hashers.Put(h)
	h.Reset(kind, size)
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	if got := h.Sum(); got != id {
		where := fmt.Sprintf("%s at %d", p.packPath(), off)
		return &CorruptError{ID: id, Where: where, Err: fmt.Errorf("content hashes to %s", got)}
	}
	return nil
}

// Verify reads all of the store: the checksums of packs and indexes, and
// every object, re-hashed. It returns what it found wrong; the error is only
// for what kept it from looking. progress may be nil.
func (s *Store) Verify(ctx context.Context, progress func(done, total int)) ([]Problem, error) {
	v := &verifier{s: s, progress: progress}
	set := s.rescan(s.cur.Load())
	var loose []string
	for _, dir := range set.dirs {
		for i := range 256 {
			sub := fmt.Sprintf("%02x", i)
			names, err := readNames(filepath.Join(dir, sub))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("verify: %w", err)
			}
			for _, n := range names {
				if _, err := looseID(sub, n); err == nil {
					loose = append(loose, filepath.Join(dir, sub, n))
				}
			}
		}
	}
	v.total = len(loose)
	for _, p := range set.packs {
		if x, err := p.index(); err == nil {
			v.total += x.count
		}
	}
	for _, p := range set.packs {
		v.pack(ctx, p)
	}
	for _, path := range loose {
		if ctx.Err() != nil {
			break
		}
		v.loose(path)
	}
	return v.problems, context.Cause(ctx)
}

type verifier struct {
	s *Store

	mu          sync.Mutex
	progress    func(done, total int)
	done, total int
	problems    []Problem
}

func (v *verifier) found(path string, id ID, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) && !v.still(path) {
		return // a repack took it away meanwhile
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems = append(v.problems, Problem{path, id, err})
}

// still reports whether the pack or file is there, or half of it.
func (v *verifier) still(path string) bool {
	if _, err := os.Lstat(path); err == nil {
		return true
	}
	if base := path[:len(path)-len(filepath.Ext(path))]; base != path {
		_, err := os.Lstat(base + ".idx")
		return err == nil
	}
	return false
}

func (v *verifier) step() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done++
	if v.progress != nil && (v.done%256 == 0 || v.done == v.total) {
		v.progress(v.done, v.total)
	}
}

func (v *verifier) pack(ctx context.Context, p *pack) {
	x, err := p.index()
	if err != nil {
		v.found(p.idxPath(), ID{}, err)
		return
	}
	v.found(p.idxPath(), ID{}, checkIndex(x))
	f, err := p.open()
	if err != nil {
		v.found(p.packPath(), ID{}, err)
		return
	}
	v.found(p.packPath(), ID{}, checkPack(f))

	order := x.byOffset()
	var g errgroup.Group
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	const run = 1024
	for part := range slices.Chunk(order, run) {
		g.Go(func() error {
			for _, i := range part {
				if ctx.Err() != nil {
					return nil
				}
				id := x.id(int(i))
				v.found(p.packPath(), id, p.verify(id, x.offset(int(i)), &v.s.cache))
				v.step()
			}
			return nil
		})
	}
	_ = g.Wait() // problems are collected, not returned
	for k, i := range order {
		end := f.size - 20
		if k+1 < len(order) {
			end = x.offset(int(order[k+1]))
		}
		v.found(p.packPath(), x.id(int(i)), checkCRC(f, x.offset(int(i)), end, x.crc(int(i))))
	}
}

// checkIndex compares the index with its checksum and its order.
func checkIndex(x *index) error {
	defer runtime.KeepAlive(x)
	n := len(x.data) - 20
	if sum := sha1.Sum(x.data[:n]); ID(sum) != ID(x.data[n:]) {
		return corrupt(x.path, "checksum differs")
	}
	for i := 1; i < x.count; i++ {
		if a, b := x.id(i-1), x.id(i); string(a[:]) >= string(b[:]) {
			return corrupt(x.path, "entry %d is out of order", i)
		}
	}
	return nil
}

func checkPack(f *packFile) error {
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, f.size-20)); err != nil {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	var sum ID
	if _, err := f.ReadAt(sum[:], f.size-20); err != nil {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	if ID(h.Sum(nil)) != sum {
		return corrupt(f.path, "checksum differs")
	}
	return nil
}

func checkCRC(f *packFile, off, end int64, want uint32) error {
	if off < packHeader || end <= off || end > f.size-20 {
		return f.corrupt(off, errors.New("index points outside the pack"))
	}
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, io.NewSectionReader(f, off, end-off)); err != nil {
		return f.corrupt(off, noEOF(err))
	}
	if h.Sum32() != want {
		return f.corrupt(off, errors.New("checksum in the index differs"))
	}
	return nil
}

func (v *verifier) loose(path string) {
	id, err := looseID(filepath.Base(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		return // was checked before
	}
	v.found(path, id, verifyLoose(path, id))
	v.step()
}

func verifyLoose(path string, id ID) error {
	l, err := openLoose(path)
	if err != nil {
		return err
	}
	r := &stream{id: id, where: path, r: l, left: l.size, close: l.Close}
	defer r.Close()
	h := NewHasher()
	h.Reset(l.kind, l.size)
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	if got := h.Sum(); got != id {
		return &CorruptError{ID: id, Where: path, Err: fmt.Errorf("content hashes to %s", got)}
	}
	return nil
}
