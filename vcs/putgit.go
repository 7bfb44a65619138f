package vcs

import (
	"errors"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// Ident is who a reflog entry names.
type Ident = repo.Ident

// PutOptions say what of the user's repository is put back.
type PutOptions struct {
	Head    bool // HEAD and the branch it is on
	Index   bool
	Message string // of the reflog entry
	Who     Ident  // from the repository's configuration when empty
	Now     time.Time
}

// NoGitStateError says why HEAD or the index of a commit cannot be put back.
type NoGitStateError struct{ Why string }

func (e *NoGitStateError) Error() string { return "HEAD and index cannot be put back: " + e.Why }

// PutGit puts back HEAD and index as commit to has them, under git's own locks
// and with reflog entries. from is the commit of the worktree as it was: HEAD
// must still be there, or already where it should be, so that a move that died
// can call it again. The old tip stays in our store.
func (w *Worktree) PutGit(to, from Commit, opt PutOptions) error {
	if w.repo == nil || w.reason != "" {
		return &NoGitStateError{Why: w.reason}
	}
	target, err := w.readCommit(to)
	if err != nil {
		return err
	}
	was, err := w.readCommit(from)
	if err != nil {
		return err
	}
	if opt.Head {
		// Whatever can be refused is refused before anything is written.
		switch {
		case target.meta.Head == nil:
			return &NoGitStateError{Why: "the checkpoint does not know where HEAD was"}
		case target.meta.Head.ID == "":
			return &NoGitStateError{Why: "the branch had no commit yet"}
		}
		if err := w.giveBack(target.meta.Head.ID); err != nil {
			return err
		}
	}
	if opt.Index {
		if err := w.putIndex(target); err != nil {
			return err
		}
	}
	if !opt.Head {
		return nil
	}
	if opt.Who == (Ident{}) {
		opt.Who = Ident{Name: w.repo.Settings.UserName, Email: w.repo.Settings.UserEmail}
	}
	return w.putHead(*target.meta.Head, was.meta.Head, opt)
}

func (w *Worktree) putHead(to Head, was *Head, opt PutOptions) error {
	now, err := w.repo.Head()
	if err != nil {
		return err
	}
	want := repo.Head{Ref: to.Ref, ID: to.ID}
	if now == want {
		return nil
	}
	if was == nil || now != (repo.Head{Ref: was.Ref, ID: was.ID}) {
		tip, _, err := w.repo.Ref(to.Ref)
		if err != nil {
			return err
		}
		if to.Ref == "" || tip != to.ID { // not half-way there either
			return repo.ErrRefMoved
		}
	}
	if to.Ref != "" && to.Ref != now.Ref {
		tip, ok, err := w.repo.Ref(to.Ref)
		if err != nil {
			return err
		}
		if !ok {
			tip = ""
		}
		if tip != to.ID {
			if err := w.repo.WriteRef(to.Ref, tip, to.ID, opt.Message, opt.Who, opt.Now); err != nil {
				return err
			}
		}
	}
	return w.repo.WriteHead(now, want, opt.Message, opt.Who, opt.Now)
}

// giveBack makes sure the user's repository has a commit we are about to make
// its HEAD: it may have been collected there, and then is only here.
func (w *Worktree) giveBack(id string) error {
	oid, err := object.ParseID(id)
	if err != nil {
		return err
	}
	dirs, err := w.repo.ObjectDirs()
	if err != nil {
		return err
	}
	if !object.Foreign(dirs).Has(oid) {
		return &NoGitStateError{Why: fmt.Sprintf("commit %s is no longer in the repository; fetch it from the store with: git fetch %s %s",
			id, w.store.Dir(), id)}
	}
	return nil
}

// putIndex writes the index of a commit. Stat data are left out, so that git
// looks at each file anew.
func (w *Worktree) putIndex(c *commitRoot) error {
	if c.index.IsZero() {
		why := "the checkpoint has no index"
		if c.meta.Degraded != "" {
			why = "its index could not be read: " + c.meta.Degraded
		}
		return &NoGitStateError{Why: why}
	}
	if c.meta.Sparse {
		return &NoGitStateError{Why: "the checkout is sparse"}
	}
	now, err := w.repo.ReadIndex(repo.IndexOptions{})
	if err != nil && !errors.Is(err, repo.ErrIndex) {
		return err
	}
	entries, err := w.indexEntries(c)
	if err != nil {
		return err
	}
	if now == nil {
		now = &repo.Index{}
		if now.Signature, err = w.repo.IndexSignature(); err != nil {
			return err
		}
	}
	if sameEntries(now, entries) {
		return nil
	}
	if err := w.giveBackBlobs(entries); err != nil {
		return err
	}
	return w.repo.WriteIndex(entries, now.Signature)
}

// indexEntries are the entries of the index of a commit, without stat data.
func (w *Worktree) indexEntries(c *commitRoot) ([]repo.IndexEntryOut, error) {
	entries, err := treeEntries(w.store, c.index)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(entries))
	for i := range entries {
		at[entries[i].Name] = i
	}
	for _, x := range c.meta.Extra {
		id, err := object.ParseID(x.ID)
		if err != nil {
			return nil, fmt.Errorf("%w: index entry %q", ErrDamaged, x.Path)
		}
		out := repo.IndexEntryOut{Name: string(x.Path)}
		out.Mode, out.OID, out.Stage, out.Flags = x.Mode, repo.OID(id), x.Stage, repo.EntryFlags(x.Flags)
		if i, ok := at[out.Name]; ok && x.Stage == 0 {
			entries[i] = out
			continue
		}
		entries = append(entries, out)
	}
	return entries, nil
}

