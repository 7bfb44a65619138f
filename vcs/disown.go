package vcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
)

// RemoveOwned removes a directory that a Checkout of this workspace made, and
// what belongs to it: git directory, stat cache, stages. Of a directory that is
// gone it removes the rest. No link is followed, and nothing that is mounted
// below is touched. What was captured there stays as long as somebody keeps the
// commits.
//
// It fails with *NotOwnedError when the directory is not ours. One that died,
// or met a mount, can be called again.
func (w *Worktree) RemoveOwned(ctx context.Context, dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("BUG: %q is not absolute", dir)
	}
	o, err := w.own(ctx, dir)
	if err != nil {
		return err
	}
	defer o.release()
	is, err := o.look()
	if err != nil {
		return err
	}
	rec, rerr := readRecord(o.home)
	if is == isForeign || rerr != nil {
		return &NotOwnedError{Dir: dir}
	}
	if is == isWhole {
		rec.Whole = false
		if err := writeRecord(o.home, rec); err != nil {
			return err
		}
		crash.Point("owned.remove")
	}
	if err := o.clear(); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	if is != isAbsent {
		if err := os.Remove(o.root); err != nil {
			return err
		}
		crash.Point("owned.removed")
	}
	return o.forget()
}

// clear empties the root, its pointer last.
func (o *owned) clear() error {
	fd, err := openRoot(o.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	mount, err := mountID(fd)
	if err != nil {
		return err
	}
	if err := emptyDir(fd, "", o.pointer, mount); err != nil {
		return err
	}
	crash.Point("owned.cleared")
	err = unix.Unlinkat(fd, o.pointer, 0)
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// emptyDir removes all that is in an open directory, but for one name. It
// lends itself the right to where a directory denies it.
func emptyDir(fd int, path, but string, mount uint64) error {
	var st fileStat
	if err := statFd(fd, &st); err != nil {
		return err
	}
	if st.perm()&0o700 != 0o700 {
		if err := unix.Fchmod(fd, st.perm()|0o700); err != nil {
			return err
		}
	}
	type child struct {
		name string
		kind byte
	}
	for try := 0; ; try++ { // a process that is not dead yet may still write here
		var all []child
		err := readDir(fd, make([]byte, 32<<10), func(name []byte, kind byte) {
			if string(name) != but {
				all = append(all, child{string(name), kind})
			}
		})
		if err != nil || len(all) == 0 || try == 8 {
			if err == nil && len(all) > 0 {
				err = unix.ENOTEMPTY
			}
			return err
		}
		for _, c := range all {
			if err := removeAt(fd, c.name, join(path, c.name), c.kind, mount); err != nil {
				return err
			}
		}
	}
}

func removeAt(dirfd int, name, path string, kind byte, mount uint64) error {
	if kind != dtDir {
		err := unix.Unlinkat(dirfd, name, 0)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EISDIR && err != unix.EPERM {
			return &os.PathError{Op: "remove", Path: path, Err: err}
		}
	}
	fd, err := openDirAt(dirfd, name)
	if err == unix.EACCES && chmodAt(dirfd, name, 0o700) == nil {
		fd, err = openDirAt(dirfd, name)
	}
	switch err {
	case nil:
	case unix.ENOENT:
		return nil
	default:
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	id, err := mountID(fd)
	if err == nil && id != mount {
		err = unix.EBUSY
	}
	if err == nil {
		err = emptyDir(fd, path, "", mount)
	}
	unix.Close(fd)
	if err == nil {
		err = unix.Unlinkat(dirfd, name, unix.AT_REMOVEDIR)
	}
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if _, told := errors.AsType[*os.PathError](err); told {
		return err
	}
	return &os.PathError{Op: "remove", Path: path, Err: err}
}

// forget removes what the store has of a directory that is gone, the record
// last.
func (o *owned) forget() error {
	w := o.w
	var errs []error
	for _, p := range []string{filepath.Join(w.folder, "statcache", o.name), filepath.Join(w.folder, "locks", "move-"+o.name)} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, os.RemoveAll(filepath.Join(w.folder, "displaced", o.name)))
	entries, err := os.ReadDir(w.OwnedFolder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), o.name+"-stage-") {
			errs = append(errs, os.RemoveAll(filepath.Join(w.OwnedFolder(), e.Name())))
		}
	}
	inside, err := os.ReadDir(o.home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range inside {
		if e.Name() != "record" {
			errs = append(errs, os.RemoveAll(filepath.Join(o.home, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.RemoveAll(o.home); err != nil {
		return err
	}
	err = os.Remove(filepath.Join(w.folder, "locks", "capture-"+o.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
