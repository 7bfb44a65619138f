package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// edit is what a file should become. No content means no file.
type edit struct {
	path          string
	before, after []byte
	ours          bool // the whole file: no backup
	program       bool // executable
	anywhere      bool // it is the user's, whatever the scope
}

// ErrChanged: somebody wrote the settings while we were at it. Nothing was
// written; try again.
var ErrChanged = errors.New("changed meanwhile")

// current reads a file for an edit. One that does not exist is nil.
func current(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// apply carries an edit out, if there is anything to do.
func (s Setup) apply(e edit) (done []Touch, err error) {
	if bytes.Equal(e.before, e.after) && (e.before == nil) == (e.after == nil) {
		return nil, nil
	}
	target, err := s.target(e)
	if err != nil {
		return nil, err
	}
	if e.before != nil && !e.ours {
		kept, err := s.backup(target, e.before)
		if err != nil {
			return nil, err
		}
		done = append(done, Touch{Path: kept, Done: "backup"})
	}
	what, err := "changed", error(nil)
	switch now, readErr := current(target); {
	case readErr != nil:
		return done, readErr
	case !bytes.Equal(now, e.before) || (now == nil) != (e.before == nil):
		return done, fmt.Errorf("%s: %w", target, ErrChanged)
	case e.after == nil:
		what, err = "removed", os.Remove(target)
	case e.before == nil:
		what, err = "created", create(target, e)
	default:
		err = rewrite(target, e)
	}
	if err != nil {
		return done, err
	}
	return append(done, Touch{Path: target, Done: what}), nil
}

// target follows links to the file that is to be written, which need not exist
// yet. In a project it must be inside.
func (s Setup) target(e edit) (string, error) {
	target := e.path
	for range 40 {
		dir, err := existing(filepath.Dir(target))
		if err != nil {
			return "", err
		}
		target = filepath.Join(dir, filepath.Base(target))
		link, err := os.Readlink(target)
		if err != nil {
			return target, s.inside(e, target)
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(dir, link)
		}
		target = link
	}
	return "", fmt.Errorf("%s: too many links", e.path)
}

// existing resolves the part of a folder's path that exists.
func existing(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
		return real, err
	}
	if _, err := os.Lstat(dir); err == nil {
		return "", fmt.Errorf("%s: a link to nothing", dir)
	}
	parent, err := existing(filepath.Dir(dir))
	return filepath.Join(parent, filepath.Base(dir)), err
}

func (s Setup) inside(e edit, target string) error {
	if s.Scope != Project || e.anywhere {
		return nil
	}
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(root, target); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return &LinkError{Path: e.path, Target: target}
	}
	return nil
}

// backup keeps what a file held, once for each content.
func (s Setup) backup(path string, content []byte) (string, error) {
	dir := s.Backups
	if dir == "" {
		dir = filepath.Dir(path)
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	digest := sha256.Sum256(append([]byte(path+"\x00"), content...))
	kept := filepath.Join(dir, fmt.Sprintf("%s.%x.retcon-backup", filepath.Base(path), digest[:6]))
	if _, err := os.Lstat(kept); err == nil {
		return kept, nil
	}
	return kept, write(kept, content, 0o600)
}

func create(path string, e edit) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if e.program {
		mode = 0o755
	}
	return write(path, e.after, mode)
}

func rewrite(path string, e edit) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return write(path, e.after, info.Mode().Perm())
}

// write replaces a file whole or not at all.
func write(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone by then when all went well
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
