package vcs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// CheckoutOptions say what comes into a worktree of our own.
type CheckoutOptions struct {
	// Ignored brings the ignored files that were captured as well.
	Ignored bool
	// Sync puts everything on disk before Checkout returns.
	Sync bool
}

// Checkout makes dir, an absolute path that is absent or an empty directory, a
// worktree of our own with the files of c. It shares the store and the ledger
// of w, and captures under a name of its own; the first capture reads no file.
// Close it, and remove it with RemoveOwned.
//
// Where the workspace is a git repository, git works in dir as in a clone:
// HEAD is detached where c saw it, branches and tags are those of this moment,
// the index is that of c, and the objects are borrowed. Nothing that git does
// there, commits included, reaches the user's repository; only the time of an
// object file it would have written again is renewed. There are no remotes, no
// stash, no hooks of the repository, and no operation in progress. The
// repositories inside are treated alike, as long as w still has them; their
// index is that of their HEAD. Outside git, and where the repository has a
// format we only read files of, there is no git directory.
//
// What c did not capture is absent. Ignored files are absent as well, unless
// the options want them, but for an ignored .gitignore, which decides what is
// captured.
//
// It fails with *OccupiedError, ErrNoCommit, ErrMissing or ErrDamaged, and
// leaves nothing then. One that died can be called again, or its directory be
// given to RemoveOwned; Open refuses it with ErrIncomplete.
func (w *Worktree) Checkout(ctx context.Context, c Commit, dir string, opt CheckoutOptions) (*Worktree, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("BUG: %q is not absolute", dir)
	}
	unlock, err := w.Shared(ctx) // until the new stat cache keeps c
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := w.readCommit(c)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o700); err != nil {
		return nil, err
	}
	o, err := w.own(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer o.release()
	is, err := o.look()
	switch {
	case err != nil:
		return nil, err
	case is == isWhole || is == isForeign:
		return nil, &OccupiedError{Dir: dir}
	case is == isPartial:
		if err := o.clear(); err != nil {
			return nil, fmt.Errorf("clear %s: %w", dir, err)
		}
	}
	made, err := o.make(ctx, c, r, opt)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("check out %s into %s: %w", c, dir, err), o.unmake(is))
	}
	return made, nil
}

// make fills the root. It is empty or not there.
func (o *owned) make(ctx context.Context, c Commit, r *commitRoot, opt CheckoutOptions) (_ *Worktree, err error) {
	rec := ownedRecord{Root: []byte(o.root), Commit: c}
	if err := o.begin(rec, r); err != nil {
		return nil, err
	}
	rootfd, err := openRoot(o.root)
	if err != nil {
		return nil, err
	}
	defer unix.Close(rootfd)
	if err := o.point(rootfd); err != nil {
		return nil, err
	}
	crash.Point("checkout.begun")
	co := newCheckout(ctx, o, r, opt, rootfd)
	defer co.close()
	if err := co.fill(r); err != nil {
		return nil, err
	}
	crash.Point("checkout.filled")
	made, err := find(o.root, o.w.plainOptions())
	if err == nil {
		made, err = made.open()
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			made.Close()
		}
	}()
	if made.repo != nil {
		if err := made.checkoutIndex(r, co); err != nil {
			return nil, err
		}
	}
	if err := made.seedCache(c, r, co); err != nil {
		return nil, err
	}
	if opt.Sync {
		if err := syncFS(rootfd); err != nil {
			return nil, err
		}
	}
	crash.Point("checkout.whole")
	rec.Whole = true
	return made, writeRecord(o.home, rec)
}

// plainOptions are the options as somebody gave them.
func (w *Worktree) plainOptions() Options {
	opt := w.opt
	opt.rules.global, opt.rules.include, opt.Create = nil, nil, false
	return opt
}

