package value

import (
	"fmt"
	"math/big"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// FromStarlark is the value of v. Tuples and sets become lists, a set in the
// order of its elements' encodings; structs become objects. handle tells the
// Ref of a task's handle, and intern keeps what is over Large; either may be
// nil. Functions, iterators and other opaque things are an *Error, as are keys
// that are not strings.
func FromStarlark(v starlark.Value, handle func(starlark.Value) (Ref, bool), intern func(b []byte) Blob) (V, error) {
	return fromStarlark{handle, intern}.value(v, 0)
}

type fromStarlark struct {
	handle func(starlark.Value) (Ref, bool)
	intern func(b []byte) Blob
}

func (f fromStarlark) value(v starlark.Value, depth int) (V, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			return n, nil
		}
		return v.BigInt(), nil
	case starlark.Float:
		return number(float64(v))
	case starlark.String:
		if len(v) > Large && f.intern != nil {
			return internText(string(v), f.intern), nil
		}
		return string(v), nil
	case starlark.Bytes:
		if len(v) > Large && f.intern != nil {
			return internBytes([]byte(v), f.intern), nil
		}
		return []byte(v), nil
	case *starlark.List:
		return f.list(v, depth)
	case starlark.Tuple:
		return f.list(v, depth)
	case *starlark.Set:
		return f.set(v, depth)
	case *starlark.Dict:
		return f.dict(v.Items(), depth)
	case *starlarkstruct.Struct:
		return f.fields(v, depth)
	}
	if f.handle != nil {
		if ref, ok := f.handle(v); ok {
			return ref, nil
		}
	}
	return nil, opaque(v)
}

func (f fromStarlark) list(v starlark.Indexable, depth int) (V, error) {
	list := make([]V, v.Len())
	for i := range list {
		item, err := f.value(v.Index(i), depth+1)
		if err != nil {
			return nil, inItem(i, err)
		}
		list[i] = item
	}
	return list, nil
}

// set orders the elements by their encodings: a set remembers how it was
// built, which must not show.
func (f fromStarlark) set(v *starlark.Set, depth int) (V, error) {
	list := make([]V, 0, v.Len())
	for item := range v.Elements() {
		item, err := f.value(item, depth+1)
		if err != nil {
			return nil, inItem(len(list), err)
		}
		list = append(list, item)
	}
	slices.SortFunc(list, func(a, b V) int { return slices.Compare(Encode(a), Encode(b)) })
	return list, nil
}

func (f fromStarlark) dict(items []starlark.Tuple, depth int) (V, error) {
	entries := make([]Entry, len(items))
	for i, item := range items {
		key, ok := starlark.AsString(item[0])
		if !ok {
			return nil, problem("a key must be a string, not %s", item[0])
		}
		if err := goodKey(key); err != nil {
			return nil, err
		}
		v, err := f.value(item[1], depth+1)
		if err != nil {
			return nil, inKey(key, err)
		}
		entries[i] = Entry{key, v}
	}
	d, _ := sorted(entries)
	return d, nil
}

func (f fromStarlark) fields(v *starlarkstruct.Struct, depth int) (V, error) {
	var items []starlark.Tuple
	for _, name := range v.AttrNames() {
		field, err := v.Attr(name)
		if err != nil {
			return nil, inKey(name, err)
		}
		items = append(items, starlark.Tuple{starlark.String(name), field})
	}
	return f.dict(items, depth)
}

// opaque says why v is refused.
func opaque(v starlark.Value) error {
	switch v.(type) {
	case starlark.Callable:
		return problem("a function is not data")
	case starlark.Iterable:
		return problem("a %s is not data: make a list of it", v.Type())
	}
	return problem("a %s is not data", v.Type())
}

// ToStarlark is v as a frozen Starlark value. Nothing in it may stand for
// something else: a Blob is to be expanded before, and a Ref or Output never
// gets here.
func ToStarlark(v V) starlark.Value {
	s := toStarlark(v)
	s.Freeze()
	return s
}

func toStarlark(v V) starlark.Value {
	switch v := v.(type) {
	case nil:
		return starlark.None
	case bool:
		return starlark.Bool(v)
	case int64:
		return starlark.MakeInt64(v)
	case *big.Int:
		return starlark.MakeBigInt(v)
	case float64:
		return starlark.Float(v)
	case string:
		return starlark.String(v)
	case []byte:
		return starlark.Bytes(v)
	case []V:
		items := make([]starlark.Value, len(v))
		for i, item := range v {
			items[i] = toStarlark(item)
		}
		return starlark.NewList(items)
	case Dict:
		d := starlark.NewDict(len(v.entries))
		for _, e := range v.entries {
			if err := d.SetKey(starlark.String(e.Key), toStarlark(e.Value)); err != nil {
				panic(fmt.Sprintf("BUG: a string is no key: %v", err))
			}
		}
		return d
	case Ref, Output, Blob:
		panic("BUG: " + kind(v) + " by reference is no Starlark value")
	}
	panic(alien(v))
}
