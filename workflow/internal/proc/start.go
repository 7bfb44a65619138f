package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// prepare makes what starts the command, or says why it can't be.
func (c Command) prepare() (*exec.Cmd, error) {
	argv, err := c.argv()
	if err != nil {
		return nil, &StartError{Name: "nothing", Err: err}
	}
	if err := isFolder(c.Dir); err != nil {
		return nil, &StartError{Name: argv[0], Err: err}
	}
	path, err := c.program(argv[0])
	if err != nil {
		return nil, &StartError{Name: argv[0], NotFound: errors.Is(err, fs.ErrNotExist), Err: err}
	}
	return &exec.Cmd{
		Path: path,
		Args: argv,
		Dir:  c.Dir,
		Env:  append([]string{}, c.Env...), // nil would inherit
		// A session of its own has no terminal either: what would ask for a
		// password fails at once instead of waiting for ever.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}, nil
}

func (c Command) argv() ([]string, error) {
	switch {
	case len(c.Argv) > 0 && c.Shell != "":
		return nil, errors.New("both a program and a script are given")
	case c.Shell != "":
		return []string{"/bin/sh", "-c", c.Shell}, nil
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return nil, errors.New("no program is given")
	}
	return c.Argv, nil
}

// isFolder checks Dir, since a start in a folder that is missing fails as if
// the program were.
func isFolder(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("in its folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("in its folder: %w", &fs.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR})
	}
	return nil
}

// program is the file of a program. A name without a slash is looked up in the
// PATH of Env, whose relative folders do not count: a program must not come
// from the worktree by accident.
func (c Command) program(name string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		return name, executable(path)
	}
	var refused error
	for _, folder := range filepath.SplitList(c.path()) {
		if !filepath.IsAbs(folder) {
			continue
		}
		path := filepath.Join(folder, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if refused == nil && !errors.Is(err, fs.ErrNotExist) {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", fmt.Errorf("not in PATH: %w", fs.ErrNotExist)
}

// path is the PATH of Env; the last one counts, as for the command.
func (c Command) path() (path string) {
	for _, entry := range c.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	return path
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
	case info.Mode()&0o111 == 0:
		return &fs.PathError{Op: "exec", Path: path, Err: fs.ErrPermission}
	}
	return nil
}
