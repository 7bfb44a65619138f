package vcs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// Defaults of Options.
const (
	DefaultMaxFile       = 100 << 20
	DefaultIgnoredMax    = 1 << 20
	DefaultIgnoredPerDir = 32
)

// Options of a worktree. The zero value of each field is a sensible choice.
type Options struct {
	// Home, XDGConfigHome and SystemConfig are where git's configuration
	// outside the repository lies. Home is also what must not be captured.
	Home, XDGConfigHome, SystemConfig string

	MaxFile       int64    // bytes; a larger file is noted, not captured. DefaultMaxFile
	IgnoredMax    int64    // bytes; a larger ignored file is left alone. DefaultIgnoredMax
	IgnoredPerDir int      // where there are more ignored files than that, none is captured. DefaultIgnoredPerDir
	Include       []string // patterns, as in .gitignore, of ignored paths to capture like any other

	Create    bool // make the store of a plain folder at the given directory
	AllowWide bool // do not refuse a home directory

	rules struct {
		global  []ignore.Source
		include []ignore.Pattern
	}
}

func (o *Options) repoOptions() repo.Options {
	return repo.Options{Home: o.Home, XDGConfigHome: o.XDGConfigHome, SystemConfig: o.SystemConfig}
}

// included tells that an ignored path is wanted: it, or a directory it lies in,
// matches an include pattern, or it leads to one.
func (o *Options) included(path string) bool {
	for i, p := range o.rules.include {
		if p.MatchPath(path, false) || p.MatchPath(path, true) {
			return true
		}
		for at := range len(path) {
			if path[at] == '/' && p.MatchPath(path[:at], true) {
				return true
			}
		}
		if strings.HasPrefix(strings.TrimPrefix(o.Include[i], "/"), path+"/") {
			return true
		}
	}
	return false
}

// Kind says what a worktree belongs to.
type Kind string

const (
	Plain     Kind = "plain"     // a folder outside git
	Git       Kind = "git"       // the main worktree of a repository
	Linked    Kind = "linked"    // made by git worktree add
	Submodule Kind = "submodule" // its git directory lies in another's modules
	Owned     Kind = "owned"     // made by Checkout
)

// StoreName is the folder, below the git directory or in a plain folder as
// "."+StoreName, that holds all we keep.
const StoreName = "retcon"

// Worktree is an open worktree and its store. Its methods are safe for use by
// several processes at once; a Worktree itself by one goroutine at a time,
// unless a method says otherwise.
type Worktree struct {
	root    string
	kind    Kind
	folder  string // the store folder
	name    string // of this worktree among those that share the store
	opt     Options
	repo    *repo.Repo // nil for a plain folder
	reason  string     // why the repository's objects are not shared; "" when they are
	store   *object.Store
	storeID string
	rootfd  int
	dev     uint64
	ino     uint64
	ahead   *readAhead // the index, while the store is made
	held    *fileLock  // between Hold and release
	last    *statCache // of the newest capture while held
}

// Open opens the worktree that dir, an absolute path, lies in: the nearest git
// worktree or plain folder with a store. GIT_* variables have no say.
//
// It fails with ErrNotWorkspace, ErrBare, ErrIncomplete or *WideRootError.
func Open(dir string, opt Options) (*Worktree, error) {
	w, err := find(dir, opt)
	if err != nil {
		return nil, err
	}
	if err := w.refuseWide(); err != nil {
		return nil, err
	}
	if err := w.refuseIncomplete(); err != nil {
		return nil, err
	}
	return w.open()
}

// RootOf is the top of the worktree that dir lies in, as Open would find it.
// Nothing is opened.
func RootOf(dir string, opt Options) (string, error) {
	w, err := find(dir, opt)
	if err != nil {
		return "", err
	}
	return w.root, nil
}

