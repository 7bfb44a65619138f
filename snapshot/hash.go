package snapshot

import (
	"encoding/hex"
	"fmt"
)

// Hash is a SHA-256. The zero Hash stands for "none".
type Hash [32]byte

// ParseHash reads what String writes.
func ParseHash(s string) (h Hash, err error) {
	return h, h.UnmarshalText([]byte(s))
}

// String is the hash in lower-case hexadecimal, 64 digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Short is enough of the hash for people: twelve digits.
func (h Hash) Short() string { return hex.EncodeToString(h[:6]) }

// IsZero tells that there is no hash.
func (h Hash) IsZero() bool { return h == Hash{} }

// MarshalText writes the hash as String does, and no hash as no text.
func (h Hash) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	return []byte(h.String()), nil
}

// UnmarshalText reads 64 lower-case hexadecimal digits, or no text.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*h = Hash{}
		return nil
	}
	if len(text) != 2*len(h) || !isHex(string(text)) {
		return fmt.Errorf("%.80q is not a hash", text)
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// isHex tells that s is lower-case hexadecimal, two digits a byte.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s)%2 == 0
}
