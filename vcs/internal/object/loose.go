package object

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// loosePath returns where git keeps an object that is in no pack.
func loosePath(dir string, id ID) string {
	h := id.String()
	return filepath.Join(dir, h[:2], h[2:])
}

// A looseFile is an open loose object, its header read, the content next.
type looseFile struct {
	f    *os.File
	x    *inflater
	kind Kind
	size int64
	rest []byte // content inflated together with the header
}

func openLoose(path string) (*looseFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &looseFile{f: f, x: getInflater(f, 0)}
	if err := l.header(path); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// header reads "blob 12\x00".
func (l *looseFile) header(path string) error {
	st, err := l.f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, 256)
	n, err := l.x.some(head)
	if err != nil {
		return looseError(path, err)
	}
	head = head[:n]
	name, rest, ok := bytes.Cut(head, []byte{0})
	if !ok {
		return corrupt(path, "malformed header")
	}
	word, num, _ := bytes.Cut(name, []byte{' '})
	if l.kind, ok = parseKind(string(word)); !ok {
		return corrupt(path, "unknown kind %q", word)
	}
	if l.size, err = strconv.ParseInt(string(num), 10, 64); err != nil || l.size < 0 {
		return corrupt(path, "malformed size %q", num)
	}
	if err := plausible(l.size, st.Size()); err != nil {
		return &CorruptError{Where: path, Err: err}
	}
	if int64(len(rest)) > l.size {
		return corrupt(path, "longer than its header says")
	}
	l.rest = rest
	return nil
}

func (l *looseFile) Close() error {
	l.x.release()
	return l.f.Close()
}

// Read gives the content.
func (l *looseFile) Read(p []byte) (int, error) {
	if len(l.rest) > 0 {
		n := copy(p, l.rest)
		l.rest = l.rest[n:]
		return n, nil
	}
	return l.x.zr.Read(p)
}

func readLoose(path string, buf []byte, most int64) (Kind, []byte, error) {
	l, err := openLoose(path)
	if err != nil {
		return 0, nil, err
	}
	defer l.Close()
	if l.size > most {
		return 0, nil, ErrLarge
	}
	buf = sized(buf, l.size)
	n := copy(buf, l.rest)
	for n < len(buf) {
		m, err := l.x.zr.Read(buf[n:])
		n += m
		if err != nil && n < len(buf) {
			return 0, nil, looseError(path, err)
		}
	}
	if err := l.x.end(); err != nil {
		return 0, nil, looseError(path, err)
	}
	return l.kind, buf, nil
}

func headerLoose(path string) (Kind, int64, error) {
	l, err := openLoose(path)
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	return l.kind, l.size, nil
}

func looseError(path string, err error) error {
	err = noEOF(err)
	if isIO(err) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return &CorruptError{Where: path, Err: err}
}

// looseID returns the id of the loose object at dir/name.
func looseID(dir, name string) (ID, error) {
	if len(dir) != 2 || len(name) != 38 {
		return ID{}, errors.New("not a loose object")
	}
	return ParseID(dir + name)
}
