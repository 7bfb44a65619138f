package object

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Modes of a TreeEntry, as git writes them.
const (
	ModeDir     uint32 = 0o040000
	ModeFile    uint32 = 0o100644
	ModeExec    uint32 = 0o100755
	ModeSymlink uint32 = 0o120000
	ModeGitlink uint32 = 0o160000
)

const modeType = 0o170000

// A TreeEntry is one name in a tree. Name holds any bytes but '/' and NUL.
type TreeEntry struct {
	Mode uint32
	Name string
	ID   ID
}

// IsDir reports whether the entry is a subtree.
func (e TreeEntry) IsDir() bool { return e.Mode&modeType == ModeDir }

// IsGitlink reports whether the entry names a commit of another repository.
func (e TreeEntry) IsGitlink() bool { return e.Mode&modeType == ModeGitlink }

// CompareEntries orders entries as git does: by bytes, a directory as if its
// name ended in a slash.
func CompareEntries(a, b TreeEntry) int {
	n := min(len(a.Name), len(b.Name))
	if c := strings.Compare(a.Name[:n], b.Name[:n]); c != 0 {
		return c
	}
	return cmp.Compare(a.after(n), b.after(n))
}

// after returns the byte behind the first n of the name.
func (e TreeEntry) after(n int) int {
	switch {
	case n < len(e.Name):
		return int(e.Name[n])
	case e.IsDir():
		return '/'
	default:
		return -1
	}
}

// SortEntries puts entries into the order a tree needs.
func SortEntries(entries []TreeEntry) { slices.SortFunc(entries, CompareEntries) }

// TreeSize returns how many bytes AppendTree will append.
func TreeSize(entries []TreeEntry) int {
	n := 0
	for i := range entries {
		n += octalLen(entries[i].Mode) + 1 + len(entries[i].Name) + 1 + len(ID{})
	}
	return n
}

func octalLen(m uint32) int {
	n := 1
	for m >>= 3; m != 0; m >>= 3 {
		n++
	}
	return n
}

// AppendTree appends the content of the tree of these entries, which must be
// in order already.
func AppendTree(buf []byte, entries []TreeEntry) []byte {
	for i := range entries {
		e := &entries[i]
		buf = strconv.AppendUint(buf, uint64(e.Mode), 8)
		buf = append(buf, ' ')
		buf = append(buf, e.Name...)
		buf = append(buf, 0)
		buf = append(buf, e.ID[:]...)
	}
	return buf
}

// ParseTree yields the entries of a tree. Data that is not a tree ends the
// iteration with a *CorruptError. It checks form, not order or meaning: a
// name may still be "..", and whoever writes files must look.
func ParseTree(data []byte) iter.Seq2[TreeEntry, error] {
	return func(yield func(TreeEntry, error) bool) {
		for off := 0; off < len(data); {
			e, n, ok := parseEntry(data[off:])
			if !ok {
				yield(TreeEntry{}, corrupt("tree", "malformed entry at byte %d", off))
				return
			}
			if !yield(e, nil) {
				return
			}
			off += n
		}
	}
}

// Differing are the entries of two trees, each in its order, without those that
// are in both. What is in both is not looked at closely.
func Differing(a, b []byte) (as, bs []TreeEntry, err error) {
	for len(a) > 0 || len(b) > 0 {
		if n := sameEntry(a, b); n > 0 {
			a, b = a[n:], b[n:]
			continue
		}
		x, n, ok := parseEntry(a)
		y, m, also := parseEntry(b)
		if len(a) > 0 && !ok || len(b) > 0 && !also {
			return nil, nil, corrupt("tree", "malformed entry")
		}
		order := 0
		switch {
		case !also:
			order = -1
		case !ok:
			order = 1
		default:
			order = CompareEntries(x, y)
		}
		if order <= 0 {
			as, a = append(as, x), a[n:]
		}
		if order >= 0 {
			bs, b = append(bs, y), b[m:]
		}
	}
	return as, bs, nil
}

// sameEntry is the length of the first entry of two trees, if they have the same;
// otherwise 0.
func sameEntry(a, b []byte) int {
	end := bytes.IndexByte(a, 0)
	if n := end + 1 + len(ID{}); end > 0 && n <= len(a) && n <= len(b) && bytes.Equal(a[:n], b[:n]) {
		return n
	}
	return 0
}

func parseEntry(b []byte) (e TreeEntry, n int, ok bool) {
	for n < len(b) && b[n] >= '0' && b[n] <= '7' && n < 7 {
		e.Mode = e.Mode<<3 | uint32(b[n]-'0')
		n++
	}
	if n == 0 || n >= len(b) || b[n] != ' ' || e.Mode == 0 {
		return e, 0, false
	}
	name := b[n+1:]
	end := bytes.IndexByte(name, 0)
	if end <= 0 || len(name) < end+1+len(e.ID) || bytes.IndexByte(name[:end], '/') >= 0 {
		return e, 0, false
	}
	e.Name = string(name[:end])
	copy(e.ID[:], name[end+1:])
	return e, n + 1 + end + 1 + len(e.ID), true
}
