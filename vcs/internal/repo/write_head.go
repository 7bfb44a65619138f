package repo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Ident is who a reflog entry names.
type Ident struct{ Name, Email string }

// WriteHead moves HEAD from old to new: to another branch, to another commit
// of the same branch, or off all branches. It is what an explicit request to
// put back HEAD does; index and worktree are not looked at.
//
// HEAD must still be old, or already be new, in which case nothing is
// written: a caller that died may simply call again. The branch of new, when
// HEAD was elsewhere, must not exist or be at new.ID; move it there with
// WriteRef first. Otherwise the error is ErrRefMoved. A branch that another
// worktree has checked out gives *BranchInUseError, a lock that somebody holds
// *LockExistsError, and a branch without a commit that has got one by now
// ErrRefMoved: WriteHead deletes nothing.
//
// The branch is written before HEAD, each with its reflog entry before it, as
// git does. packed-refs is never written. On error no lock is left behind, and
// HEAD is as it was unless the last step failed, which is syncing the folder;
// a process killed half-way can leave HEAD.lock or the branch's.
func (r *Repo) WriteHead(old, new Head, reflogMessage string, who Ident, now time.Time) error {
	if err := r.writable(); err != nil {
		return err
	}
	if err := checkHead(new); err != nil {
		return err
	}
	head, err := acquire(filepath.Join(r.GitDir, "HEAD"), r.Settings)
	if err != nil {
		return err
	}
	defer head.release()
	switch current, err := r.Head(); {
	case err != nil:
		return err
	case current == new:
		return nil
	case current != old:
		return fmt.Errorf("%w: HEAD is %s, not %s", ErrRefMoved, current, old)
	}
	entry := reflogEntry{old: old.ID, new: new.ID, who: who, when: now, message: reflogMessage}
	if new.Ref == "" {
		return r.publishHead(head, new.ID, entry)
	}
	if new.Ref == old.Ref {
		if new.ID == "" {
			return fmt.Errorf("%w: %s has a commit and cannot be made unborn", ErrRefMoved, new.Ref)
		}
		return r.writeRef(new.Ref, old.ID, entry, true)
	}
	if err := r.bringBranch(new, entry); err != nil {
		return err
	}
	return r.publishHead(head, "ref: "+new.Ref, entry)
}

// WriteRef moves a branch, or another full ref name, from the commit old to
// new. old is "" when the ref must not exist; new is never "". Errors, locks
// and reflog are as in WriteHead. When the ref is this worktree's branch, HEAD
// moves with it and gets a reflog entry too.
func (r *Repo) WriteRef(name, old, new, reflogMessage string, who Ident, now time.Time) error {
	if err := r.writable(); err != nil {
		return err
	}
	if err := checkHead(Head{Ref: name, ID: new}); err != nil {
		return err
	}
	if !isID(new) {
		return fmt.Errorf("%w: %q is no object id", ErrBadRef, new)
	}
	current, err := r.Head()
	if err != nil {
		return err
	}
	entry := reflogEntry{old: old, new: new, who: who, when: now, message: reflogMessage}
	if current.Ref != name {
		return r.writeRef(name, old, entry, false)
	}
	head, err := acquire(filepath.Join(r.GitDir, "HEAD"), r.Settings)
	if err != nil {
		return err
	}
	defer head.release()
	return r.writeRef(name, old, entry, true)
}

func (r *Repo) writable() error {
	if reason, yes := r.FilesOnly(); yes {
		return fmt.Errorf("%w: %s", ErrFilesOnly, reason)
	}
	return nil
}

func checkHead(h Head) error {
	switch {
	case h.Unknown, h.Ref == "" && h.ID == "":
		return fmt.Errorf("%w: HEAD is unknown", ErrBadRef)
	case h.Ref != "" && (!validRefName(h.Ref) || !strings.HasPrefix(h.Ref, "refs/")):
		return fmt.Errorf("%w: name %q", ErrBadRef, h.Ref)
	case h.ID != "" && !isID(h.ID):
		return fmt.Errorf("%w: %q is no object id", ErrBadRef, h.ID)
	}
	return nil
}

func isID(s string) bool {
	id, ok := leadingHex([]byte(s))
	return ok && id == s && len(s) == 40
}

// bringBranch creates the branch HEAD is about to be on, or makes sure that it
// is where it should be.
func (r *Repo) bringBranch(new Head, entry reflogEntry) error {
	if err := r.freeBranch(new.Ref); err != nil {
		return err
	}
	_, id, err := r.resolve(new.Ref)
	switch {
	case err != nil:
		return err
	case id == new.ID:
		return nil
	case id != "":
		return fmt.Errorf("%w: %s is at %s, not %s", ErrRefMoved, new.Ref, id, Head{ID: new.ID})
	}
	entry.old = ""
	return r.writeRef(new.Ref, "", entry, false)
}

