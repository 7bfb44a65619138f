package value

import (
	"encoding/json"
	"fmt"
)

// Difference is one place where two values differ. Where only one has
// something there, the other side is Absent.
type Difference struct {
	Path     string // as in an Error; "" when the whole differs
	Old, New V
}

// Absent stands in a Difference for nothing. It is not a value.
type Absent struct{}

// Diff are the places where a and b differ, in order; none when they are equal.
// Lists are compared item by item from the front.
func Diff(a, b V) []Difference { return diff(nil, "", a, b) }

func diff(found []Difference, path string, a, b V) []Difference {
	switch a := a.(type) {
	case Dict:
		if b, ok := b.(Dict); ok {
			return diffDicts(found, path, a, b)
		}
	case []V:
		if b, ok := b.([]V); ok {
			return diffLists(found, path, a, b)
		}
	}
	if !Equal(a, b) {
		found = append(found, Difference{path, a, b})
	}
	return found
}

func diffLists(found []Difference, path string, a, b []V) []Difference {
	both := min(len(a), len(b))
	for i := range both {
		found = diff(found, join(path, index(i)), a[i], b[i])
	}
	for i, v := range a[both:] {
		found = append(found, Difference{join(path, index(both+i)), v, Absent{}})
	}
	for i, v := range b[both:] {
		found = append(found, Difference{join(path, index(both+i)), Absent{}, v})
	}
	return found
}

func diffDicts(found []Difference, path string, a, b Dict) []Difference {
	old, now := a.entries, b.entries
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Key < now[0].Key:
			found = append(found, Difference{join(path, step(old[0].Key)), old[0].Value, Absent{}})
			old = old[1:]
		case len(old) == 0 || now[0].Key < old[0].Key:
			found = append(found, Difference{join(path, step(now[0].Key)), Absent{}, now[0].Value})
			now = now[1:]
		default:
			found = diff(found, join(path, step(now[0].Key)), old[0].Value, now[0].Value)
			old, now = old[1:], now[1:]
		}
	}
	return found
}

// String is one line: the path and both sides.
func (d Difference) String() string {
	sides := brief(d.Old) + " -> " + brief(d.New)
	if d.Path == "" {
		return sides
	}
	return d.Path + ": " + sides
}

// brief is a side, as short as it must be.
func brief(v V) string {
	if v == (Absent{}) {
		return "(nothing)"
	}
	return cut(string(JSON(v)))
}

// cut is a text, cut to what fits in a line.
func cut(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d characters)", string(runes[:most]), len(runes))
}

// MarshalJSON has path, old and new; a side that is Absent is left out.
func (d Difference) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Path string          `json:"path"`
		Old  json.RawMessage `json:"old,omitempty"`
		New  json.RawMessage `json:"new,omitempty"`
	}{d.Path, side(d.Old), side(d.New)})
}

func side(v V) json.RawMessage {
	if _, ok := v.(Absent); ok {
		return nil
	}
	return JSON(v)
}
