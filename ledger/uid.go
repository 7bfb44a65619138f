package ledger

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

var uidEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newUID is unique everywhere, and sorts by the millisecond it was made in.
func newUID(now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	rand.Read(b[6:]) // never fails
	return uidEncoding.EncodeToString(b[:])
}
