package ledger

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// InlineMax is the largest body that stands in the row that has it. A larger
// one is a content of its own, stored once whoever has it.
const InlineMax = 400

// ExternalMin is the size from which a body should be kept in the object store,
// and here only its place; see [Tx.PutExternal].
const ExternalMin = 256 << 10

// How a content is stored.
const (
	codecRaw = iota
	codecZstd
	codecExternal
)

// freshen is how old the time of a content's last use may become before it is
// renewed. It is well below [MinSweepAge].
const freshen = 10 * time.Minute

// ExternalError says that a content is kept elsewhere, under ID.
type ExternalError struct {
	Hash snapshot.Hash
	ID   string
	Size int64
}

func (e *ExternalError) Error() string {
	return fmt.Sprintf("content %s (%d bytes) is kept outside, as %s", e.Hash.Short(), e.Size, e.ID)
}

// Prepared is a content hashed and compressed, ready to be put.
type Prepared struct {
	Hash snapshot.Hash // SHA-256 of the body
	Size int64         // of the body

	codec  int
	stored []byte
}

// Prepare hashes a body, and compresses it where that is worth it. Do it before
// a transaction is begun: others wait for each other there. The body must not
// be changed afterwards.
func Prepare(body []byte) Prepared {
	p := Prepared{Hash: sha256.Sum256(body), Size: int64(len(body)), stored: body}
	if len(body) < 64 {
		return p
	}
	if small := compress(body); len(small) < len(body)-len(body)/16 {
		p.codec, p.stored = codecZstd, small
	}
	return p
}

// The coders are made when first needed: a process that compresses nothing, as
// most hooks, does not pay for them. They keep no checksums: whatever is read
// back has a hash of ours.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30), zstd.IgnoreChecksum(true))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return d
	})
)

func compress(body []byte) []byte { return encoder().EncodeAll(body, nil) }

func decompress(stored []byte) ([]byte, error) { return decoder().DecodeAll(stored, nil) }

// PutContent stores a content unless it is there already, and returns its hash.
// Whatever names the content must be written in the same transaction, or within
// the hour: what nothing names is swept.
func (tx *Tx) PutContent(p Prepared) (snapshot.Hash, error) {
	if err := tx.putContent(p.Hash, p.Size, p.codec, p.stored); err != nil {
		return snapshot.Hash{}, err
	}
	return p.Hash, nil
}

// PutExternal records where a content is that is kept elsewhere. One that is
// stored here already stays as it is.
func (tx *Tx) PutExternal(h snapshot.Hash, size int64, id string) error {
	return tx.putContent(h, size, codecExternal, []byte(id))
}

func (tx *Tx) putContent(h snapshot.Hash, size int64, codec int, stored []byte) error {
	if stored == nil {
		stored = []byte{} // the driver would take nil for NULL
	}
	now := tx.Now().UnixMilli()
	_, err := tx.exec(`INSERT INTO content(hash, size, codec, ref_ms, body) VALUES(?, ?, ?, ?, ?)
		ON CONFLICT(hash) DO UPDATE SET ref_ms = excluded.ref_ms WHERE content.ref_ms < ?`,
		h[:], size, codec, now, stored, now-freshen.Milliseconds())
	if err != nil {
		return fmt.Errorf("content %s: %w", h.Short(), err)
	}
	crash.Point("ledger.content")
	return nil
}

// Content returns a content, checked against its hash: a *CorruptError when it
// does not agree. ErrNotFound when there is none, *ExternalError when it is
// kept elsewhere.
func (tx *Tx) Content(h snapshot.Hash) ([]byte, error) {
	body, err := tx.content(h)
	if err != nil {
		return nil, fmt.Errorf("content %s: %w", h.Short(), err)
	}
	return body, nil
}

func (tx *Tx) content(h snapshot.Hash) ([]byte, error) {
	var size int64
	var codec int
	var stored []byte
	err := tx.get(`SELECT size, codec, body FROM content WHERE hash=?`, []any{h[:]}, &size, &codec, &stored)
	if err != nil {
		return nil, err
	}
	body, err := unpack(h, size, codec, stored)
	var external *ExternalError
	if err != nil && !errors.As(err, &external) {
		err = &CorruptError{Path: tx.db.path, Err: err}
	}
	return body, err
}

// unpack is the body of a content row, verified.
func unpack(h snapshot.Hash, size int64, codec int, stored []byte) (body []byte, err error) {
	switch codec {
	case codecRaw:
		body = stored
	case codecZstd:
		if body, err = decompress(stored); err != nil {
			return nil, err
		}
	case codecExternal:
		return nil, &ExternalError{Hash: h, ID: string(stored), Size: size}
	default:
		return nil, fmt.Errorf("stored in the unknown way %d", codec)
	}
	if int64(len(body)) != size || sha256.Sum256(body) != h {
		return nil, fmt.Errorf("content %s does not agree with its hash", h.Short())
	}
	return body, nil
}

// HasContent tells that a content is there, here or elsewhere.
func (tx *Tx) HasContent(h snapshot.Hash) (bool, error) {
	var one int
	err := tx.get(`SELECT 1 FROM content WHERE hash=?`, []any{h[:]}, &one)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// keep decides where a body goes: into the row while it is small, else into a
// content, whose hash is returned either way. A hash alone names a content that
// was put before.
func (tx *Tx) keep(body []byte, h snapshot.Hash) (inline []byte, hash snapshot.Hash, err error) {
	switch {
	case body == nil && h.IsZero():
		return nil, h, nil
	case body == nil:
		return nil, h, tx.name(h)
	}
	sum := snapshot.Hash(sha256.Sum256(body))
	if !h.IsZero() && h != sum {
		return nil, h, fmt.Errorf("the body is not %s, it is %s", h.Short(), sum.Short())
	}
	if len(body) <= InlineMax {
		return body, sum, nil
	}
	_, err = tx.PutContent(Prepare(body))
	return nil, sum, err
}

// name makes sure that a content is there before a row names it, and that it is
// not swept meanwhile. The zero hash names nothing.
func (tx *Tx) name(h snapshot.Hash) error {
	if h.IsZero() {
		return nil
	}
	var used int64
	err := tx.get(`SELECT ref_ms FROM content WHERE hash=?`, []any{h[:]}, &used)
	now := tx.Now().UnixMilli()
	if err == nil && used < now-freshen.Milliseconds() {
		_, err = tx.exec(`UPDATE content SET ref_ms=? WHERE hash=?`, now, h[:])
	}
	if err != nil {
		return fmt.Errorf("content %s: %w", h.Short(), err)
	}
	return nil
}

// body is the way back from keep.
func (tx *Tx) body(inline []byte, h snapshot.Hash) ([]byte, error) {
	if inline != nil || h.IsZero() {
		return inline, nil
	}
	return tx.Content(h)
}

// hashRef is a hash that may be unset, as it is stored.
func hashRef(h snapshot.Hash) any {
	if h.IsZero() {
		return nil
	}
	return h[:]
}

// hashIn is a hash that may be unset, to be scanned into.
type hashIn struct{ h *snapshot.Hash }

func (in hashIn) Scan(v any) error {
	*in.h = snapshot.Hash{}
	if v == nil {
		return nil
	}
	b, ok := v.([]byte)
	if !ok || len(b) != len(in.h) {
		return errors.New("not a hash")
	}
	copy(in.h[:], b)
	return nil
}