// begin notes what is about to be made, and makes the home and the directory.
func (o *owned) begin(rec ownedRecord, r *commitRoot) error {
	if err := os.RemoveAll(o.home); err != nil { // of a directory that somebody removed by hand
		return err
	}
	if err := os.MkdirAll(o.home, 0o700); err != nil {
		return err
	}
	if err := writeRecord(o.home, rec); err != nil {
		return err
	}
	if o.pointer == ".git" {
		head := repo.Head{}
		if r.meta.Head != nil {
			head = repo.Head{Ref: r.meta.Head.Ref, ID: r.meta.Head.ID}
		}
		if err := o.gitDir(o.w.repo, "git", head); err != nil {
			return fmt.Errorf("git directory: %w", err)
		}
	}
	crash.Point("checkout.begin")
	err := os.Mkdir(o.root, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// gitDir makes a git directory in the home that borrows from the repository r
// and from the store, which keeps what r may drop.
func (o *owned) gitDir(r *repo.Repo, name string, head repo.Head) error {
	dirs, err := r.ObjectDirs()
	if err != nil {
		return err
	}
	dir := filepath.Join(o.home, name)
	store := filepath.Join(o.w.store.Dir(), "objects")
	lenders := []string{store}
	for _, d := range dirs {
		// What was committed in another worktree of ours goes with it.
		if d != store && !strings.HasPrefix(d, filepath.Join(o.w.folder, ownedFolder)+"/") {
			lenders = append(lenders, d)
		}
	}
	theirs := object.Foreign(lenders)
	has := func(id string) bool {
		oid, err := object.ParseID(id)
		return err == nil && theirs.Has(oid)
	}
	if head.ID != "" && !has(head.ID) {
		head.ID = ""
	}
	common := filepath.Dir(o.w.folder)
	for i, d := range lenders {
		if strings.HasPrefix(d, common+"/") {
			if rel, err := filepath.Rel(filepath.Join(dir, "objects"), d); err == nil {
				lenders[i] = rel
			}
		}
	}
	return r.WritePrivate(repo.Private{Dir: dir, Head: head, Objects: lenders, Has: has})
}

// point writes the pointer, the first thing in the root.
func (o *owned) point(rootfd int) error {
	return writeNew(rootfd, o.pointer, o.says)
}

func writeNew(dirfd int, name string, data []byte) error {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	return errors.Join(writeAll(fd, data), unix.Close(fd))
}

// unmake takes back all that make did to a root that was as was. What somebody
// else has put there since stays.
func (o *owned) unmake(was occupancy) error {
	is, err := o.look()
	if err != nil {
		return err
	}
	if is == isPartial || is == isWhole {
		if err := o.clear(); err != nil {
			return err
		}
		is = isEmpty
	}
	if was == isAbsent && is == isEmpty {
		if err := os.Remove(o.root); err != nil {
			return err
		}
	}
	return o.forget()
}

// checkoutIndex writes the index of the commit. Where a file is what the index
// says, its stamps stand there too, and git need not read it.
func (w *Worktree) checkoutIndex(r *commitRoot, co *checkout) error {
	var entries []repo.IndexEntryOut
	var err error
	if !r.index.IsZero() {
		entries, err = w.indexEntries(r)
	} else { // it could not be read: as after git reset
		entries, err = headEntries(w.repo, w.store)
	}
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return co.writeIndex(w.repo, "", entries)
}

// headEntries are the entries of an index that is what HEAD is.
func headEntries(r *repo.Repo, more *object.Store) ([]repo.IndexEntryOut, error) {
	head, err := r.Head()
	if err != nil || head.ID == "" {
		return nil, err
	}
	id, err := object.ParseID(head.ID)
	if err != nil {
		return nil, err
	}
	dirs, err := r.ObjectDirs()
	if err != nil {
		return nil, err
	}
	from := object.Foreign(append(dirs, filepath.Join(more.Dir(), "objects")))
	kind, data, err := from.ReadVerified(id, nil)
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	tree, ok := strings.CutPrefix(line, "tree ")
	if kind != object.Commit || !ok {
		return nil, fmt.Errorf("%w: %s is no commit", ErrDamaged, id)
	}
	root, err := object.ParseID(tree)
	if err != nil {
		return nil, err
	}
	return treeEntries(from, root)
}

// seedCache leaves a stat cache behind that knows every file and distrusts
// every listing: the first capture lists, decides anew what is ignored, and
// reads nothing.
func (w *Worktree) seedCache(c Commit, r *commitRoot, co *checkout) error {
	sources, err := w.outerRules()
	if err != nil {
		return err
	}
	co.settle()
	f := facts{Root: [2]uint64{w.dev, w.ino}, Store: w.storeID, Rules: w.rulesDigest(sources), Modes: r.meta.Modes,
		Boot: bootID(), Commit: c, Generation: w.store.Generation(), Packs: w.packNames()}
	var st fileStat
	if err := statPath(w.packDir(), &st); err == nil {
		f.PackTime = st.mtime
	}
	return (&statCache{facts: f, dirs: co.dirs}).save(w.cachePath())
}

// settle waits until the clock that stamps files has moved on: whoever writes
// from now on leaves other stamps than ours. Where it ticks too slowly the
// files are read again instead.
func (co *checkout) settle() {
	newest := int64(0)
	for _, d := range co.dirs {
		for i := range d.entries {
			if e := &d.entries[i]; e.class == classFile || e.class == classLink || e.class == classIgnoredFile {
				newest = max(newest, e.mtime, e.ctime)
			}
		}
	}
	for range 20 {
		if coarseNow() > newest && newest%1e9 != 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	for _, d := range co.dirs {
		for i := range d.entries {
			d.entries[i].flags |= flagRacy
		}
	}
}