// treeEntries are the entries of an index that has just the content of a tree.
func treeEntries(from *object.Store, tree object.ID) (entries []repo.IndexEntryOut, err error) {
	var walk func(prefix string, id object.ID) error
	walk = func(prefix string, id object.ID) error {
		_, data, err := from.ReadVerified(id, nil)
		if err != nil {
			return err
		}
		for e, err := range object.ParseTree(data) {
			if err != nil {
				return err
			}
			if err := checkName(e.Name); err != nil {
				return err
			}
			if e.IsDir() {
				if err := walk(prefix+e.Name+"/", e.ID); err != nil {
					return err
				}
				continue
			}
			out := repo.IndexEntryOut{Name: prefix + e.Name}
			out.Mode, out.OID = e.Mode, repo.OID(e.ID)
			entries = append(entries, out)
		}
		return nil
	}
	return entries, walk("", tree)
}

// giveBackBlobs refuses an index that names contents the user's repository no
// longer has.
func (w *Worktree) giveBackBlobs(entries []repo.IndexEntryOut) error {
	dirs, err := w.repo.ObjectDirs()
	if err != nil {
		return err
	}
	theirs := object.Foreign(dirs)
	for i := range entries {
		if entries[i].Mode != repo.ModeGitlink && !theirs.Has(object.ID(entries[i].OID)) {
			return &NoGitStateError{Why: fmt.Sprintf("what was staged of %q is no longer in the repository", entries[i].Name)}
		}
	}
	return nil
}

func sameEntries(x *repo.Index, entries []repo.IndexEntryOut) bool {
	if len(x.Entries) != len(entries) {
		return false
	}
	type key struct {
		name  string
		stage uint8
	}
	have := make(map[key]*repo.Entry, len(entries))
	for i := range x.Entries {
		have[key{x.Name(i), x.Entries[i].Stage}] = &x.Entries[i]
	}
	for i := range entries {
		e := have[key{entries[i].Name, entries[i].Stage}]
		if e == nil || e.OID != entries[i].OID || e.Mode != entries[i].Mode || e.Flags != entries[i].Flags {
			return false
		}
	}
	return true
}

// TreeOf is the tree of a commit, as git names it.
func (w *Worktree) TreeOf(c Commit) (string, error) {
	r, err := w.readCommit(c)
	if err != nil {
		return "", err
	}
	return r.top.tree.String(), nil
}
