package repo

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

// IndexOptions are choices of a reader.
type IndexOptions struct {
	// VerifyChecksum hashes the whole file, which costs more than reading
	// it. Corruption that breaks the structure is found in any case.
	VerifyChecksum bool
}

const (
	indexHeader  = 12
	indexTrailer = sha1.Size
	maxIndex     = 2 << 30
	fixedPart    = 62 // of an entry, without extended flags and name
)

// IndexPath is where this worktree's index lies.
func (r *Repo) IndexPath() string { return filepath.Join(r.GitDir, "index") }

// ReadIndex reads this worktree's index. A missing file is an empty index. A
// form we do not understand is not an error but Degraded; a truncated or
// corrupt file is ErrIndex.
func (r *Repo) ReadIndex(opts IndexOptions) (*Index, error) {
	x, err := readIndexFile(r.IndexPath())
	if err != nil || x.Raw == nil {
		return x, err
	}
	if r.format.objectFormat != "sha1" {
		x.Degraded = "object format " + r.format.objectFormat
		return x, nil
	}
	link, err := x.decode(opts, false)
	if err == nil && link != nil {
		err = r.unsplit(x, link, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrIndex, r.IndexPath(), err)
	}
	return x, nil
}

// readIndexFile reads and stats one and the same file: git replaces the index
// but never writes into it.
func readIndexFile(path string) (*Index, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, fmt.Errorf("%w: %s: no regular file of reasonable size", ErrIndex, path)
	}
	raw := make([]byte, info.Size())
	if n, err := io.ReadFull(f, raw); err != nil {
		return nil, fmt.Errorf("%w: %s: truncated at %d of %d bytes", ErrIndex, path, n, len(raw))
	}
	x := &Index{Raw: raw, Signature: signatureOf(info, raw)}
	x.Mtime = x.Signature.mtime()
	return x, nil
}

// ParseIndex decodes an index that was saved earlier. It stands alone: one
// that was split needs a shared file that may be gone, and is Degraded.
func ParseIndex(raw []byte, opts IndexOptions) (*Index, error) {
	x := &Index{Raw: raw}
	link, err := x.decode(opts, false)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	if link != nil {
		x.degrade("split index")
		x.Entries = nil
	}
	return x, nil
}

// decode fills x from Raw. A split index returns its link, and entries that
// are not yet in order. shared: this is the file such a link names.
func (x *Index) decode(opts IndexOptions, shared bool) (*indexLink, error) {
	data := x.Raw
	if len(data) < indexHeader+indexTrailer || string(data[:4]) != "DIRC" {
		return nil, errors.New("no index")
	}
	x.Version = int(binary.BigEndian.Uint32(data[4:]))
	if x.Version < 2 || x.Version > 4 {
		x.degrade(fmt.Sprintf("index version %d", x.Version))
		return nil, nil
	}
	if opts.VerifyChecksum {
		if err := verifyTrailer(data); err != nil {
			return nil, err
		}
	}
	count := binary.BigEndian.Uint32(data[8:])
	body := data[:len(data)-indexTrailer]
	at, err := x.decodeEntries(body, int(count))
	if err != nil {
		return nil, err
	}
	link, err := x.decodeExtensions(body, at)
	if err != nil {
		return nil, err
	}
	if link == nil || shared {
		return nil, x.checkOrder()
	}
	return link, nil
}

// degrade keeps the first reason.
func (x *Index) degrade(reason string) {
	if x.Degraded == "" {
		x.Degraded = reason
	}
}

// verifyTrailer accepts zeros, which index.skipHash writes.
func verifyTrailer(data []byte) error {
	body, trailer := data[:len(data)-indexTrailer], [indexTrailer]byte(data[len(data)-indexTrailer:])
	if trailer != [indexTrailer]byte{} && sha1.Sum(body) != trailer {
		return errors.New("checksum does not match")
	}
	return nil
}

var errTruncated = errors.New("truncated entry")

// decodeEntries returns the offset after the last entry.
func (x *Index) decodeEntries(body []byte, count int) (at int, err error) {
	least := fixedPart
	if x.Version == 4 {
		least++ // prefix length; its names are not padded
	}
	if count > (len(body)-indexHeader)/least {
		return 0, fmt.Errorf("%d entries do not fit into %d bytes", count, len(body))
	}
	x.Entries = make([]Entry, count)
	if x.Version == 4 {
		return x.decodeCompressed(body)
	}
	x.names = stringOf(body)
	at = indexHeader
	for i := range x.Entries {
		e := &x.Entries[i]
		start := at
		length, next, err := e.decodeFixed(body, at)
		if err != nil {
			return 0, fmt.Errorf("entry %d: %w", i, err)
		}
		if length == nameMask {
			if length = strings.IndexByte(x.names[next:], 0); length < 0 {
				return 0, fmt.Errorf("entry %d: %w", i, errTruncated)
			}
		}
		e.name, e.nameLen = uint32(next), uint32(length)
		at = start + (next+length-start+8)&^7
		if at > len(body) || body[next+length] != 0 {
			return 0, fmt.Errorf("entry %d: %w", i, errTruncated)
		}
	}
	return at, nil
}

