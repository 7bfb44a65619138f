package value

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Dict is an object: values by their keys, in the order of the keys' bytes. The
// zero value is empty. A Dict is never changed; With makes another.
type Dict struct{ entries []Entry }

// Entry is one key of a Dict with its value.
type Entry struct {
	Key   string
	Value V
}

// NewDict is the Dict of a map, which may be used again.
func NewDict(m map[string]V) Dict {
	entries := make([]Entry, 0, len(m))
	for k, v := range m {
		entries = append(entries, Entry{k, v})
	}
	d, _ := sorted(entries) // a map has each key once
	return d
}

// DictOf is the Dict of entries in any order, whose keys differ.
func DictOf(entries ...Entry) Dict {
	d, twice := sorted(slices.Clone(entries))
	if twice != "" {
		panic("BUG: two values for the key " + twice)
	}
	return d
}

// sorted takes entries over. Of a key that is there twice it returns the
// quoted name.
func sorted(entries []Entry) (Dict, string) {
	if len(entries) == 0 {
		return Dict{}, ""
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(entries); i++ {
		if entries[i].Key == entries[i-1].Key {
			return Dict{}, quote(entries[i].Key)
		}
	}
	return Dict{entries}, ""
}

// Len is the number of keys.
func (d Dict) Len() int { return len(d.entries) }

// Get is the value of a key, and whether there is one.
func (d Dict) Get(key string) (V, bool) {
	i, ok := d.find(key)
	if !ok {
		return nil, false
	}
	return d.entries[i].Value, true
}

// All are the keys and values in order.
func (d Dict) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, e := range d.entries {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// With is d with another value for key.
func (d Dict) With(key string, v V) Dict {
	i, ok := d.find(key)
	entries := slices.Clone(d.entries)
	if ok {
		entries[i].Value = v
	} else {
		entries = slices.Insert(entries, i, Entry{key, v})
	}
	return Dict{entries}
}

// Without is d without key.
func (d Dict) Without(key string) Dict {
	i, ok := d.find(key)
	if !ok {
		return d
	}
	if len(d.entries) == 1 {
		return Dict{}
	}
	return Dict{slices.Delete(slices.Clone(d.entries), i, i+1)}
}

func (d Dict) find(key string) (int, bool) {
	return slices.BinarySearchFunc(d.entries, key, func(e Entry, key string) int { return cmp.Compare(e.Key, key) })
}

// Overlay lays patch over base: objects are merged key by key, anything else
// takes the place of what was there. A null is a value like others: it deletes
// nothing.
func Overlay(base, patch V) V {
	under, ok := base.(Dict)
	over, too := patch.(Dict)
	if !ok || !too {
		return patch
	}
	merged := make([]Entry, 0, len(under.entries)+len(over.entries))
	i := 0
	for _, e := range over.entries {
		for i < len(under.entries) && under.entries[i].Key < e.Key {
			merged = append(merged, under.entries[i])
			i++
		}
		if i < len(under.entries) && under.entries[i].Key == e.Key {
			e.Value = Overlay(under.entries[i].Value, e.Value)
			i++
		}
		merged = append(merged, e)
	}
	merged = append(merged, under.entries[i:]...)
	if len(merged) == 0 {
		return Dict{}
	}
	return Dict{merged}
}
