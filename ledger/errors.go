package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors about a row.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")

	// ErrFenced: the caller's token is no longer the newest, or what it was
	// for has ended. Somebody else has taken over: stop, and touch nothing.
	ErrFenced = errors.New("fenced out by a newer owner")

	// ErrFinished: the row has its outcome already, and an outcome is never
	// replaced.
	ErrFinished = errors.New("already finished")

	// ErrStale: somebody else has appended to the branch, or moved the run.
	// Load the head anew, and decide again.
	ErrStale = errors.New("the head has moved")
)

// Errors about the use of a DB.
var (
	// ErrClosed: the DB has been closed.
	ErrClosed = errors.New("ledger is closed")

	// ErrView: a method that writes was called inside View.
	ErrView = errors.New("write in a read-only transaction")
)

// Errors about the file, returned by Open and possibly by any transaction.
type (
	// NewerSchemaError: the ledger was written by a newer program. Nothing
	// was changed; use that program.
	NewerSchemaError struct {
		Path       string
		Have, Know int // the file's schema, the newest one known here
	}

	// OlderSchemaError: the ledger needs a migration and was opened for
	// reading. Open it for writing once.
	OlderSchemaError struct {
		Path       string
		Have, Know int
	}

	// NotLedgerError: the file is something else. It was not changed.
	NotLedgerError struct {
		Path, Reason string
	}

	// CorruptError: the file is damaged, or a row holds what no row can hold.
	// Stop writing, copy the file away, and run the checks.
	CorruptError struct {
		Path string
		Err  error
	}

	// FullError: there is no room for the write. The transaction was rolled
	// back, what was committed before is whole, and reads go on.
	FullError struct {
		Path string
		Err  error
	}

	// ReadOnlyError: the file or its directory can't be written.
	ReadOnlyError struct {
		Path string
		Err  error
	}
)

// LockedError: the resource is held by somebody else. Wait, or find out
// whether the owner lives. Owner and Since are zero when the holder can't be
// known, as for the file itself.
type LockedError struct {
	Resource string
	Owner    Owner
	Since    time.Time
}

// Errors about what was asked for.
type (
	// RootChangedError: the directory at the path is not the one recorded.
	// What was recorded about the old one may not be true of the new one; to
	// go on with it, set Worktree.Adopt.
	RootChangedError struct {
		Path     string
		Old, New RootID
	}

	// AmbiguousError: the prefix or name fits several rows.
	AmbiguousError struct {
		Prefix  string
		Matches []string // at most ten
	}

	// LabelError: the label, or the place for one, is taken. Holder is the
	// checkpoint in the way and Has the label it carries. MoveLabel goes ahead
	// all the same.
	LabelError struct {
		Label  string
		Holder int64
		Has    string
	}

	// PinnedError: the checkpoint is pinned and can't be deleted.
	PinnedError struct {
		Checkpoint int64
	}

	// ReferencedError: a row can't be deleted because others need it.
	ReferencedError struct {
		What string // "c17", "r7"
		By   string // "op 3", "attempt 1 of task in r7"
	}

	// UndoneError: the operation can't be undone: it was already, or it
	// changed nothing, or what it needs has been pruned.
	UndoneError struct {
		Op     int64
		Reason string
	}

	// InProgressError: an operation is open on the worktree or under the
	// request key. If its owner is dead, recover it first.
	InProgressError struct {
		Op    int64
		Verb  string
		Owner Owner
		Since time.Time
	}

	// RequestKeyReuseError: the request key belongs to a different request.
	RequestKeyReuseError struct {
		Key string
		Op  int64
	}

	// RepeatedError: this very request has been carried out; Op holds its
	// result.
	RepeatedError struct {
		Op Op
	}
)

func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("%s has schema %d, newer than %d, the newest this program knows", e.Path, e.Have, e.Know)
}

func (e *OlderSchemaError) Error() string {
	return fmt.Sprintf("%s has schema %d, older than %d, and is open for reading only", e.Path, e.Have, e.Know)
}

func (e *NotLedgerError) Error() string {
	return fmt.Sprintf("%s is not a ledger: %s", e.Path, e.Reason)
}

func (e *CorruptError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.Path, e.Err) }
func (e *CorruptError) Unwrap() error { return e.Err }

func (e *FullError) Error() string { return fmt.Sprintf("no room to write %s: %v", e.Path, e.Err) }
func (e *FullError) Unwrap() error { return e.Err }

func (e *ReadOnlyError) Error() string { return fmt.Sprintf("%s is read-only: %v", e.Path, e.Err) }
func (e *ReadOnlyError) Unwrap() error { return e.Err }

func (e *LockedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is locked", e.Resource)
	if e.Owner.PID != 0 {
		fmt.Fprintf(&b, " by %s", e.Owner)
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.Format(time.RFC3339))
	}
	return b.String()
}

func (e *RootChangedError) Error() string {
	return fmt.Sprintf("%s is another directory now: inode %d on device %d, recorded was %d on %d",
		e.Path, e.New.Ino, e.New.Dev, e.Old.Ino, e.Old.Dev)
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous: %s", e.Prefix, strings.Join(e.Matches, ", "))
}

func (e *LabelError) Error() string {
	if e.Has == e.Label {
		return fmt.Sprintf("label %q is on c%d", e.Label, e.Holder)
	}
	return fmt.Sprintf("c%d is labelled %q already", e.Holder, e.Has)
}

func (e *PinnedError) Error() string { return fmt.Sprintf("c%d is pinned", e.Checkpoint) }

func (e *ReferencedError) Error() string { return fmt.Sprintf("%s is needed by %s", e.What, e.By) }

func (e *UndoneError) Error() string { return fmt.Sprintf("op %d %s", e.Op, e.Reason) }

func (e *InProgressError) Error() string {
	return fmt.Sprintf("op %d (%s) is in progress, begun by %s at %s",
		e.Op, e.Verb, e.Owner, e.Since.Format(time.RFC3339))
}

func (e *RequestKeyReuseError) Error() string {
	return fmt.Sprintf("request key %q was used for another request, op %d", e.Key, e.Op)
}

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("request %q was carried out as op %d", e.Op.RequestKey, e.Op.ID)
}
