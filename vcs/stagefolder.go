package vcs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// stageName is a folder in which a restore keeps files on their way, where the
// store is not in the same mount. No path of this name is captured or restored,
// in whatever folder.
const stageName = ".retcon-stage"

// drawers are the folders in a stage of many files: two files cannot be named at
// once in one.
var drawers = []string{"a", "b", "c", "d"}

// folder is a place in one mount from which files can be renamed to wherever
// they belong in that mount, and back.
type folder struct {
	mount string // the mount point, relative to the root; "" for the root's own
	dir   string // absolute
	fd    int    // -1 when it is not open
	rooms rooms

	heritage heritage // of files made there
	plain    bool     // it is known
}

// stageDir is the folder for the root's own mount. With no id it is what all
// have in common.
func (w *Worktree) stageDir(id string) string {
	if w.sharesMount(w.folder) {
		return filepath.Join(w.folder, "worktrees", w.name+"-stage-"+id)
	}
	return filepath.Join(w.root, stageName, id)
}

// sharesMount tells that files can be renamed from dir into the root.
func (w *Worktree) sharesMount(dir string) bool {
	fd, err := openRoot(dir)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	theirs, err := mountID(fd)
	if err != nil {
		return false
	}
	ours, err := mountID(w.rootfd)
	return err == nil && theirs == ours
}

// mounts finds out in which mount directories lie.
type mounts struct {
	w    *Worktree
	id   map[string]uint64 // of directories, or of the nearest that is there
	root uint64
}

func (w *Worktree) mounts() (*mounts, error) {
	root, err := mountID(w.rootfd)
	return &mounts{w: w, id: map[string]uint64{"": root}, root: root}, err
}

func (m *mounts) of(dir string) (uint64, error) {
	if id, ok := m.id[dir]; ok {
		return id, nil
	}
	fd, err := openDirAt(m.w.rootfd, dir)
	var id uint64
	switch err {
	case nil:
		id, err = mountID(fd)
		unix.Close(fd)
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP: // will be made, in its parent's mount
		up, _ := split(dir)
		id, err = m.of(up)
	}
	if err != nil {
		return 0, &os.PathError{Op: "mount of", Path: dir, Err: err}
	}
	m.id[dir] = id
	return id, nil
}

// point is the mount point above dir, "" for the root's own mount.
func (m *mounts) point(dir string) (string, error) {
	id, err := m.of(dir)
	if err != nil || id == m.root {
		return "", err
	}
	for dir != "" {
		up, _ := split(dir)
		above, err := m.of(up)
		if err != nil {
			return "", err
		}
		if above != id {
			break
		}
		dir = up
	}
	return dir, nil
}

// place gives every step the folder of the mount it is in, and makes those
// folders.
func (s *Staged) place(id string) error {
	m, err := s.w.mounts()
	if err != nil {
		return err
	}
	byMount := make(map[string]*folder)
	for i := range s.steps {
		dir, _ := split(s.steps[i].change.Path)
		point, err := m.point(dir)
		if err != nil {
			return err
		}
		f := byMount[point]
		if f == nil {
			f = &folder{mount: point, dir: s.w.mountStage(point, id), fd: -1}
			byMount[point] = f
			s.folders = append(s.folders, f)
		}
		s.steps[i].at = f
	}
	if byMount[""] == nil { // the manifest lies there
		s.folders = append(s.folders, &folder{dir: s.w.stageDir(id), fd: -1})
	}
	for _, f := range s.folders {
		if err := s.w.openFolder(f, id); err != nil {
			return fmt.Errorf("stage in %s: %w", filepath.Join(s.w.root, f.mount), err)
		}
		for _, d := range drawers[:min(1, len(s.steps)/crowd)*len(drawers)] {
			if err := unix.Mkdirat(f.fd, d, 0o700); err != nil {
				return &os.PathError{Op: "mkdir", Path: filepath.Join(f.dir, d), Err: err}
			}
		}
	}
	return nil
}

func (w *Worktree) mountStage(point, id string) string {
	if point == "" {
		return w.stageDir(id)
	}
	return filepath.Join(w.root, point, stageName, id)
}

// openFolder makes and opens f. In a mount below the root no component may be a
// link.
func (w *Worktree) openFolder(f *folder, id string) (err error) {
	if f.mount == "" {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return err
		}
		if f.fd, err = openRoot(f.dir); err == nil {
			apart(f.fd)
			f.heritage, f.plain = heritageOf(f.fd)
		}
		return err
	}
	at, err := openDirAt(w.rootfd, f.mount)
	if err != nil {
		return err
	}
	for _, name := range []string{stageName, id} {
		err := unix.Mkdirat(at, name, 0o700)
		if err != nil && err != unix.EEXIST {
			unix.Close(at)
			return err
		}
		next, err := openDirAt(at, name)
		unix.Close(at)
		if err != nil {
			return err
		}
		at = next
	}
	f.fd = at
	apart(f.fd)
	f.heritage, f.plain = heritageOf(f.fd)
	return nil
}

func (f *folder) close() {
	f.rooms.close()
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}

// discard removes the folder and what is in it.
func (w *Worktree) discard(f *folder) error {
	f.close()
	if f.mount == "" {
		err := os.RemoveAll(f.dir)
		if parent := filepath.Dir(f.dir); filepath.Base(parent) == stageName {
			_ = os.Remove(parent) // fails while another stage is in it
		}
		return err
	}
	root, err := os.OpenRoot(w.root) // somebody may have put a link in the way since
	if err != nil {
		return err
	}
	defer root.Close()
	parent := filepath.Join(f.mount, stageName)
	err = root.RemoveAll(filepath.Join(parent, filepath.Base(f.dir)))
	_ = root.Remove(parent) // fails while another stage is in it
	if errors.Is(err, os.ErrNotExist) {
		return nil // it is not mounted any more
	}
	return err
}

// stages are the ids of all stages of this worktree.
func (w *Worktree) stages() ([]string, error) {
	common := w.stageDir("")
	dir, prefix := filepath.Dir(common), filepath.Base(common)
	if prefix == stageName {
		dir, prefix = common, ""
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name(), prefix); ok && e.IsDir() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
