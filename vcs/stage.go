package vcs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// Putting files back has two halves. Stage reads every object that will be
// needed, verifies it and writes it to a folder of its own: whatever can go
// wrong with the store goes wrong here, with the worktree untouched. Swap then
// only renames. What a rename displaces stays in the stage until the end, so
// that each step can be taken back, and so that bytes which somebody wrote
// after we looked are in hand, not lost.

// Hold takes the worktree for a move: no other process captures it or moves it
// until release is called. Captures through this Worktree go on.
func (w *Worktree) Hold(ctx context.Context) (release func(), err error) {
	if w.held != nil {
		return nil, &LockedError{What: "the worktree"}
	}
	lk, err := lockFile(ctx, w.lockPath("capture"))
	if err != nil {
		return nil, err
	}
	w.held = lk
	return func() {
		w.held = nil
		w.forgetLast()
		lk.unlock()
	}, nil
}

func (w *Worktree) forgetLast() {
	if w.last != nil {
		w.last.close()
		w.last = nil
	}
}

type stepKind uint8

const (
	stepMkdir stepKind = iota
	stepWrite
	stepRemove
	stepRmdir
	stepChmod
)

// step is one change of the worktree that can be taken back.
type step struct {
	kind   stepKind
	change *FileChange
	n      int    // name of the file in the stage
	mode   uint32 // for stepChmod: the bits it had, or will have had
	id     object.ID
	done   bool
	was    bool // something was displaced to the stage
	odd    bool // and it is not known to be what the plan saw
}

// Staged is a restore that has been prepared.
type Staged struct {
	w      *Worktree
	dir    string
	fd     int
	steps  []step
	dirs   map[string]int    // open parents
	opened map[string]uint32 // directories made writable, and the bits they had
	kept   []string
	byPath map[string]*dirRec
}

// VerifyError says that a path is not what it was made to be. The restore has
// been taken back.
type VerifyError struct {
	Path string
	Err  error // what is there instead
}

func (e *VerifyError) Error() string { return fmt.Sprintf("%s: %v after the restore", e.Path, e.Err) }
func (e *VerifyError) Unwrap() error { return e.Err }

const stageName = ".retcon-stage"

// stageDir is a folder from which files can be renamed into the worktree.
func (w *Worktree) stageDir(id string) string {
	var st fileStat
	if err := statPath(w.folder, &st); err == nil && st.dev == w.dev {
		return filepath.Join(w.folder, "worktrees", w.name+"-stage-"+id)
	}
	return filepath.Join(w.root, stageName, id)
}

// Stage prepares changes: from Old, which is what the newest capture saw, to
// New. The worktree must be held, and is not touched. id names the folder, so
// that after a crash OpenStage finds it.
//
// It fails with ErrMissing or ErrDamaged when the store cannot give what was
// captured.
func (w *Worktree) Stage(ctx context.Context, id string, changes []FileChange) (*Staged, error) {
	if w.held == nil {
		return nil, errors.New("BUG: Stage without Hold")
	}
	s := &Staged{w: w, dir: w.stageDir(id), fd: -1, dirs: make(map[string]int), opened: make(map[string]uint32)}
	if err := s.plan(changes); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	fd, err := openRoot(s.dir)
	if err != nil {
		return nil, err
	}
	s.fd = fd
	crash.Point("restore.stage")
	if err = s.manifest(); err == nil {
		err = s.fill(ctx)
	}
	if err != nil {
		s.Discard()
		return nil, err
	}
	// Not synced: what a power cut takes of the stage is still in the store, and
	// recovery sees by the content which files it took.
	crash.Point("restore.staged")
	return s, nil
}

