package object

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// A Store reads objects from one or more object directories and, when it was
// opened by Create or Open, writes to the first. It is safe for concurrent
// use. Create it once per process and directory: what it has learnt about
// packs stays with it.
type Store struct {
	dir     string   // the repository; empty for Foreign
	objects []string // object directories as given

	// LockWait is how long NewWriter, Link and Import wait for a repack that
	// is deleting. Zero means a minute.
	LockWait time.Duration

	cur  atomic.Pointer[packSet]
	last atomic.Pointer[pack] // where the last object was found
	mu   sync.Mutex           // one scan at a time
	gen  uint64               // generation at the last scan, under mu

	cache   baseCache
	cleaned atomic.Bool // the first Commit has looked for left-overs
}

// A packSet is what a scan found. It is not changed, only replaced.
type packSet struct {
	dirs   []string // object directories, alternates included
	mtimes []time.Time
	loose  []fanOut // of each, by the first byte of ids: is there a folder?
	packs  []*pack
	temps  bool // temporary files were seen in our own directory
	at     time.Time
}

const storeConfig = `[core]
	repositoryformatversion = 1
	filemode = true
	bare = true
	logAllRefUpdates = false
[gc]
	auto = 0
[extensions]
	preciousObjects = true
`

// Create makes the repository at dir, or completes it, and opens it. Any
// number of processes may do so at once.
func Create(dir string) (*Store, error) {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("create object store: %w", err)
	}
	var g errgroup.Group // most wait for the disk; none for another
	for _, d := range []string{"refs/heads", "objects/info", "objects/pack"} {
		g.Go(func() error { return os.MkdirAll(filepath.Join(dir, d), 0o700) })
	}
	for name, content := range map[string]string{"config": storeConfig, lockName: "", "HEAD": "ref: refs/heads/none\n"} {
		g.Go(func() error { return createFile(filepath.Join(dir, name), content) })
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("create object store: %w", err)
	}
	return Open(dir)
}

// Open opens the repository at dir, which must exist. It is cheap: packs are
// listed at the first look-up. Folders that somebody took for empty are made
// again; what was in them is missing.
func Open(dir string) (*Store, error) {
	packs := filepath.Join(dir, "objects", "pack")
	if _, err := os.Lstat(packs); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(packs, 0o700); err != nil {
			return nil, fmt.Errorf("open object store: %w", err)
		}
	}
	st, err := os.Stat(filepath.Join(dir, "objects"))
	if err != nil {
		return nil, fmt.Errorf("open object store: %w", err)
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("open object store: %s has no folder of objects", dir)
	}
	return &Store{dir: dir, objects: []string{filepath.Join(dir, "objects")}}, nil
}

// Foreign returns a view over object directories of somebody else, with
// their alternates, for reading only. A directory that is not there holds
// nothing.
func Foreign(objectDirs []string) *Store { return &Store{objects: objectDirs} }

// Dir returns the directory of the repository.
func (s *Store) Dir() string { return s.dir }

// Close gives back descriptors. Reading afterwards opens them again; do not
// close while somebody reads.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.cur.Swap(nil); set != nil {
		for _, p := range set.packs {
			p.close()
		}
	}
	s.last.Store(nil)
	return nil
}

func (s *Store) packDir() string { return filepath.Join(s.objects[0], "pack") }

// set returns what is known of packs, scanning the first time.
func (s *Store) set() *packSet {
	if set := s.cur.Load(); set != nil {
		return set
	}
	return s.rescan(nil)
}

// racy is how long after a scan a directory must have been last changed for
// its time stamp to prove that nothing was missed.
const racy = 100 * time.Millisecond

// refresh looks whether packs came or went since set was made, and returns
// the new set, or nil when there is none. Unless sure, it goes by the time
// stamps of the directories alone, and may miss what just happened.
func (s *Store) refresh(set *packSet, sure bool) *packSet {
	if cur := s.cur.Load(); cur != set {
		return cur
	}
	for i, dir := range set.dirs {
		m := mtime(filepath.Join(dir, "pack"))
		if !m.Equal(set.mtimes[i]) || (sure && set.at.Sub(m) < racy) {
			return s.rescan(set)
		}
	}
	return nil
}