// publishHead writes HEAD itself through its lock.
func (r *Repo) publishHead(head *lock, content string, entry reflogEntry) error {
	if err := head.write([]byte(content + "\n")); err != nil {
		return err
	}
	if entry.new != "" { // git logs nothing about an unborn branch
		if err := r.appendReflog("HEAD", entry); err != nil {
			return err
		}
	}
	return head.commit()
}

// writeRef moves the ref that name leads to. withHead: HEAD is on it, is
// locked, and shares the reflog entry.
func (r *Repo) writeRef(name, old string, entry reflogEntry, withHead bool) error {
	if err := r.freeBranch(name); err != nil {
		return err
	}
	last, _, err := r.resolve(name)
	if err != nil {
		return err
	}
	path := r.refPath(last)
	if err := r.freeName(last); err != nil {
		return err
	}
	if err := makeDirs(r.refDir(last), filepath.Dir(path), r.Settings); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadRef, last, err)
	}
	l, err := acquire(path, r.Settings)
	if err != nil {
		return err
	}
	defer l.release()
	again, current, err := r.resolve(name)
	switch {
	case err != nil:
		return err
	case again != last || current != old && current != entry.new:
		return fmt.Errorf("%w: %s is at %s, not %s", ErrRefMoved, name, Head{ID: current}, Head{ID: old})
	case current == entry.new:
		return nil
	}
	if err := l.write([]byte(entry.new + "\n")); err != nil {
		return err
	}
	if err := r.appendReflog(last, entry); err != nil {
		return err
	}
	if withHead {
		if err := r.appendReflog("HEAD", entry); err != nil {
			return err
		}
	}
	return l.commit()
}

// freeName refuses a name that is a folder of other refs, or lies below one.
// Loose refs exclude each other in the filesystem; packed ones are looked up.
func (r *Repo) freeName(name string) error {
	packed, err := r.packedRefs()
	if err != nil {
		return err
	}
	if bytes.Contains(packed, []byte(" "+name+"/")) {
		return fmt.Errorf("%w: there are refs below %s", ErrBadRef, name)
	}
	for i := strings.LastIndexByte(name, '/'); i > len("refs/"); i = strings.LastIndexByte(name[:i], '/') {
		if value, err := r.readRef(name[:i]); err == nil && value != (refValue{}) {
			return fmt.Errorf("%w: %s exists, so %s cannot", ErrBadRef, name[:i], name)
		}
	}
	return nil
}

// freeBranch refuses a branch that another worktree stands on or rebases.
func (r *Repo) freeBranch(name string) error {
	others, err := filepath.Glob(filepath.Join(escapeGlob(r.CommonDir), "worktrees", "*"))
	if err != nil {
		return fmt.Errorf("worktrees: %w", err)
	}
	if r.Linked && !r.mainIsBare() {
		others = append(others, r.CommonDir)
	}
	for _, gitDir := range others {
		if sameFile(gitDir, r.GitDir) {
			continue
		}
		for _, file := range []string{"HEAD", "rebase-merge/head-name", "rebase-apply/head-name"} {
			data, err := readSmall(filepath.Join(gitDir, file))
			if err != nil {
				continue // not in that state
			}
			if ref, _ := symbolicTarget(data); ref == name || strings.TrimSpace(string(data)) == name {
				return &BranchInUseError{Ref: name, GitDir: gitDir}
			}
		}
	}
	return nil
}

// mainIsBare reports whether the shared directory belongs to no worktree, so
// that its HEAD stands for nothing on disk.
func (r *Repo) mainIsBare() bool {
	settings := r.ownConfig(filepath.Join(r.CommonDir, "config")).settings
	if r.format.worktreeConfig {
		own := r.ownConfig(filepath.Join(r.CommonDir, "config.worktree"))
		settings = append(settings, own.settings...)
	}
	bare, _ := (&Config{settings: settings}).Bool("core.bare") // no boolean, not bare
	return bare
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// String shows where a Head stands, for people.
func (h Head) String() string {
	switch {
	case h.Unknown:
		return "unknown"
	case h.Ref == "" && h.ID == "":
		return "nothing"
	case h.Ref == "":
		return h.ID
	case h.ID == "":
		return h.Ref + " (unborn)"
	}
	return h.Ref + " at " + h.ID
}
