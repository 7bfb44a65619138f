package cassette

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/retcon-dev/retcon/internal/redact"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// DefaultMax is the cap of a cell where none is set.
const DefaultMax = 1 << 20

// Tape records the operations of runs, and serves them back. It may be used by
// many goroutines at once, and any number of processes may record on one run.
type Tape struct {
	DB      *ledger.DB
	Key     []byte   // the store's, see StoreKey; without it, arguments are told apart by what is not redacted
	Max     int64    // bytes of an output that are kept; DefaultMax when zero
	Off     bool     // nothing is recorded
	Secrets []string // to be redacted besides those that show themselves

	once     sync.Once
	redactor *redact.Redactor
}

// Call is an operation that was carried out.
type Call struct {
	Run     int64
	Attempt int64 // 0 for none
	Branch  int64 // 0 for none
	Op      string
	Args    any // JSON-like, or JSON as a json.RawMessage
	Exit    *int
	Output  []byte // all of what it gave back
	Failed  bool
	Denied  bool
	TreeIn  string
	TreeOut string
	Took    time.Duration
	Actor   string
}

// arguments are what a call is known by, in the form that is compared.
type arguments struct {
	key   snapshot.Hash
	plain snapshot.Hash // the key there would be without redaction; never stored
	hmac  []byte        // of all, where redaction took something away; else nil
	view  []byte        // canonical and redacted
}

// arguments redacts first. Nothing else of the package looks at arguments as
// they came.
func (t *Tape) arguments(op string, args any) (arguments, error) {
	raw, err := canonical(args)
	if err != nil {
		return arguments{}, err
	}
	redacted, changed, err := t.redact().JSON(raw)
	if err != nil {
		return arguments{}, err
	}
	a := arguments{view: redacted}
	if changed {
		// A key may have become another, and stand elsewhere in the order.
		if a.view, err = canonical(json.RawMessage(redacted)); err != nil {
			return arguments{}, err
		}
		a.hmac = t.sum(raw)
	}
	a.key, a.plain = keyOf(op, a.view), keyOf(op, raw)
	return a, nil
}

// keyOf is what a cell is found by.
func keyOf(op string, args []byte) snapshot.Hash {
	h := sha256.New()
	io.WriteString(h, "retcon cell 1\n")
	h.Write(binary.AppendUvarint(nil, uint64(len(op))))
	io.WriteString(h, op)
	h.Write(args)
	return snapshot.Hash(h.Sum(nil))
}

// sum is nil without a key: then it would be a hash that anybody could compute
// for every secret there may be.
func (t *Tape) sum(raw []byte) []byte {
	if len(t.Key) == 0 {
		return nil
	}
	h := hmac.New(sha256.New, t.Key)
	h.Write(raw)
	return h.Sum(nil)
}

func (t *Tape) redact() *redact.Redactor {
	t.once.Do(func() { t.redactor = redact.New(t.Secrets...) })
	return t.redactor
}

func (t *Tape) max() int64 {
	if t.Max <= 0 {
		return DefaultMax
	}
	return t.Max
}

// canonical writes a value as JSON in the one way it can be written: keys in
// order, numbers as they came, nothing escaped that need not be.
func canonical(v any) ([]byte, error) {
	raw, err := marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	return marshal(plain)
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// head is the beginning of a text, no longer than n bytes, that does not end
// within a character. Of bytes that are no text it is just n.
func head(b []byte, n int64) []byte {
	if int64(len(b)) <= n {
		return b
	}
	for back := int64(0); back < utf8.UTFMax && back < n; back++ {
		if utf8.RuneStart(b[n-back]) {
			return b[:n-back]
		}
	}
	return b[:n]
}

// stub is a view that stands for arguments over the cap.
func stub(view []byte) []byte {
	return fmt.Appendf(nil, `{"sha256":"%x","size":%d}`, sha256.Sum256(view), len(view))
}
