package vcs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A worktree of our own is a plain directory with a pointer in it. All else
// that belongs to it, but for the stat cache and the lock, lies in its home, a
// folder of the store:
//
//	owned/<name>/record     which directory it is, and whether it is complete
//	owned/<name>/git        its git directory, where the workspace has one
//	owned/<name>/nested-N   those of the repositories inside
//
// The pointer is the .git file, or, outside git, a file ".retcon". It is the
// first thing in the directory and the last to go, so that a directory that was
// left half-way is known for what it is; the record says that it is whole only
// when it is.

// ownedRecord is what the file record holds.
type ownedRecord struct {
	Root   []byte `json:"root"` // base64: names are bytes
	Commit Commit `json:"commit"`
	Whole  bool   `json:"whole"`
}

const (
	ownedFolder  = "owned"
	ownedPrefix  = "own-"
	plainPointer = "." + StoreName
)

// OwnedFolder is where worktrees of our own lie, unless the caller wants them
// elsewhere.
func (w *Worktree) OwnedFolder() string { return filepath.Join(w.folder, "worktrees") }

// folderOf is the store folder that a home lies in.
func folderOf(home string) string { return filepath.Dir(filepath.Dir(home)) }

// isHome tells that path has the form of a home and holds a record.
func isHome(path string) bool {
	if filepath.Base(filepath.Dir(path)) != ownedFolder || !strings.HasPrefix(filepath.Base(path), ownedPrefix) {
		return false
	}
	fi, err := os.Lstat(filepath.Join(path, "record"))
	return err == nil && fi.Mode().IsRegular()
}

// homeOfGitDir is the home that a git directory lies in.
func homeOfGitDir(gitDir string) (home string, ok bool) {
	home = filepath.Dir(gitDir)
	return home, filepath.Base(gitDir) == "git" && isHome(home)
}

// ownedAbove finds the nearest directory at or above dir with the pointer of a
// worktree outside git, and its home. What the pointer says counts only when
// the record there says the same: a file of that name may come from anywhere.
func ownedAbove(dir string) (root, home string) {
	for {
		if home, err := readPointer(dir); err == nil && isHome(home) {
			if rec, err := readRecord(home); err == nil && string(rec.Root) == dir {
				return dir, home
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", ""
		}
		dir = up
	}
}

func readPointer(dir string) (home string, err error) {
	b, err := readBeneathPath(filepath.Join(dir, plainPointer))
	if err != nil {
		return "", err
	}
	home, ok := strings.CutPrefix(strings.TrimSuffix(string(b), "\n"), "owned: ")
	if !ok {
		return "", fs.ErrNotExist
	}
	if !filepath.IsAbs(home) {
		home = filepath.Join(dir, home)
	}
	return filepath.Clean(home), nil
}

// readBeneathPath reads a small regular file, and no link.
func readBeneathPath(path string) ([]byte, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > 16<<10 {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(path)
}

func readRecord(home string) (rec ownedRecord, err error) {
	b, err := os.ReadFile(filepath.Join(home, "record"))
	if err == nil {
		err = json.Unmarshal(b, &rec)
	}
	return rec, err
}

// writeRecord replaces the record, on disk before it returns.
func writeRecord(home string, rec ownedRecord) error {
	b, err := json.Marshal(&rec)
	if err != nil {
		return err
	}
	tmp := filepath.Join(home, "record.tmp")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(home, "record"))
}

func (w *Worktree) refuseIncomplete() error {
	if w.kind != Owned {
		return nil
	}
	rec, err := readRecord(filepath.Join(w.folder, ownedFolder, w.name))
	if err != nil {
		return err
	}
	if !rec.Whole {
		return fmt.Errorf("%s: %w", w.root, ErrIncomplete)
	}
	return nil
}

// owned is a directory that is, or is to be, a worktree of our own. Whoever has
// one holds its lock.
type owned struct {
	w       *Worktree
	root    string // absolute; no component above the last is a link
	name    string
	home    string
	pointer string // the name of the file in root
	says    []byte // and its content
	lk      *fileLock
}

// own takes dir, which need not be there; the directory above it must.
func (w *Worktree) own(ctx context.Context, dir string) (*owned, error) {
	up, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return nil, err
	}
	o := &owned{w: w, root: filepath.Join(up, filepath.Base(dir))}
	sum := sha256.Sum256([]byte(o.root))
	o.name = ownedPrefix + hex.EncodeToString(sum[:8])
	o.home = filepath.Join(w.folder, ownedFolder, o.name)
	o.pointer, o.says = plainPointer, []byte("owned: "+o.from(o.home)+"\n")
	if w.repo != nil && w.reason == "" {
		o.pointer, o.says = ".git", []byte("gitdir: "+o.from(filepath.Join(o.home, "git"))+"\n")
	}
	if w.held != nil && w.name == o.name {
		return nil, &LockedError{What: "the worktree"}
	}
	o.lk, err = lockName(ctx, filepath.Join(w.folder, "locks", "capture-"+o.name))
	return o, err
}

// from is path as the pointer names it: relative where both lie in the store's
// folder, so that it may be moved with all that is in it.
func (o *owned) from(path string) string {
	if strings.HasPrefix(o.root, o.w.folder+"/") {
		if rel, err := filepath.Rel(o.root, path); err == nil {
			return rel
		}
	}
	return path
}

func (o *owned) release() { o.lk.unlock() }

// lockName is lockFile for a file that whoever holds the lock may remove.
func lockName(ctx context.Context, path string) (*fileLock, error) {
	for {
		lk, err := lockFile(ctx, path)
		if err != nil {
			return nil, err
		}
		var is, named fileStat
		if err := statFd(int(lk.f.Fd()), &is); err != nil {
			lk.unlock()
			return nil, err
		}
		if statPath(path, &named) == nil && named.ino == is.ino && named.dev == is.dev {
			return lk, nil
		}
		lk.unlock()
	}
}

// Whether a directory is ours to fill or to clear.
type occupancy int

const (
	isAbsent  occupancy = iota
	isEmpty             // there, and ours to fill
	isPartial           // ours, and a Checkout or a removal died in it
	isWhole             // ours
	isForeign
)

// look says what is at the root.
func (o *owned) look() (occupancy, error) {
	fi, err := os.Lstat(o.root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return isAbsent, nil
	case err != nil:
		return isForeign, err
	case !fi.IsDir():
		return isForeign, nil
	}
	fd, err := openRoot(o.root)
	if err != nil {
		return isForeign, err
	}
	defer unix.Close(fd)
	empty := true
	if err := readDir(fd, make([]byte, 4<<10), func([]byte, byte) { empty = false }); err != nil {
		return isForeign, err
	}
	if empty {
		return isEmpty, nil
	}
	rec, err := readRecord(o.home)
	if err != nil || string(rec.Root) != o.root {
		return isForeign, nil
	}
	says, err := readBeneathPath(filepath.Join(o.root, o.pointer))
	switch {
	case err != nil:
		return isForeign, nil
	case bytes.Equal(says, o.says) && rec.Whole:
		return isWhole, nil
	case bytes.HasPrefix(o.says, says) && !rec.Whole: // it may have died while it wrote the pointer
		return isPartial, nil
	}
	return isForeign, nil
}