func mtime(path string) time.Time {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// rescan lists the pack directories, unless another goroutine has replaced
// old meanwhile. Packs already known keep what they have opened.
func (s *Store) rescan(old *packSet) *packSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cur := s.cur.Load(); cur != old && cur != nil {
		return cur
	}
	if s.dir != "" {
		s.gen = readGeneration(s.dir)
	}
	known := map[string]*pack{}
	if old != nil {
		for _, p := range old.packs {
			if p.bad.Load() == nil {
				known[p.base] = p
			}
		}
	}
	set := &packSet{at: time.Now(), dirs: withAlternates(s.objects)}
	for i, dir := range set.dirs {
		set.mtimes = append(set.mtimes, mtime(filepath.Join(dir, "pack")))
		set.loose = append(set.loose, fanOutOf(dir))
		packs, temps := listPacks(filepath.Join(dir, "pack"))
		if i == 0 {
			set.temps = temps
		}
		for _, base := range packs {
			p := known[base]
			if p == nil {
				p = &pack{base: base}
			}
			set.packs = append(set.packs, p)
		}
	}
	s.cur.Store(set)
	s.last.Store(nil)
	return set
}

// A fanOut tells which of the 256 folders of loose objects there are.
type fanOut [4]uint64

func (f *fanOut) has(b byte) bool { return f[b/64]>>(b%64)&1 != 0 }

func fanOutOf(dir string) (f fanOut) {
	names, _ := readNames(dir) // an unreadable folder holds nothing we can use
	for _, n := range names {
		if b, err := strconv.ParseUint(n, 16, 8); err == nil && len(n) == 2 {
			f[b/64] |= 1 << (b % 64)
		}
	}
	return f
}

// adopt adds a pack that was just published.
func (s *Store) adopt(base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.cur.Load()
	if old == nil {
		return
	}
	set := *old
	set.packs = append([]*pack{{base: base}}, old.packs...)
	s.cur.Store(&set)
}

// listPacks returns the paths, without suffix, of the packs that have an
// index, and whether there are temporary files.
func listPacks(dir string) (packs []string, temps bool) {
	names, _ := readNames(dir) // an unreadable folder holds nothing we can use
	idx := map[string]bool{}
	for _, n := range names {
		if base, ok := strings.CutSuffix(n, ".idx"); ok {
			idx[base] = true
		}
		temps = temps || strings.HasPrefix(n, tempPrefix)
	}
	for _, n := range names {
		base, ok := strings.CutSuffix(n, ".pack")
		if ok && strings.HasPrefix(base, "pack-") && idx[base] {
			packs = append(packs, filepath.Join(dir, base))
		}
	}
	return packs, temps
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// withAlternates returns dirs and the directories their alternates name, as
// far as git follows them.
func withAlternates(dirs []string) []string {
	var all []string
	seen := map[string]bool{}
	var add func(dir string, depth int)
	add = func(dir string, depth int) {
		dir = filepath.Clean(dir)
		if seen[dir] || depth > 5 {
			return
		}
		seen[dir] = true
		all = append(all, dir)
		b, err := os.ReadFile(filepath.Join(dir, "info", "alternates"))
		if err != nil {
			return // the usual case: there are none
		}
		for line := range bytes.Lines(b) {
			l := string(bytes.TrimRight(line, "\r\n"))
			if l == "" || l[0] == '#' {
				continue
			}
			if !filepath.IsAbs(l) {
				l = filepath.Join(dir, l)
			}
			add(l, depth+1)
		}
	}
	for _, d := range dirs {
		add(d, 0)
	}
	return all
}

// find looks for id in the packs of set. err says why not all of them could
// be asked.
func (s *Store) find(set *packSet, id *ID) (p *pack, off int64, err error) {
	if p := s.last.Load(); p != nil {
		if x, xerr := p.index(); xerr == nil {
			if i := x.find(id); i >= 0 {
				return p, x.offset(i), nil
			}
		}
	}
	for _, p := range set.packs {
		x, xerr := p.index()
		if xerr != nil {
			err = errors.Join(err, xerr)
			continue
		}
		if i := x.find(id); i >= 0 {
			s.last.Store(p)
			return p, x.offset(i), nil
		}
	}
	return nil, 0, err
}

// Has reports whether the object is here. It goes by the index and reads no
// content. A pack another process published a moment ago may be missed; one
// that is gone may be believed in, unless the shared lock is held.
func (s *Store) Has(id ID) bool {
	set := s.set()
	for set != nil {
		if p, _, _ := s.find(set, &id); p != nil {
			return true
		}
		for _, dir := range set.dirs {
			if unix.Access(loosePath(dir, id), unix.F_OK) == nil {
				return true
			}
		}
		set = s.refresh(set, false)
	}
	return false
}

// locate finds an object, scanning again when it is not in the packs known,
// and calls packed or loose. When what it found is gone, it looks again.
func (s *Store) locate(id ID, packed func(*pack, int64) error, loose func(string) error) error {
	set := s.set()
	for try := 0; ; try++ {
		p, off, ferr := s.find(set, &id)
		if p != nil {
			err := packed(p, off)
			if err == nil {
				return nil
			}
			if errors.Is(err, ErrCorrupt) && s.elsewhere(set, p, id, packed, loose) {
				return nil
			}
			if !errors.Is(err, fs.ErrNotExist) || try > 3 {
				return withID(err, id)
			}
			ferr = err
		} else {
			for _, dir := range set.dirs {
				err := loose(loosePath(dir, id))
				if err == nil {
					return nil
				}
				if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
					return withID(err, id)
				}
			}
		}
		next := s.refresh(set, true)
		if next == nil || try > 3 {
			if ferr != nil && !errors.Is(ferr, fs.ErrNotExist) {
				return withID(ferr, id)
			}
			return &MissingError{ID: id}
		}
		set = next
	}
}

