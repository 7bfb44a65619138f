package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const tempPrefix = "tmp_"

// createTemp makes a temporary file in dir and locks it for as long as it is
// open: CleanTemp takes an unlocked one for a dead process's.
func createTemp(dir, what string) (*os.File, error) {
	for range 100 {
		f, err := os.CreateTemp(dir, tempPrefix+what+"_")
		if err != nil {
			return nil, err
		}
		if err := flockNow(f, unix.LOCK_EX); err == nil && linked(f) {
			return f, nil
		} else if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			os.Remove(f.Name())
			return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
		f.Close() // a cleaner came between the two steps
	}
	return nil, fmt.Errorf("temporary files in %s vanish as they are made", dir)
}

func linked(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0
}

// CleanTemp removes what processes that were killed have left: temporary
// files nobody holds, and packs that never got their index. Files in use are
// left alone, so it may run at any time.
func (s *Store) CleanTemp() error {
	if s.dir == "" {
		return ErrReadOnly
	}
	var errs []error
	for _, dir := range []string{s.packDir(), s.dir} {
		names, err := readNames(dir)
		if err != nil {
			return fmt.Errorf("clean temporary files: %w", err)
		}
		for _, n := range names {
			if strings.HasPrefix(n, tempPrefix) {
				errs = append(errs, removeIdle(filepath.Join(dir, n)))
			}
		}
	}
	errs = append(errs, s.removeOrphans())
	return errors.Join(errs...)
}

// removeIdle removes a temporary file unless it is locked.
func removeIdle(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean temporary files: %w", err)
	}
	defer f.Close()
	if flockNow(f, unix.LOCK_EX) != nil {
		return nil // in use
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clean temporary files: %w", err)
	}
	return nil
}

// removeOrphans removes packs without index. Writers and Link hold the shared
// lock while they publish, so under the exclusive one such a pack is nobody's.
func (s *Store) removeOrphans() error {
	names, err := readNames(s.packDir())
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, n := range names {
		has[n] = true
	}
	var orphans []string
	for _, n := range names {
		if base, ok := strings.CutSuffix(n, ".pack"); ok && !has[base+".idx"] {
			orphans = append(orphans, n)
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer f.Close()
	if flockNow(f, unix.LOCK_EX) != nil {
		return nil // somebody is writing; next time
	}
	return removeOrphanFiles(s.packDir(), orphans)
}

func removeOrphanFiles(dir string, packs []string) error {
	for _, n := range packs {
		path := filepath.Join(dir, n)
		if _, err := os.Lstat(strings.TrimSuffix(path, ".pack") + ".idx"); err == nil {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove pack without index: %w", err)
		}
	}
	return nil
}
