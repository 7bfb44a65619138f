package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// LinkStats says what Link did. What was here before is not counted.
type LinkStats struct {
	Packs, Loose int   // linked
	Bytes        int64 // that they share with the user's repository
	NotLinked    int   // files that could not be
	Why          error // the first reason, when NotLinked is not zero
}

// Link hard-links every pack and loose object of these object directories
// and their alternates into the store, as a local clone does: they cost
// nothing, and stay when their owner drops them. Files that cannot be linked,
// because they are on another file system or belong to somebody else, are
// counted, and it is for Import or a capture to write what is needed of them.
// It changes nothing but names: the files of the user stay what they are.
func (s *Store) Link(objectDirs []string) (LinkStats, error) {
	unlock, err := s.sharedWait()
	if err != nil {
		return LinkStats{}, err
	}
	defer unlock()
	p, err := s.beginPending()
	if err != nil {
		return LinkStats{}, err
	}
	l := &linker{dst: s.objects[0], touched: map[string]bool{}}
	for _, dir := range withAlternates(objectDirs) {
		// The owner's gc may replace what was listed; then list again.
		for try, gone := 0, true; gone && try < 5; try++ {
			if gone, err = l.dir(dir); err != nil {
				return l.stats, errors.Join(err, p.abandon())
			}
		}
	}
	if err := l.sync(); err != nil {
		return l.stats, errors.Join(err, p.abandon())
	}
	if set := s.cur.Load(); set != nil {
		s.rescan(set)
	}
	return l.stats, p.done()
}

// A linker links files into one object directory.
type linker struct {
	dst string

	mu      sync.Mutex
	stats   LinkStats
	touched map[string]bool // folders that got names
}

// dir links all there is in one object directory. gone says that files
// vanished while it did.
func (l *linker) dir(src string) (gone bool, err error) {
	var g errgroup.Group
	g.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	var mu sync.Mutex
	do := func(f func() error) {
		g.Go(func() error {
			err := f()
			if errors.Is(err, fs.ErrNotExist) {
				mu.Lock()
				gone = true
				mu.Unlock()
				return nil
			}
			return err
		})
	}
	packs, _ := listPacks(filepath.Join(src, "pack"))
	for _, base := range packs {
		do(func() error { _, err := l.pack(base); return err })
	}
	for _, sub := range looseDirs(src) {
		do(func() error { return l.looseDir(src, sub) })
	}
	return gone, g.Wait()
}

// pack links a pack, the index last. It reports whether the pack is in dst.
func (l *linker) pack(base string) (bool, error) {
	if x, err := openIndex(base + ".idx"); err != nil {
		if errors.Is(err, ErrCorrupt) {
			l.not(err)
			return false, nil
		}
		return false, err
	} else if x.count == 0 {
		return true, nil
	}
	name := filepath.Join(l.dst, "pack", filepath.Base(base))
	ok, fresh, err := l.file(base+".pack", name+".pack")
	if !ok || err != nil {
		return ok, err
	}
	ok, _, err = l.file(base+".idx", name+".idx")
	if ok && fresh {
		l.count(&l.stats.Packs, "pack")
	}
	return ok, err
}

// looseDirs are the folders of loose objects that are there. One that git makes
// afterwards holds nothing that was reachable before.
func looseDirs(src string) []string {
	names, err := readNames(src)
	if err != nil { // such as the right to list it
		names = names[:0]
		for i := range 256 {
			names = append(names, fmt.Sprintf("%02x", i))
		}
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { // its two digits begin an id
		_, err := ParseID(name + strings.Repeat("0", 38))
		return err != nil
	})
}

// looseDir links the loose objects of one of the 256 folders.
func (l *linker) looseDir(src, sub string) error {
	names, err := readNames(filepath.Join(src, sub))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.not(err)
		return nil
	}
	var gone error
	for _, n := range names {
		if _, err := looseID(sub, n); err != nil {
			continue // a temporary file of git's
		}
		if _, err := l.loose(filepath.Join(src, sub, n), sub, n); errors.Is(err, fs.ErrNotExist) {
			gone = err
		} else if err != nil {
			return err
		}
	}
	return gone
}

func (l *linker) loose(path, sub, name string) (bool, error) {
	dir := filepath.Join(l.dst, sub)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("link: %w", err)
	}
	ok, fresh, err := l.file(path, filepath.Join(dir, name))
	if ok && fresh {
		l.count(&l.stats.Loose, sub)
	}
	return ok, err
}

func (l *linker) count(n *int, sub string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
	l.touched[sub] = true
}

// file links one file. ok says that dst is there now, fresh that it was not.
// An error is fs.ErrNotExist when src is gone, or ours.
func (l *linker) file(src, dst string) (ok, fresh bool, err error) {
	st, err := os.Lstat(src)
	if err != nil {
		return false, false, err
	}
	if !st.Mode().IsRegular() {
		l.not(&os.PathError{Op: "link", Path: src, Err: errors.New("not a regular file")})
		return false, false, nil
	}
	switch err := os.Link(src, dst); {
	case err == nil:
		l.mu.Lock()
		l.stats.Bytes += st.Size()
		l.mu.Unlock()
		return true, true, nil
	case errors.Is(err, fs.ErrExist):
		return true, false, nil
	case cannotLink(err):
		l.not(err)
		return false, false, nil
	default:
		return false, false, fmt.Errorf("link: %w", err)
	}
}

// cannotLink tells a file that will never be linked from a store that is
// broken.
func cannotLink(err error) bool {
	for _, e := range []error{unix.EXDEV, unix.EPERM, unix.EACCES, unix.EMLINK, unix.ENOTSUP, unix.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (l *linker) not(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stats.NotLinked++; l.stats.Why == nil {
		l.stats.Why = err
	}
}

// sync makes the new names durable.
func (l *linker) sync() error {
	if len(l.touched) == 0 {
		return nil
	}
	var g errgroup.Group // in no order: none needs another
	g.SetLimit(16)
	for sub := range l.touched {
		g.Go(func() error { return syncDir(filepath.Join(l.dst, sub)) })
	}
	g.Go(func() error { return syncDir(l.dst) })
	return g.Wait()
}

// pendingPrefix begins the names of files that stand for links being made.
// While one is there, an object that is here may lack what it refers to.
const pendingPrefix = "pending_"

// Repack removes what the dead have left, when it knows which objects those
// are.
type pending struct {
	s *Store
	f *os.File
}

func (s *Store) beginPending() (*pending, error) {
	f, err := os.CreateTemp(s.dir, pendingPrefix)
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	if err := flockNow(f, unix.LOCK_EX); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return &pending{s, f}, nil
}

// pendings returns the names of all such files.
func (s *Store) pendings() ([]string, error) {
	names, err := readNames(s.dir)
	if err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	var open []string
	for _, n := range names {
		if strings.HasPrefix(n, pendingPrefix) {
			open = append(open, n)
		}
	}
	return open, nil
}

// alone reports whether nobody else links now or died doing it.
func (p *pending) alone() (bool, error) {
	now, err := p.s.pendings()
	return len(now) == 1, err
}

// done says that all that was begun is there.
func (p *pending) done() error {
	if err := os.Remove(p.f.Name()); err != nil {
		p.f.Close()
		return fmt.Errorf("link: %w", err)
	}
	return p.f.Close()
}

// abandon leaves the sign that something is incomplete.
func (p *pending) abandon() error { return p.f.Close() }
