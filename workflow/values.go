package workflow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// seed is what random values of a task are made of: the same in every render
// of the lineage.
func (e *engine) seed(task string) string {
	m := hmac.New(sha256.New, e.run.Seed[:])
	m.Write([]byte(task))
	return hex.EncodeToString(m.Sum(nil))
}

// recordedValue settles a task whose value the engine makes: from the clock
// once, and from the seed of the lineage always alike.
func (e *engine) recordedValue(t *task) (*outcome, error) {
	seed := e.seed(t.id)
	switch t.decl.Kind {
	case KindNow:
		return succeeded(e.opt.Now().UTC().Format(time.RFC3339Nano)), nil
	case KindUUID:
		return succeeded(uuid4(seed)), nil
	case KindRandom:
		low, _ := t.decl.Args.Get("low")
		high, _ := t.decl.Args.Get("high")
		lo, ok1 := low.(int64)
		hi, ok2 := high.(int64)
		if !ok1 || !ok2 || lo > hi {
			return nil, &BodyError{At: t.decl.At, Message: "randint: two whole numbers, the lower one first"}
		}
		return succeeded(between(seed, lo, hi)), nil
	}
	items, _ := e.arguments(t).Get("items")
	list, ok := items.([]value.V)
	if !ok || len(list) == 0 {
		return nil, &BodyError{At: t.decl.At, Message: "choice: a list that is not empty"}
	}
	return succeeded(list[between(seed, 0, int64(len(list)-1))]), nil
}

func uuid4(seed string) string {
	b := sha256.Sum256([]byte(seed))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// between is a number of [low, high], each equally likely: draws that would
// favour some are thrown away.
func between(seed string, low, high int64) int64 {
	span := new(big.Int).Sub(big.NewInt(high), big.NewInt(low))
	span.Add(span, big.NewInt(1))
	limit := new(big.Int).Lsh(big.NewInt(1), 128)
	limit.Sub(limit, new(big.Int).Mod(limit, span))
	for n := uint64(0); ; n++ {
		b := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(seed), n))
		draw := new(big.Int).SetBytes(b[:16])
		if draw.Cmp(limit) < 0 {
			return draw.Mod(draw, span).Int64() + low
		}
	}
}
