package repo

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// IndexEntryOut is an entry to be written.
//
// Its times, inode and size are a promise that the file they describe has
// this OID. Leave them zero where that was not checked: git then looks for
// itself.
type IndexEntryOut struct {
	Name string
	Entry
}

// Out returns entry i in the form WriteIndex takes.
func (x *Index) Out(i int) IndexEntryOut {
	return IndexEntryOut{Name: x.Name(i), Entry: x.Entries[i]}
}

// WriteIndex replaces this worktree's index by entries, in any order, under
// git's lock. expect is the Signature of the index the caller decided on; the
// zero value when there was none. It writes version 2, or 3 where flags need
// it, without extensions: git rebuilds them.
//
// ErrIndexChanged means that somebody else wrote the index since,
// *LockExistsError that somebody is about to; ErrIndex that entries make no
// index. In all cases the index is what it was and no lock is left behind. A
// process killed half-way can leave index.lock.
func (r *Repo) WriteIndex(entries []IndexEntryOut, expect IndexSignature) error {
	raw, err := encodeIndex(entries, expect)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return r.publishIndex(raw, expect)
}

// WriteRawIndex replaces this worktree's index by one that was saved, byte for
// byte, with the same guarantees as WriteIndex. A split index is refused with
// ErrIndex: it is half of a file.
func (r *Repo) WriteRawIndex(raw []byte, expect IndexSignature) error {
	x, err := ParseIndex(raw, IndexOptions{VerifyChecksum: true})
	if err != nil {
		return err
	}
	if x.Degraded != "" && !x.Sparse {
		return fmt.Errorf("%w: %s cannot be put back", ErrIndex, x.Degraded)
	}
	return r.publishIndex(raw, expect)
}

func (r *Repo) publishIndex(raw []byte, expect IndexSignature) error {
	if err := r.writable(); err != nil {
		return err
	}
	path, err := filepath.EvalSymlinks(r.IndexPath())
	if errors.Is(err, fs.ErrNotExist) {
		path, err = r.IndexPath(), nil
	}
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	l, err := acquire(path, r.Settings)
	if err != nil {
		return err
	}
	defer l.release()
	if err := checkIndex(path, expect); err != nil {
		return err
	}
	if err := l.write(raw); err != nil {
		return err
	}
	return l.commit()
}

// encodeIndex returns the file. Entries as young as the index being replaced
// are smudged: the new file's age would hide that they were racy. Where there
// was none, their age against the new file's is what counts.
func encodeIndex(entries []IndexEntryOut, expect IndexSignature) ([]byte, error) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b IndexEntryOut) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Stage, b.Stage))
	})
	version := uint32(2)
	for i := range sorted {
		e := &sorted[i]
		if err := e.check(); err != nil {
			return nil, err
		}
		if i > 0 {
			if p := &sorted[i-1]; p.Name == e.Name && (p.Stage == e.Stage || p.Stage == 0) {
				return nil, fmt.Errorf("%q twice", e.Name)
			}
		}
		if e.Flags&(SkipWorktree|IntentToAdd) != 0 {
			version = 3
		}
		if e.Mode != ModeGitlink && expect != (IndexSignature{}) && racy(e.Mtime, expect.mtime()) {
			e.Size = 0
		}
	}
	var b bytes.Buffer
	b.WriteString("DIRC")
	b.Write(binary.BigEndian.AppendUint32(nil, version))
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(sorted))))
	for i := range sorted {
		b.Write(sorted[i].encode())
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes(), nil
}

func (e *IndexEntryOut) check() error {
	switch e.Mode {
	case ModeFile, ModeExec, ModeSymlink, ModeGitlink:
	default:
		return fmt.Errorf("%q has mode %o", e.Name, e.Mode)
	}
	if e.Stage > 3 {
		return fmt.Errorf("%q has stage %d", e.Name, e.Stage)
	}
	if strings.IndexByte(e.Name, 0) >= 0 {
		return fmt.Errorf("name %q", e.Name)
	}
	for part := range strings.SplitSeq(e.Name, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return fmt.Errorf("name %q", e.Name)
		}
	}
	return nil
}

func (e *IndexEntryOut) encode() []byte {
	b := make([]byte, 0, fixedPart+2+len(e.Name)+8)
	for _, v := range []uint32{e.Ctime.Sec, e.Ctime.Nsec, e.Mtime.Sec, e.Mtime.Nsec,
		e.Dev, e.Ino, e.Mode, e.UID, e.GID, e.Size} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = append(b, e.OID[:]...)
	flags := uint16(min(len(e.Name), nameMask)) | uint16(e.Stage)<<12
	if e.Flags&AssumeValid != 0 {
		flags |= flagAssumeValid
	}
	extended := uint16(0)
	if e.Flags&SkipWorktree != 0 {
		extended |= extendedSkipWorktree
	}
	if e.Flags&IntentToAdd != 0 {
		extended |= extendedIntentToAdd
	}
	if extended != 0 {
		b = binary.BigEndian.AppendUint16(b, flags|flagExtended)
		b = binary.BigEndian.AppendUint16(b, extended)
	} else {
		b = binary.BigEndian.AppendUint16(b, flags)
	}
	b = append(b, e.Name...)
	return append(b, make([]byte, 8-len(b)%8)...)
}
