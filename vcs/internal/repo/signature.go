package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// IndexSignature identifies one state of the index file; compare with ==. The
// zero value is a missing file. It may be stored and compared later.
type IndexSignature struct {
	Size    int64
	Seconds int64 // modification time
	Nanos   int64
	Inode   uint64
	Trailer OID // the checksum the file ends with; zero under index.skipHash
}

func signatureOf(info fs.FileInfo, raw []byte) IndexSignature {
	mtime := info.ModTime()
	s := IndexSignature{
		Size:    info.Size(),
		Seconds: mtime.Unix(),
		Nanos:   int64(mtime.Nanosecond()),
		Inode:   inodeOf(info),
	}
	if len(raw) >= len(s.Trailer) {
		s.Trailer = OID(raw[len(raw)-len(s.Trailer):])
	}
	return s
}

// indexSignature looks at the file as it is now.
func indexSignature(path string) (IndexSignature, error) {
	x, err := readIndexFile(path)
	if err != nil {
		return IndexSignature{}, err
	}
	return x.Signature, nil
}

func (s IndexSignature) mtime() Timestamp {
	t := time.Unix(s.Seconds, s.Nanos)
	return Timestamp{Sec: uint32(t.Unix()), Nsec: uint32(t.Nanosecond())}
}

// checkIndex compares the file with what the caller read. The index must be
// locked: only then can nobody change it in between.
func checkIndex(path string, expect IndexSignature) error {
	now, err := indexSignature(path)
	if err != nil {
		return err
	}
	if now != expect {
		return fmt.Errorf("%w: %s", ErrIndexChanged, path)
	}
	return nil
}

// syncDir makes a rename in dir survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

// IndexSignature looks at this worktree's index file as it is now, reading no
// more than its end. The zero value means that there is none.
func (r *Repo) IndexSignature() (IndexSignature, error) {
	f, err := os.Open(r.IndexPath())
	if errors.Is(err, fs.ErrNotExist) {
		return IndexSignature{}, nil
	}
	if err != nil {
		return IndexSignature{}, fmt.Errorf("read index: %w", err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return IndexSignature{}, fmt.Errorf("read index: %w", err)
	}
	var tail OID
	n, err := f.ReadAt(tail[:], max(0, info.Size()-int64(len(tail))))
	if err != nil && n < len(tail) {
		return signatureOf(info, nil), nil // shorter than an index can be
	}
	return signatureOf(info, tail[:]), nil
}
