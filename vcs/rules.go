package vcs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
	"golang.org/x/sys/unix"
)

// rulesMoved tells whether d's own .gitignore is not what it was.
func (s *scanner) rulesMoved(d *dirRec, fd int) (bool, error) {
	if d.ignoreAt < 0 || d.flags&dirFresh != 0 {
		return false, nil
	}
	e := &d.entries[d.ignoreAt]
	var st fileStat
	if err := statAt(fd, d.cname(e), &st); err != nil || !st.isReg() {
		return true, nil // gone or replaced
	}
	if e.sameStat(&st) && e.flags&flagRacy == 0 {
		return false, nil
	}
	data, err := s.readRules(d)
	if err != nil {
		return true, err
	}
	return object.Sum(object.Blob, data) != e.id, nil
}

// readRules returns the content of d's .gitignore, nil when it has none. A link
// is not followed, as git does not.
func (s *scanner) readRules(d *dirRec) ([]byte, error) {
	data, err := readBeneath(s.rootfd, join(d.path, ".gitignore"))
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
		return nil, nil
	}
	// Guessing would widen what is captured, and one day deleted.
	return nil, &IgnoreError{Path: join(d.path, ".gitignore"), Err: err}
}

func readBeneath(rootfd int, rel string) ([]byte, error) {
	fd, err := openBeneath(rootfd, rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	return io.ReadAll(f)
}

// inside is the chain of rules for the entries of d.
func (s *scanner) inside(d *dirRec) (*ignore.Chain, error) {
	s.chainMu.Lock()
	defer s.chainMu.Unlock()
	return s.insideLocked(d)
}

func (s *scanner) insideLocked(d *dirRec) (*ignore.Chain, error) {
	if d.inside != nil {
		return d.inside, nil
	}
	data, err := s.readRules(d)
	if err != nil {
		return nil, err
	}
	switch {
	case d.parent < 0:
		d.inside = s.outer.WithFile(data)
	case d.flags&dirNested != 0:
		outer, err := s.nestedRules(d)
		if err != nil {
			return nil, err
		}
		d.inside = outer.WithFile(data)
	default:
		up, err := s.insideLocked(s.dir(d.parent))
		if err != nil {
			return nil, err
		}
		name := d.path[strings.LastIndexByte(d.path, '/')+1:]
		if d.flags&dirUnderIgnored != 0 {
			d.inside = up.EnterIgnored(name)
		} else {
			d.inside = up.Enter(name, data)
		}
	}
	return d.inside, nil
}

// nestedRules are the rules outside the worktree of a nested repository.
func (s *scanner) nestedRules(d *dirRec) (*ignore.Chain, error) {
	src := slices.Clone(s.opt.rules.global)
	if r, err := repo.Discover(s.abs(d.path), s.opt.repoOptions()); err == nil {
		data, err := os.ReadFile(filepath.Join(r.CommonDir, "info", "exclude"))
		if err == nil {
			src = append(src, ignore.Source{Name: "info/exclude", Data: data})
		} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return nil, &IgnoreError{Path: join(d.path, ".git/info/exclude"), Err: err}
		}
	}
	return ignore.Root(ignore.Options{FoldCase: s.fold}, src...), nil
}

// forgetRules drops the chains of d and below: they hang on its own.
func (s *scanner) forgetRules(d *dirRec) {
	d.inside = nil
	for i := range d.entries {
		if ch := d.entries[i].child; ch >= 0 {
			c := s.dir(ch)
			c.relist = true
			s.forgetRules(c)
		}
	}
}