// decodeCompressed reads version 4, where a name is the previous one, cut,
// with a new ending.
func (x *Index) decodeCompressed(body []byte) (at int, err error) {
	names := make([]byte, 0, len(body))
	at = indexHeader
	var previous []byte
	for i := range x.Entries {
		e := &x.Entries[i]
		_, next, err := e.decodeFixed(body, at)
		if err != nil {
			return 0, fmt.Errorf("entry %d: %w", i, err)
		}
		cut, width := varint(body[next:])
		if width == 0 || cut > uint64(len(previous)) {
			return 0, fmt.Errorf("entry %d: bad prefix", i)
		}
		next += width
		end := indexNUL(body[next:])
		if end < 0 {
			return 0, fmt.Errorf("entry %d: %w", i, errTruncated)
		}
		start := len(names)
		names = append(names, previous[:len(previous)-int(cut)]...)
		names = append(names, body[next:next+end]...)
		if len(names) > maxIndex {
			return 0, errors.New("names too long")
		}
		previous = names[start:]
		e.name, e.nameLen = uint32(start), uint32(len(previous))
		at = next + end + 1
	}
	x.names = stringOf(names)
	return at, nil
}

const (
	flagAssumeValid = 0x8000
	flagExtended    = 0x4000
	nameMask        = 0x0fff

	extendedSkipWorktree = 0x4000
	extendedIntentToAdd  = 0x2000
	extendedKnown        = extendedSkipWorktree | extendedIntentToAdd
)

// decodeFixed reads all but the name at offset at, and returns the name's
// length, or nameMask when that is too long to be stored, and its offset.
func (e *Entry) decodeFixed(body []byte, at int) (length, next int, err error) {
	if len(body)-at < fixedPart+1 {
		return 0, 0, errTruncated
	}
	b := body[at : at+fixedPart]
	e.Ctime = Timestamp{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
	e.Mtime = Timestamp{binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}
	e.Dev = binary.BigEndian.Uint32(b[16:])
	e.Ino = binary.BigEndian.Uint32(b[20:])
	e.Mode = binary.BigEndian.Uint32(b[24:])
	e.UID = binary.BigEndian.Uint32(b[28:])
	e.GID = binary.BigEndian.Uint32(b[32:])
	e.Size = binary.BigEndian.Uint32(b[36:])
	e.OID = OID(b[40:60])
	flags := binary.BigEndian.Uint16(b[60:])
	e.Stage = uint8(flags >> 12 & 3)
	next = at + fixedPart
	if flags&flagAssumeValid != 0 {
		e.Flags |= AssumeValid
	}
	if flags&flagExtended != 0 {
		if len(body)-next < 3 {
			return 0, 0, errTruncated
		}
		extended := binary.BigEndian.Uint16(body[next:])
		if extended&^extendedKnown != 0 {
			return 0, 0, fmt.Errorf("unknown flags %04x", extended)
		}
		if extended&extendedSkipWorktree != 0 {
			e.Flags |= SkipWorktree
		}
		if extended&extendedIntentToAdd != 0 {
			e.Flags |= IntentToAdd
		}
		next += 2
	}
	length = int(flags & nameMask)
	if length != nameMask && len(body)-next <= length {
		return 0, 0, errTruncated
	}
	return length, next, nil
}

// checkOrder makes sure that Find can rely on the order, and that no name is
// empty.
func (x *Index) checkOrder() error {
	previous := ""
	for i := range x.Entries {
		name := x.Name(i)
		if name < previous || name == previous && (i == 0 || x.Entries[i-1].Stage >= x.Entries[i].Stage) {
			return fmt.Errorf("entry %d: %q after %q", i, name, previous)
		}
		previous = name
	}
	return nil
}

// varint reads the number git writes before a compressed name; width 0 when
// there is none.
func varint(b []byte) (value uint64, width int) {
	for i, c := range b {
		if i > 8 {
			return 0, 0
		}
		value = value<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
		value++
	}
	return 0, 0
}

func indexNUL(b []byte) int { return strings.IndexByte(stringOf(b), 0) }

// stringOf shares b's memory, which from here on nobody may write to. It saves
// a copy of the whole index.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// String is the id in hex, as git prints it.
func (o OID) String() string { return hex.EncodeToString(o[:]) }
