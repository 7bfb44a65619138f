package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lock is a git lock file: path.lock, created by one process only, that
// becomes path by being renamed. Until commit, path is untouched.
type lock struct {
	path     string
	file     *os.File
	settings Settings
}

// acquire takes the lock on path, or returns *LockExistsError at once. The
// caller defers release.
func acquire(path string, settings Settings) (*lock, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, &LockExistsError{Path: path + ".lock"}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	l := &lock{path: path, file: f, settings: settings}
	if err := l.share(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// share widens the mode where the repository is shared.
func (l *lock) share() error {
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	mode := info.Mode().Perm()
	if shared := l.settings.sharedMode(mode); shared != mode {
		if err := l.file.Chmod(shared); err != nil {
			return fmt.Errorf("lock %s: %w", l.path, err)
		}
	}
	return nil
}

// write puts content into the lock file and on disk.
func (l *lock) write(content []byte) error {
	if _, err := l.file.Write(content); err != nil {
		return fmt.Errorf("write %s.lock: %w", l.path, err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("write %s.lock: %w", l.path, err)
	}
	return nil
}

// commit makes what was written the file, and releases the lock by that. When
// it fails, the file is either the old or the new one.
func (l *lock) commit() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", l.path, err)
	}
	err := os.Rename(l.path+".lock", l.path)
	if err != nil && isDir(l.path) && removeEmptyDirs(l.path) {
		err = os.Rename(l.path+".lock", l.path)
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", l.path, err)
	}
	l.file = nil
	if err := syncDir(filepath.Dir(l.path)); err != nil {
		return fmt.Errorf("publish %s: %w", l.path, err)
	}
	return nil
}

// release gives the lock up, unless commit has. The file is removed while it
// is still open or failed to be renamed: it is ours.
func (l *lock) release() {
	if l.file == nil {
		return
	}
	os.Remove(l.path + ".lock") // nothing more can be done about a lock that stays
	l.file.Close()              // nothing in it is wanted
	l.file = nil
}

// removeEmptyDirs removes dir when there are only empty directories below it:
// where deleted branches lived, a file may want to be.
func removeEmptyDirs(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !e.IsDir() || !removeEmptyDirs(filepath.Join(dir, e.Name())) {
			return false
		}
	}
	return os.Remove(dir) == nil
}

// makeDirs creates dir and its parents below base, shared as the repository is.
func makeDirs(base, dir string, settings Settings) error {
	if dir == base || isDir(dir) {
		return nil
	}
	if err := makeDirs(base, filepath.Dir(dir), settings); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrExist) && isDir(dir) {
		return nil // somebody was quicker
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	mode := info.Mode() & (fs.ModePerm | fs.ModeDir)
	if shared := settings.sharedMode(mode); shared != mode {
		return os.Chmod(dir, shared.Perm()|fs.ModeSetgid)
	}
	return nil
}