// open opens what find has found.
func (w *Worktree) open() (_ *Worktree, err error) {
	w.opt.rules.global, err = w.globalRules()
	if err != nil {
		return nil, err
	}
	for _, p := range w.opt.Include {
		w.opt.rules.include = append(w.opt.rules.include, ignore.Compile(p, w.foldCase()))
	}
	if w.rootfd, err = openRoot(w.root); err != nil {
		return nil, err
	}
	var st fileStat
	if err := statFd(w.rootfd, &st); err != nil {
		w.Close()
		return nil, err
	}
	w.dev, w.ino = st.dev, st.ino
	if err := w.openStore(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// find says which worktree dir lies in, without writing anything.
func find(dir string, opt Options) (*Worktree, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("BUG: %q is not absolute", dir)
	}
	if opt.MaxFile == 0 {
		opt.MaxFile = DefaultMaxFile
	}
	if opt.IgnoredMax == 0 {
		opt.IgnoredMax = DefaultIgnoredMax
	}
	if opt.IgnoredPerDir == 0 {
		opt.IgnoredPerDir = DefaultIgnoredPerDir
	}
	w := &Worktree{opt: opt, rootfd: -1}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	plain := plainRoot(real)
	r, err := repo.Discover(real, opt.repoOptions())
	if root, home := ownedAbove(real); root != "" && len(root) > len(plain) && (err != nil || len(root) > len(r.Root)) {
		w.root, w.kind, w.name, w.folder = root, Owned, filepath.Base(home), folderOf(home)
		w.reason = "not a git repository"
		return w, nil
	}
	switch {
	case err == nil && len(r.Root) >= len(plain):
		w.repo, w.root, w.kind, w.name = r, r.Root, Git, "main"
		w.folder = filepath.Join(r.CommonDir, StoreName)
		if home, ok := homeOfGitDir(r.GitDir); ok {
			w.kind, w.name, w.folder = Owned, filepath.Base(home), folderOf(home)
		} else if r.Linked {
			w.kind, w.name = Linked, "wt-"+filepath.Base(r.GitDir)
		} else if strings.Contains(r.GitDir, "/modules/") {
			w.kind = Submodule
		}
		w.reason, _ = r.FilesOnly()
		return w, nil
	case err != nil && !errors.Is(err, repo.ErrNotRepository) && plain == "":
		return nil, err
	}
	if plain == "" {
		if !opt.Create {
			return nil, ErrNotWorkspace
		}
		plain = real
	}
	w.root, w.kind, w.name = plain, Plain, "main"
	w.folder = filepath.Join(plain, "."+StoreName)
	w.reason = "not a git repository"
	return w, nil
}

// plainRoot is the nearest folder at or above dir that has a store of a plain
// folder; "" when there is none.
func plainRoot(dir string) string {
	for {
		if fi, err := os.Lstat(filepath.Join(dir, "."+StoreName, "store.git")); err == nil && fi.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func (w *Worktree) refuseWide() error {
	if w.opt.AllowWide {
		return nil
	}
	home := w.opt.Home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if w.root == "/" || home != "" && (w.root == home || strings.HasPrefix(home, w.root+"/")) {
		return &WideRootError{Root: w.root}
	}
	return nil
}

func (w *Worktree) foldCase() bool { return w.repo != nil && w.repo.Settings.IgnoreCase }

// globalRules reads the ignore rules that lie outside every repository.
func (w *Worktree) globalRules() ([]ignore.Source, error) {
	path := filepath.Join(w.opt.XDGConfigHome, "git", "ignore")
	if w.opt.XDGConfigHome == "" {
		path = filepath.Join(w.opt.Home, ".config", "git", "ignore")
	}
	if w.repo != nil {
		path = w.repo.Settings.ExcludesFile
	} else if w.opt.Home == "" && w.opt.XDGConfigHome == "" {
		return nil, nil
	}
	return readSource(nil, path)
}

func readSource(to []ignore.Source, path string) ([]ignore.Source, error) {
	if path == "" {
		return to, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return to, nil
	}
	if err != nil {
		return nil, &IgnoreError{Path: path, Err: err}
	}
	return append(to, ignore.Source{Name: path, Data: data}), nil
}

// openStore opens the object store, and makes it on the first use: then the
// packs and objects of the user's repository are linked into it, so that what
// they hold need not be stored again and stays when their owner drops it.
func (w *Worktree) openStore() error {
	dir := filepath.Join(w.folder, "store.git")
	idFile := filepath.Join(dir, "retcon-id")
	id, err := os.ReadFile(idFile)
	if err == nil && len(id) == 32 {
		w.storeID = string(id)
		_ = w.makeFolders() // somebody took them for empty; whoever needs one says what is wrong
		w.store, err = object.Open(dir)
		return err
	}
	if err == nil { // damaged
		err = os.Remove(idFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	w.readAhead()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var whole *object.Draft // says that the store is, and gets its name last
	var work errgroup.Group // that waits for the disk, each part for itself
	work.Go(func() (err error) {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		whole, err = object.NewDraft(idFile, hex.EncodeToString(b[:]))
		return err
	})
	work.Go(w.makeFolders)
	work.Go(func() error { return w.makeStore(dir) })
	err = work.Wait()
	defer whole.Drop()
	if err != nil {
		return err
	}
	if err := whole.Publish(); err != nil {
		return err
	}
	id, err = os.ReadFile(idFile)
	w.storeID = string(id)
	return err
}

// makeStore makes the object store, and shares what the user's repository has.
func (w *Worktree) makeStore(dir string) (err error) {
	if w.store, err = object.Create(dir); err != nil || w.reason != "" {
		return err
	}
	dirs, err := w.repo.ObjectDirs()
	if err != nil {
		return err
	}
	if _, err := w.store.Link(dirs); err != nil {
		return fmt.Errorf("share objects: %w", err)
	}
	return nil
}

func (w *Worktree) makeFolders() error {
	for _, sub := range []string{"statcache", "worktrees", "locks", "log"} {
		if err := os.MkdirAll(filepath.Join(w.folder, sub), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Close gives back descriptors.
func (w *Worktree) Close() error {
	w.ahead.take()
	if w.rootfd >= 0 {
		unix.Close(w.rootfd)
		w.rootfd = -1
	}
	if w.store != nil {
		return w.store.Close()
	}
	return nil
}

// Root is the top of the worktree, an absolute path without symbolic links.
func (w *Worktree) Root() string { return w.root }

// Folder is where all we keep lies: the ledger's place too.
func (w *Worktree) Folder() string { return w.folder }

// Kind says what the worktree belongs to.
func (w *Worktree) Kind() Kind { return w.kind }

// GitDir is the worktree's git directory, "" for a plain folder.
func (w *Worktree) GitDir() string {
	if w.repo == nil {
		return ""
	}
	return w.repo.GitDir
}

// FilesOnly says why refs and objects of the user's repository are not used;
// "" when they are.
func (w *Worktree) FilesOnly() string { return w.reason }

// Identity is device and inode of the root directory: what tells a worktree
// from another that was put in its place.
func (w *Worktree) Identity() (dev, ino uint64) { return w.dev, w.ino }

// Limits returns the options in force.
func (w *Worktree) Limits() Options { return w.opt }

func (w *Worktree) cachePath() string { return filepath.Join(w.folder, "statcache", w.name) }

func (w *Worktree) lockPath(what string) string {
	return filepath.Join(w.folder, "locks", what+"-"+w.name)
}

// Rel turns a path, absolute or relative to cwd, into one relative to the root:
// "" for the root itself. It fails with *OutsideError. The last component is
// not followed when it is a symbolic link.
func (w *Worktree) Rel(cwd, path string) (string, error) {
	abs := path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(cwd, path)
	}
	abs = filepath.Clean(abs)
	if abs != w.root {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(dir, filepath.Base(abs))
		}
	}
	if abs == w.root {
		return "", nil
	}
	rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(w.root, "/")+"/")
	if !ok {
		return "", &OutsideError{Path: path, Root: w.root}
	}
	return rel, nil
}

// rulesDigest identifies the options and outside rules a cache was made under.
func (w *Worktree) rulesDigest(sources []ignore.Source) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d %q %v\n", w.opt.MaxFile, w.opt.IgnoredMax, w.opt.IgnoredPerDir, w.opt.Include, w.foldCase())
	if w.repo != nil {
		fmt.Fprintf(h, "%v %v\n", w.repo.Settings.FileMode, w.repo.Settings.Symlinks)
	}
	for _, s := range sources {
		fmt.Fprintf(h, "%d\n%s", len(s.Data), s.Data)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
