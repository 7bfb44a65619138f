package object

import (
	"errors"
	"fmt"
)

// Errors of reading. Test with errors.Is and errors.As.
var (
	// ErrMissing is what every *MissingError is.
	ErrMissing = errors.New("object missing")

	// ErrCorrupt is what every *CorruptError is.
	ErrCorrupt = errors.New("object store corrupt")
)

// ErrChanged says that a stream held more or fewer bytes than announced: the
// file changed while it was read. Look at it again and call AddStream anew;
// nothing of it was kept.
var ErrChanged = errors.New("content changed while it was read")

// ErrLarge is what ReadSmall says of an object that is not.
var ErrLarge = errors.New("object is larger than asked for")

// ErrReadOnly is what writing to a store made by Foreign gives.
var ErrReadOnly = errors.New("object store is for reading only")

// MissingError says that no object of that name is here.
type MissingError struct{ ID ID }

func (e *MissingError) Error() string        { return "object " + e.ID.String() + " is missing" }
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// CorruptError says that what is stored is not what was written. ID is zero
// when the damage is not to one object. Restoring the file at Where from a
// backup is the only cure.
type CorruptError struct {
	ID    ID
	Where string // path of the file, with an offset where one is known
	Err   error  // what is wrong, may be nil
}

func (e *CorruptError) Error() string {
	s := e.Where + " is corrupt"
	if !e.ID.IsZero() {
		s = "object " + e.ID.String() + " in " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
func (e *CorruptError) Unwrap() error        { return e.Err }

// LockedError says that somebody else held the lock for as long as the
// caller was willing to wait. Trying again later is right.
type LockedError struct{ Path string }

func (e *LockedError) Error() string { return e.Path + " is held by another process" }

// NoSpaceError says that the file system is too full for a repack. Nothing
// was changed.
type NoSpaceError struct{ Need, Free int64 }

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("repack needs %d bytes, %d are free", e.Need, e.Free)
}

func corrupt(where, format string, args ...any) *CorruptError {
	return &CorruptError{Where: where, Err: fmt.Errorf(format, args...)}
}
