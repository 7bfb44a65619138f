package value

import (
	"fmt"
	"slices"
)

// Refs are the tasks that v refers to, each once, in order.
func Refs(v V) []string {
	seen := collect(v, nil)
	slices.Sort(seen)
	return slices.Compact(seen)
}

func collect(v V, seen []string) []string {
	switch v := v.(type) {
	case Ref:
		seen = append(seen, v.Task)
	case []V:
		for _, item := range v {
			seen = collect(item, seen)
		}
	case Dict:
		for _, e := range v.entries {
			seen = collect(e.Value, seen)
		}
	}
	return seen
}

// Resolve is v with the Output of each task in place of its Ref. A Ref stays
// where out knows of no output; Refs tells.
func Resolve(v V, out func(task string) ([32]byte, bool)) V {
	resolved, _, _ := edit(v, func(leaf V) (V, bool, error) {
		ref, ok := leaf.(Ref)
		if !ok {
			return nil, false, nil
		}
		hash, ok := out(ref.Task)
		return Output{hash}, ok, nil
	})
	return resolved
}

// Large is the size above which a string or bytes are worth interning.
const Large = 4 << 10

// Intern is v with a Blob in place of each string and bytes over Large. intern
// keeps the bytes, which it must not change, and returns their hash and size.
func Intern(v V, intern func(b []byte) Blob) V {
	interned, _, _ := edit(v, func(leaf V) (V, bool, error) {
		switch leaf := leaf.(type) {
		case string:
			if len(leaf) > Large {
				return internText(leaf, intern), true, nil
			}
		case []byte:
			if len(leaf) > Large {
				return internBytes(leaf, intern), true, nil
			}
		}
		return nil, false, nil
	})
	return interned
}

func internText(s string, intern func(b []byte) Blob) Blob {
	b := intern([]byte(s))
	b.Text = true
	return b
}

func internBytes(b []byte, intern func(b []byte) Blob) Blob {
	blob := intern(b)
	blob.Text = false
	return blob
}

// Expand is v with what load returns in place of each Blob. It fails with what
// load fails with, and when load returns something else than what was
// interned.
func Expand(v V, load func(Blob) ([]byte, error)) (V, error) {
	expanded, _, err := edit(v, func(leaf V) (V, bool, error) {
		blob, ok := leaf.(Blob)
		if !ok {
			return nil, false, nil
		}
		b, err := load(blob)
		switch {
		case err != nil:
			return nil, false, fmt.Errorf("blob %x: %w", blob.Hash, err)
		case Hash(b) != blob.Hash:
			return nil, false, fmt.Errorf("blob %x: what was kept has another hash", blob.Hash)
		case blob.Text:
			return string(b), true, nil
		}
		return b, true, nil
	})
	return expanded, err
}

// edit is v with another value for each leaf that leaf wants changed, and
// whether there was one. What did not change is shared.
func edit(v V, leaf func(V) (V, bool, error)) (V, bool, error) {
	switch v := v.(type) {
	case []V:
		var edited []V
		for i, old := range v {
			item, changed, err := edit(old, leaf)
			if err != nil {
				return nil, false, err
			}
			if changed && edited == nil {
				edited = slices.Clone(v)
			}
			if changed {
				edited[i] = item
			}
		}
		if edited == nil {
			return v, false, nil
		}
		return edited, true, nil
	case Dict:
		var edited []Entry
		for i, e := range v.entries {
			item, changed, err := edit(e.Value, leaf)
			if err != nil {
				return nil, false, err
			}
			if changed && edited == nil {
				edited = slices.Clone(v.entries)
			}
			if changed {
				edited[i].Value = item
			}
		}
		if edited == nil {
			return v, false, nil
		}
		return Dict{edited}, true, nil
	}
	edited, changed, err := leaf(v)
	if !changed {
		edited = v
	}
	return edited, changed, err
}