// elsewhere looks for another copy of an object that is damaged in bad.
func (s *Store) elsewhere(set *packSet, bad *pack, id ID, packed func(*pack, int64) error, loose func(string) error) bool {
	for _, p := range set.packs {
		x, err := p.index()
		if err != nil || p == bad {
			continue
		}
		if i := x.find(&id); i >= 0 && packed(p, x.offset(i)) == nil {
			return true
		}
	}
	for _, dir := range set.dirs {
		if loose(loosePath(dir, id)) == nil {
			return true
		}
	}
	return false
}

// withID adds the id to a *CorruptError that does not know it.
func withID(err error, id ID) error {
	if c, ok := errors.AsType[*CorruptError](err); ok && c.ID.IsZero() {
		named := *c
		named.ID = id
		return &named
	}
	return err
}

// Header returns kind and size of an object without inflating its content.
func (s *Store) Header(id ID) (kind Kind, size int64, err error) {
	err = s.locate(id, func(p *pack, off int64) (err error) {
		kind, size, err = p.header(off)
		return err
	}, func(path string) (err error) {
		kind, size, err = headerLoose(path)
		return err
	})
	return kind, size, err
}

// Read returns a whole object, in buf if that is large enough. The data may
// share memory with buf and with nothing else. Checksums of compression are
// checked, the id is not: see ReadVerified.
func (s *Store) Read(id ID, buf []byte) (kind Kind, data []byte, err error) {
	return s.read(id, buf, math.MaxInt64)
}

func (s *Store) read(id ID, buf []byte, most int64) (kind Kind, data []byte, err error) {
	err = s.locate(id, func(p *pack, off int64) (err error) {
		kind, data, err = p.read(off, buf, most, &s.cache)
		return err
	}, func(path string) (err error) {
		kind, data, err = readLoose(path, buf, most)
		return err
	})
	return kind, data, err
}

// ReadVerified is Read, and a *CorruptError when the content does not hash to
// the id.
func (s *Store) ReadVerified(id ID, buf []byte) (Kind, []byte, error) {
	return s.ReadSmall(id, buf, math.MaxInt64)
}

// ReadSmall is ReadVerified of an object of most bytes at most, and ErrLarge for
// others.
func (s *Store) ReadSmall(id ID, buf []byte, most int64) (Kind, []byte, error) {
	kind, data, err := s.read(id, buf, most)
	if err != nil {
		return 0, nil, err
	}
	if got := Sum(kind, data); got != id {
		return 0, nil, &CorruptError{ID: id, Where: s.where(id), Err: fmt.Errorf("content hashes to %s", got)}
	}
	return kind, data, nil
}

// where names the file an object is in.
func (s *Store) where(id ID) string {
	where := "object store"
	_ = s.locate(id, func(p *pack, off int64) error { // it was found a moment ago
		where = fmt.Sprintf("%s at %d", p.packPath(), off)
		return nil
	}, func(path string) error {
		_, err := os.Stat(path)
		if err == nil {
			where = path
		}
		return err
	})
	return where
}