// plan orders the steps: what stands in the way, directories, files, then what
// goes, the deepest first, then permission bits of directories.
func (s *Staged) plan(changes []FileChange) error {
	dirKind := func(k string) bool { return k == KindDir || k == KindRepo || k == KindGitlink }
	var clear, mkdir, write, remove, rmdir, clearDirs, chmod []step
	var swapped []string // directories that become something else
	for i := range changes {
		c := &changes[i]
		if dirKind(c.Old.Kind) && (c.New.Kind == KindFile || c.New.Kind == KindLink) {
			swapped = append(swapped, c.Path+"/")
		}
	}
	below := func(path string) bool {
		for _, p := range swapped {
			if strings.HasPrefix(path, p) {
				return true
			}
		}
		return false
	}
	for i := range changes {
		c := &changes[i]
		if err := checkPath(c.Path); err != nil {
			return err
		}
		st := step{change: c}
		switch {
		case c.New.Kind == KindFile || c.New.Kind == KindLink:
			id, err := object.ParseID(c.New.ID)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Path, ErrMissing)
			}
			st.id = id
			if c.New.Kind == KindFile && c.Old.Kind == KindFile && c.Old.ID == c.New.ID {
				st.kind, st.mode = stepChmod, c.Old.Mode
				write = append(write, st)
				break
			}
			if dirKind(c.Old.Kind) {
				clearDirs = append(clearDirs, step{change: c, kind: stepRmdir})
			}
			st.kind = stepWrite
			write = append(write, st)
		case dirKind(c.New.Kind):
			if !dirKind(c.Old.Kind) {
				if c.Old.Kind != KindAbsent {
					clear = append(clear, step{change: c, kind: stepRemove})
				}
				st.kind = stepMkdir
				mkdir = append(mkdir, st)
			}
			if c.New.Kind != KindGitlink {
				chmod = append(chmod, step{change: c, kind: stepChmod, mode: c.Old.Mode})
			}
		case c.New.Kind == KindAbsent:
			st.kind = stepRemove
			if dirKind(c.Old.Kind) {
				st.kind = stepRmdir
			}
			switch {
			case below(c.Path) && st.kind == stepRmdir:
				clearDirs = append(clearDirs, st)
			case below(c.Path):
				clear = append(clear, st)
			case st.kind == stepRmdir:
				rmdir = append(rmdir, st)
			default:
				remove = append(remove, st)
			}
		default:
			return fmt.Errorf("BUG: cannot restore %s to %s", c.Path, c.New.Kind)
		}
	}
	up := func(a, b step) int { return strings.Compare(a.change.Path, b.change.Path) }
	down := func(a, b step) int { return strings.Compare(b.change.Path, a.change.Path) }
	slices.SortStableFunc(clearDirs, down)
	slices.SortStableFunc(mkdir, up)
	slices.SortStableFunc(write, up)
	slices.SortStableFunc(remove, up)
	slices.SortStableFunc(rmdir, down)
	slices.SortStableFunc(chmod, down)
	s.steps = slices.Concat(clear, clearDirs, mkdir, write, remove, rmdir, chmod)
	for i := range s.steps {
		s.steps[i].n = i
	}
	return nil
}

// checkPath refuses a path that leads out of the root or into a git directory.
func checkPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if err := checkName(part); err != nil {
			return err
		}
	}
	return nil
}

// manifest writes which path each file of the stage belongs to, and which
// contents are expected there: any other is somebody's work.
func (s *Staged) manifest() error {
	var b strings.Builder
	for i := range s.steps {
		if k := s.steps[i].kind; k == stepWrite || k == stepRemove || k == stepMkdir {
			c := s.steps[i].change
			fmt.Fprintf(&b, "%d %q %q %q\n", s.steps[i].n, c.Old.ID, c.New.ID, c.Path)
		}
	}
	return os.WriteFile(filepath.Join(s.dir, "manifest"), []byte(b.String()), 0o600)
}

// fill writes the new content of every path to the stage, on all cores.
func (s *Staged) fill(ctx context.Context) error {
	return s.each(ctx, stepWrite, func(st *step, buf *[]byte) error {
		if st.change.New.Kind == KindLink {
			_, target, err := s.w.store.ReadVerified(st.id, *buf)
			if err != nil {
				return fmt.Errorf("%s: %w", st.change.Path, err)
			}
			return unix.Symlinkat(string(target), s.fd, strconv.Itoa(st.n))
		}
		var fd int
		err := retry(func() (err error) {
			fd, err = unix.Openat(s.fd, strconv.Itoa(st.n), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
			return err
		})
		if err != nil {
			return &os.PathError{Op: "stage", Path: st.change.Path, Err: err}
		}
		err = s.content(fd, st, buf)
		if err == nil {
			s.own(fd, st)
			err = unix.Fchmod(fd, st.change.New.Mode&0o7777)
		}
		if cerr := unix.Close(fd); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("stage %s: %w", st.change.Path, err)
		}
		return nil
	})
}

