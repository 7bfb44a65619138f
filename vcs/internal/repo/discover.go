package repo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Options says where configuration outside the repository lies. An empty
// field means that there is none.
type Options struct {
	Home          string // for ~/.gitconfig, ~ in paths, and the XDG default
	XDGConfigHome string // defaults to Home/.config
	SystemConfig  string // the file, such as /etc/gitconfig
}

// Repo is a worktree and the git directories behind it, with the
// configuration as it was when the Repo was opened. It holds no open files
// and is safe for concurrent use.
type Repo struct {
	Root      string // top of the worktree, without symlinks
	GitDir    string // this worktree's HEAD, index and state
	CommonDir string // objects, branches and configuration; GitDir unless Linked
	Linked    bool   // one of several worktrees (git worktree add)

	Config   *Config   // system, global, repository and worktree, merged
	Settings Settings  // the keys we use, typed and defaulted
	Warnings []Warning // what was skipped while reading

	format format
	opts   Options
}

// Discover returns the repository whose worktree dir lies in, looking in dir
// and then its parents as git does, up to the filesystem's boundary. dir is
// absolute. The Root of a repository with core.worktree may lie elsewhere.
//
// It fails with ErrNotRepository, ErrBare or ErrGitFile.
func Discover(dir string, opts Options) (*Repo, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("discover %q: path is not absolute", dir)
	}
	start, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	device, err := deviceOf(start)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	for at := start; ; {
		r, err := openAt(at, opts)
		if err == nil || !errors.Is(err, ErrNotRepository) {
			return r, err
		}
		if isGitDir(at) {
			return nil, fmt.Errorf("%w: %s", ErrBare, at)
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		if d, err := deviceOf(parent); err != nil || d != device {
			break
		}
		at = parent
	}
	return nil, fmt.Errorf("%w: %s", ErrNotRepository, dir)
}

// Open returns the repository whose .git lies in dir itself; parents are not
// considered. Otherwise as Discover.
func Open(dir string, opts Options) (*Repo, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("open repository %q: path is not absolute", dir)
	}
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	return openAt(at, opts)
}

func openAt(dir string, opts Options) (*Repo, error) {
	gitDir, err := gitDirAt(filepath.Join(dir, ".git"))
	if err != nil {
		return nil, err
	}
	r := &Repo{Root: dir, GitDir: gitDir, opts: opts}
	if r.CommonDir, err = commonDir(gitDir); err != nil {
		return nil, err
	}
	r.Linked = r.CommonDir != r.GitDir
	r.readFormat()
	if r.format.bare {
		return nil, fmt.Errorf("%w: %s", ErrBare, gitDir)
	}
	if r.format.worktree != "" {
		r.moveRoot(r.format.worktree)
	}
	r.readConfig()
	return r, nil
}

// moveRoot follows core.worktree, which is relative to the git directory. git
// dies when it leads nowhere; the directory holding .git is still a worktree
// worth capturing.
func (r *Repo) moveRoot(worktree string) {
	if !filepath.IsAbs(worktree) {
		worktree = filepath.Join(r.GitDir, worktree)
	}
	root, err := filepath.EvalSymlinks(worktree)
	if err != nil {
		r.Warnings = append(r.Warnings, Warning{
			File: filepath.Join(r.CommonDir, "config"), Reason: "core.worktree leads nowhere: " + worktree})
		return
	}
	r.Root = root
}

// gitDirAt returns the git directory that path, named .git, is or names.
func gitDirAt(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %s", ErrNotRepository, path)
	case info.IsDir():
		if !isGitDir(path) {
			return "", fmt.Errorf("%w: %s", ErrNotRepository, path)
		}
		return filepath.EvalSymlinks(path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%w: %s", ErrNotRepository, path)
	}
	target, err := readGitFile(path)
	if err != nil {
		return "", err
	}
	if !isGitDir(target) {
		return "", fmt.Errorf("%w: %s names %s, which is no git directory", ErrGitFile, path, target)
	}
	return filepath.EvalSymlinks(target)
}
