package value

import (
	"encoding"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
)

// FromGo is the value of x, by the rules of encoding/json: the tags of struct
// fields, MarshalJSON and MarshalText, nil as null. It keeps what JSON would
// lose: integers are exact, floats stay floats, []byte stays bytes, and a
// string may hold any bytes. A value among x is taken as it is. Channels,
// functions, NaN and what contains itself are an *Error.
func FromGo(x any) (V, error) {
	switch x := x.(type) { // what needs no reflection
	case nil, bool, int64, string, Ref, Output, Blob:
		return x, nil
	case int:
		return int64(x), nil
	case float64:
		return number(x)
	}
	return fromGo(reflect.ValueOf(x), 0)
}

func fromGo(x reflect.Value, depth int) (V, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	if !x.IsValid() || nullable(x.Kind()) && x.IsNil() {
		return nil, nil
	}
	if x.CanInterface() {
		if v, ok, err := fromOwn(x, depth); ok {
			return v, err
		}
	}
	switch x.Kind() {
	case reflect.Pointer, reflect.Interface:
		return fromGo(x.Elem(), depth+1)
	case reflect.Bool:
		return x.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return x.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integer(new(big.Int).SetUint64(x.Uint())), nil
	case reflect.Float32, reflect.Float64:
		return number(x.Float())
	case reflect.String:
		return x.String(), nil
	case reflect.Slice:
		if x.Type().Elem().Kind() == reflect.Uint8 {
			return append([]byte{}, x.Bytes()...), nil
		}
		return fromList(x, depth)
	case reflect.Array:
		return fromList(x, depth)
	case reflect.Map:
		return fromMap(x, depth)
	case reflect.Struct:
		return fromStruct(x, depth)
	}
	return nil, problem("a %s is not data", x.Type())
}

func nullable(k reflect.Kind) bool {
	return k == reflect.Pointer || k == reflect.Interface || k == reflect.Slice || k == reflect.Map
}

// fromOwn is for the types that say themselves what they are.
func fromOwn(x reflect.Value, depth int) (v V, ok bool, err error) {
	switch own := x.Interface().(type) {
	case Ref, Output, Blob:
		return own, true, nil
	case Dict:
		v, err = fromDict(own, depth)
		return v, true, err
	case *Failure:
		v, err = fromGo(reflect.ValueOf(own.V()), depth)
		return v, true, err
	case Failure:
		v, err = fromGo(reflect.ValueOf(own.V()), depth)
		return v, true, err
	case *big.Int:
		return integer(new(big.Int).Set(own)), true, nil
	case big.Int:
		return integer(new(big.Int).Set(&own)), true, nil
	case json.Number:
		v, err = FromJSON([]byte(own))
		return v, true, err
	}
	if m, ok := method[json.Marshaler](x); ok {
		b, err := m.MarshalJSON()
		if err == nil {
			v, err = FromJSON(b)
		}
		return v, true, In("", err)
	}
	if m, ok := method[encoding.TextMarshaler](x); ok {
		b, err := m.MarshalText()
		return string(b), true, In("", err)
	}
	return nil, false, nil
}

// method is x, or its address, as an M.
func method[M any](x reflect.Value) (m M, ok bool) {
	if m, ok = x.Interface().(M); ok || !x.CanAddr() {
		return m, ok
	}
	m, ok = x.Addr().Interface().(M)
	return m, ok
}

func fromList(x reflect.Value, depth int) (V, error) {
	list := make([]V, x.Len())
	for i := range list {
		item, err := fromGo(x.Index(i), depth+1)
		if err != nil {
			return nil, inItem(i, err)
		}
		list[i] = item
	}
	return list, nil
}

func fromDict(d Dict, depth int) (V, error) {
	entries := make([]Entry, len(d.entries))
	for i, e := range d.entries {
		v, err := fromGo(reflect.ValueOf(e.Value), depth+1)
		if err != nil {
			return nil, inKey(e.Key, err)
		}
		entries[i] = Entry{e.Key, v}
	}
	return keyed(entries)
}

func fromMap(x reflect.Value, depth int) (V, error) {
	entries := make([]Entry, 0, x.Len())
	for k, item := range x.Seq2() {
		key, err := fromKey(k)
		if err != nil {
			return nil, err
		}
		v, err := fromGo(item, depth+1)
		if err != nil {
			return nil, inKey(key, err)
		}
		entries = append(entries, Entry{key, v})
	}
	return keyed(entries)
}

// keyed is the Dict of entries that came from outside.
func keyed(entries []Entry) (V, error) {
	for _, e := range entries {
		if err := goodKey(e.Key); err != nil {
			return nil, err
		}
	}
	d, twice := sorted(entries)
	if twice != "" {
		return nil, problem("the key %s is there twice", twice)
	}
	return d, nil
}

// fromKey is the key of a map as text.
func fromKey(k reflect.Value) (string, error) {
	if k.Kind() == reflect.String {
		return k.String(), nil
	}
	if m, ok := k.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		return string(b), In("", err)
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", problem("a %s can't be a key", k.Type())
}

func fromStruct(x reflect.Value, depth int) (V, error) {
	var entries []Entry
	for _, f := range fieldsOf(x.Type()) {
		part, ok := f.of(x)
		if !ok || f.omitEmpty && empty(part) || f.omitZero && zero(part) {
			continue
		}
		v, err := fromGo(part, depth+1)
		if err != nil {
			return nil, inKey(f.name, err)
		}
		if f.quoted && v != nil {
			v = string(JSON(v))
		}
		entries = append(entries, Entry{f.name, v})
	}
	return keyed(entries)
}

// of is the field of x, unless an embedded pointer on the way is nil.
func (f field) of(x reflect.Value) (reflect.Value, bool) {
	for i, n := range f.index {
		if i > 0 && x.Kind() == reflect.Pointer {
			if x.IsNil() {
				return x, false
			}
			x = x.Elem()
		}
		x = x.Field(n)
	}
	return x, true
}

func empty(x reflect.Value) bool {
	switch x.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return x.Len() == 0
	case reflect.Struct:
		return false
	}
	return x.IsZero()
}

func zero(x reflect.Value) bool {
	if x.CanInterface() && !(nullable(x.Kind()) && x.IsNil()) {
		if z, ok := method[interface{ IsZero() bool }](x); ok {
			return z.IsZero()
		}
	}
	return x.IsZero()
}