func (s *Staged) content(fd int, st *step, buf *[]byte) error {
	_, size, err := s.w.store.Header(st.id)
	if err != nil {
		return err
	}
	if size < stream {
		_, data, err := s.w.store.ReadVerified(st.id, *buf)
		if err != nil {
			return err
		}
		if cap(data) > cap(*buf) {
			*buf = data[:0]
		}
		return writeAll(fd, data)
	}
	_, size, r, err := s.w.store.Stream(st.id)
	if err != nil {
		return err
	}
	defer r.Close()
	h := object.NewHasher()
	h.Reset(object.Blob, size)
	if _, err := io.CopyBuffer(io.MultiWriter(fdWriter(fd), h), struct{ io.Reader }{r}, make([]byte, 256<<10)); err != nil {
		return err
	}
	if h.Sum() != st.id {
		return &object.CorruptError{ID: st.id}
	}
	return nil
}

// own gives the new file the owner of the one it replaces, where we may.
func (s *Staged) own(fd int, st *step) {
	if unix.Geteuid() != 0 || st.change.Old.Kind != KindFile {
		return
	}
	dir, base := split(st.change.Path)
	parent, err := openDirAt(s.w.rootfd, dir)
	if err != nil {
		return
	}
	defer unix.Close(parent)
	var was unix.Stat_t
	if unix.Fstatat(parent, base, &was, unix.AT_SYMLINK_NOFOLLOW) == nil && (was.Uid != 0 || was.Gid != 0) {
		_ = unix.Fchown(fd, int(was.Uid), int(was.Gid)) // not in what we promise to restore
	}
}

type fdWriter int

func (f fdWriter) Write(b []byte) (int, error) { return len(b), writeAll(int(f), b) }

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		var n int
		if err := retry(func() (err error) { n, err = unix.Write(fd, b); return err }); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// each runs f for every step of a kind, in parallel.
func (s *Staged) each(ctx context.Context, kind stepKind, f func(st *step, buf *[]byte) error) error {
	var next atomic.Int64
	var first error
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range min(max(2, runtime.GOMAXPROCS(0)), 8) {
		wg.Go(func() {
			buf := make([]byte, 0, 64<<10)
			for {
				i := int(next.Add(1)) - 1
				mu.Lock()
				stop := first != nil
				mu.Unlock()
				if i >= len(s.steps) || stop {
					return
				}
				if s.steps[i].kind != kind {
					continue
				}
				err := ctx.Err()
				if err == nil {
					err = f(&s.steps[i], &buf)
				}
				if err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}

// Count is how many paths the restore touches.
func (s *Staged) Count() int { return len(s.steps) }

// Kept lists directories that could not be removed because something that is
// not ours to delete lies in them.
func (s *Staged) Kept() []string { return s.kept }

// Odd lists paths whose displaced content was not what the plan saw: somebody
// wrote them meanwhile. Rescue keeps it.
func (s *Staged) Odd() []string {
	var out []string
	for i := range s.steps {
		if s.steps[i].odd {
			out = append(out, s.steps[i].change.Path)
		}
	}
	return out
}

// Discard removes the stage. After Swap it gives up what was displaced.
func (s *Staged) Discard() error {
	s.closeDirs()
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	err := os.RemoveAll(s.dir)
	if parent := filepath.Dir(s.dir); filepath.Base(parent) == stageName {
		_ = os.Remove(parent) // fails while another stage is in it
	}
	return err
}

func (s *Staged) closeDirs() {
	for path, fd := range s.dirs {
		unix.Close(fd)
		delete(s.dirs, path)
	}
}

// OpenStage finds the stage a crash has left behind; nil when there is none.
// Only Rescue and Discard may be called on it.
func (w *Worktree) OpenStage(id string) (*Staged, error) {
	s := &Staged{w: w, dir: w.stageDir(id), fd: -1, dirs: make(map[string]int)}
	f, err := os.Open(filepath.Join(s.dir, "manifest"))
	if errors.Is(err, os.ErrNotExist) {
		if _, serr := os.Lstat(s.dir); serr != nil {
			return nil, nil
		}
		return s, nil // died before the manifest: nothing was displaced
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		st := step{change: &FileChange{}, was: true, odd: true}
		c := st.change
		// A line that cannot be read is the torn end of a manifest that was being
		// written: nothing had been displaced.
		if n, _ := fmt.Sscanf(sc.Text(), "%d %q %q %q", &st.n, &c.Old.ID, &c.New.ID, &c.Path); n == 4 {
			s.steps = append(s.steps, st)
		}
	}
	return s, sc.Err()
}

// DiscardStages removes every stage of this worktree. Call it under the move
// lock, when no move is open.
func (w *Worktree) DiscardStages() error {
	dir := w.stageDir("")
	prefix := filepath.Base(dir)
	if prefix == stageName { // in the root, with nothing else in it
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rescue stores whatever lies in the stage and is neither what the plan saw nor
// what it put there, and returns a commit of those paths alone; "" when there is nothing. With all, it
// looks at every file of the stage, not only at those known to be odd.
func (s *Staged) Rescue(ctx context.Context, all bool) (Commit, []string, error) {
	wr := s.w.store.NewWriter()
	defer wr.Abort()
	found := make(map[string]object.TreeEntry)
	for i := range s.steps {
		st := &s.steps[i]
		if !st.odd && !all {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", nil, err
		}
		for _, name := range []string{strconv.Itoa(st.n), strconv.Itoa(st.n) + displacedSuffix} {
			e, ok, err := s.rescueFile(wr, name)
			if err != nil {
				return "", nil, fmt.Errorf("rescue %s: %w", st.change.Path, err)
			}
			if id := e.ID.String(); ok && id != st.change.Old.ID && id != st.change.New.ID {
				found[st.change.Path] = e
			}
		}
	}
	if len(found) == 0 {
		return "", nil, nil
	}
	paths := make([]string, 0, len(found))
	for p := range found {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	c, err := s.w.writeCommit(wr, paths, found)
	if err != nil {
		return "", nil, err
	}
	crash.Point("restore.rescue")
	if err := wr.Commit(true); err != nil {
		return "", nil, err
	}
	return c, paths, nil
}

func (s *Staged) rescueFile(wr *object.Writer, name string) (e object.TreeEntry, ok bool, err error) {
	path := filepath.Join(s.dir, name)
	fi, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	switch {
	case fi.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return e, false, err
		}
		e.Mode, e.ID = object.ModeSymlink, object.Sum(object.Blob, []byte(target))
		if s.w.store.Has(e.ID) {
			return e, true, nil
		}
		return e, true, wr.AddHashed(e.ID, object.Blob, []byte(target))
	case fi.Mode().IsRegular():
		e.Mode = object.ModeFile
		if fi.Mode()&0o100 != 0 {
			e.Mode = object.ModeExec
		}
		id, err := hashFile(path)
		if err != nil {
			return e, false, err
		}
		if e.ID = id; s.w.store.Has(id) {
			return e, true, nil
		}
		f, err := os.Open(path)
		if err != nil {
			return e, false, err
		}
		defer f.Close()
		e.ID, err = wr.AddStream(fi.Size(), f)
		return e, true, err
	}
	return e, false, nil // a FIFO or socket has no bytes to keep
}

func hashFile(path string) (object.ID, error) {
	f, err := os.Open(path)
	if err != nil {
		return object.ID{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return object.ID{}, err
	}
	h := object.NewHasher()
	h.Reset(object.Blob, fi.Size())
	if _, err := io.Copy(h, f); err != nil {
		return object.ID{}, err
	}
	return h.Sum(), nil
}

// writeCommit writes a commit that holds these paths and nothing else.
func (w *Worktree) writeCommit(wr *object.Writer, paths []string, entries map[string]object.TreeEntry) (Commit, error) {
	var build func(prefix string, paths []string) (object.ID, error)
	build = func(prefix string, paths []string) (object.ID, error) {
		var in []object.TreeEntry
		for i := 0; i < len(paths); {
			name, _, deeper := strings.Cut(paths[i][len(prefix):], "/")
			if !deeper {
				e := entries[paths[i]]
				e.Name = name
				in = append(in, e)
				i++
				continue
			}
			sub, end := prefix+name+"/", i
			for end < len(paths) && strings.HasPrefix(paths[end], sub) {
				end++
			}
			id, err := build(sub, paths[i:end])
			if err != nil {
				return object.ID{}, err
			}
			in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: name, ID: id})
			i = end
		}
		object.SortEntries(in)
		return wr.Add(object.Tree, object.AppendTree(nil, in))
	}
	tree, err := build("", paths)
	if err != nil {
		return "", err
	}
	m := meta{Version: 1, Modes: modes{File: 0o644, Exec: 0o755, Dir: 0o755}, Root: 0o755}
	js, err := m.encode()
	if err != nil {
		return "", err
	}
	metaID, err := wr.Add(object.Blob, js)
	if err != nil {
		return "", err
	}
	id, err := wr.Add(object.Tree, object.AppendTree(nil, []object.TreeEntry{
		{Mode: object.ModeFile, Name: "meta", ID: metaID}, {Mode: object.ModeDir, Name: "tree", ID: tree}}))
	return Commit(id.String()), err
}
