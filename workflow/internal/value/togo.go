package value

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ToGo stores v where dst points, by the rules of encoding/json, and undoes
// what FromGo did. Unlike JSON it never changes a number to make it fit: what
// does not fit is an *Error, and dst is then partly filled. In an any it stores
// nil, bool, int64, *big.Int, float64, string, []byte, []any or map[string]any,
// in a V the value itself.
func ToGo(v V, dst any) error {
	p := reflect.ValueOf(dst)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		panic("BUG: ToGo needs a pointer to store at")
	}
	return toGo(p.Elem(), v)
}

var valueType = reflect.TypeFor[V]()

func toGo(dst reflect.Value, v V) error {
	if dst.Type() == valueType {
		dst.Set(reflect.ValueOf(&v).Elem())
		return nil
	}
	if done, err := toOwn(dst, v); done {
		return err
	}
	if v == nil {
		if nullable(dst.Kind()) {
			dst.SetZero()
		}
		return nil // as in JSON, null leaves the rest as it is
	}
	switch dst.Kind() {
	case reflect.Pointer:
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		return toGo(dst.Elem(), v)
	case reflect.Interface:
		if dst.NumMethod() == 0 {
			dst.Set(reflect.ValueOf(loose(v)))
			return nil
		}
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			dst.SetBool(b)
			return nil
		}
	case reflect.String:
		if s, ok := v.(string); ok {
			dst.SetString(s)
			return nil
		}
	case reflect.Slice:
		return toSlice(dst, v)
	case reflect.Array:
		return toArray(dst, v)
	case reflect.Map:
		return toMap(dst, v)
	case reflect.Struct:
		return toStruct(dst, v)
	default:
		return toNumber(dst, v)
	}
	return misfit(dst, v)
}

func misfit(dst reflect.Value, v V) error {
	return problem("%s does not fit a %s", kind(v), dst.Type())
}

// toOwn is for the types that read themselves, and those of this package.
func toOwn(dst reflect.Value, v V) (done bool, err error) {
	if dst.Kind() == reflect.Pointer || !dst.CanInterface() {
		return false, nil // what it points to will get here
	}
	if v != nil && reflect.TypeOf(v) == dst.Type() && dst.Kind() != reflect.Slice {
		dst.Set(reflect.ValueOf(v))
		return true, nil
	}
	switch own := dst.Addr().Interface().(type) {
	case *Failure:
		f, err := FailureOf(v)
		if err == nil {
			*own = *f
		}
		return true, err
	case *json.Number:
		switch v.(type) {
		case int64, *big.Int, float64:
			*own = json.Number(JSON(v))
			return true, nil
		}
	case json.Unmarshaler:
		return true, In("", own.UnmarshalJSON(JSON(v)))
	case encoding.TextUnmarshaler:
		s, ok := v.(string)
		if v == nil {
			return true, nil
		}
		if !ok {
			return true, misfit(dst, v)
		}
		return true, In("", own.UnmarshalText([]byte(s)))
	}
	return false, nil
}

func toNumber(dst reflect.Value, v V) error {
	switch n := v.(type) {
	case int64:
		return toInteger(dst, big.NewInt(n), v)
	case *big.Int:
		return toInteger(dst, n, v)
	case float64:
		if dst.CanFloat() && !dst.OverflowFloat(n) {
			dst.SetFloat(n)
			return nil
		}
		if dst.CanFloat() {
			return problem("%s does not fit a %s", JSON(v), dst.Type())
		}
	}
	return misfit(dst, v)
}

func toInteger(dst reflect.Value, n *big.Int, v V) error {
	switch {
	case dst.CanInt() && n.IsInt64() && !dst.OverflowInt(n.Int64()):
		dst.SetInt(n.Int64())
		return nil
	case dst.CanUint() && n.IsUint64() && !dst.OverflowUint(n.Uint64()):
		dst.SetUint(n.Uint64())
		return nil
	case dst.CanFloat():
		f, accuracy := new(big.Float).SetInt(n).Float64()
		if accuracy == big.Exact && (dst.Kind() == reflect.Float64 || float64(float32(f)) == f) {
			dst.SetFloat(f)
			return nil
		}
	case !dst.CanInt() && !dst.CanUint():
		return misfit(dst, v)
	}
	return problem("%s does not fit a %s", JSON(v), dst.Type())
}

func toSlice(dst reflect.Value, v V) error {
	if dst.Type().Elem().Kind() == reflect.Uint8 {
		b, err := toBytes(dst, v)
		if err == nil {
			dst.SetBytes(b)
		}
		return err
	}
	list, ok := v.([]V)
	if !ok {
		return misfit(dst, v)
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(list), len(list)))
	return toItems(dst, list)
}

// toBytes takes bytes, and base64 as in JSON.
func toBytes(dst reflect.Value, v V) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return append([]byte{}, v...), nil
	case string:
		b, err := base64.StdEncoding.DecodeString(v)
		return b, In("", err)
	}
	return nil, misfit(dst, v)
}

func toArray(dst reflect.Value, v V) error {
	list, ok := v.([]V)
	if !ok {
		return misfit(dst, v)
	}
	if len(list) != dst.Len() {
		return problem("a list of %d does not fit a %s", len(list), dst.Type())
	}
	return toItems(dst, list)
}

func toItems(dst reflect.Value, list []V) error {
	for i, item := range list {
		if err := toGo(dst.Index(i), item); err != nil {
			return inItem(i, err)
		}
	}
	return nil
}

func toMap(dst reflect.Value, v V) error {
	d, ok := v.(Dict)
	if !ok {
		return misfit(dst, v)
	}
	m := reflect.MakeMapWithSize(dst.Type(), d.Len())
	for key, item := range d.All() {
		k := reflect.New(dst.Type().Key()).Elem()
		if err := toKey(k, key); err != nil {
			return inKey(key, err)
		}
		e := reflect.New(dst.Type().Elem()).Elem()
		if err := toGo(e, item); err != nil {
			return inKey(key, err)
		}
		m.SetMapIndex(k, e)
	}
	dst.Set(m)
	return nil
}

func toKey(k reflect.Value, key string) error {
	if k.Kind() == reflect.String {
		k.SetString(key)
		return nil
	}
	if own, ok := k.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return In("", own.UnmarshalText([]byte(key)))
	}
	switch {
	case k.CanInt():
		n, err := strconv.ParseInt(key, 10, k.Type().Bits())
		k.SetInt(n)
		return In("", err)
	case k.CanUint():
		n, err := strconv.ParseUint(key, 10, k.Type().Bits())
		k.SetUint(n)
		return In("", err)
	}
	return problem("a %s can't be a key", k.Type())
}

func toStruct(dst reflect.Value, v V) error {
	d, ok := v.(Dict)
	if !ok {
		return misfit(dst, v)
	}
	fields := fieldsOf(dst.Type())
	for key, item := range d.All() {
		f, ok := fieldFor(fields, key, d)
		if !ok {
			continue
		}
		part, err := f.in(dst)
		if err == nil {
			err = f.set(part, item)
		}
		if err != nil {
			return inKey(key, err)
		}
	}
	return nil
}

// fieldFor is the field a key of d is for: the one of that name, or one whose
// name differs in letter case and is no key itself.
func fieldFor(fields []field, key string, d Dict) (field, bool) {
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == key }); i >= 0 {
		return fields[i], true
	}
	for _, f := range fields {
		if _, taken := d.Get(f.name); !taken && strings.EqualFold(f.name, key) {
			return f, true
		}
	}
	return field{}, false
}

// in is the field of dst, with the embedded pointers on the way made.
func (f field) in(dst reflect.Value) (reflect.Value, error) {
	for i, n := range f.index {
		if i > 0 && dst.Kind() == reflect.Pointer {
			if dst.IsNil() && !dst.CanSet() {
				return dst, problem("a field of the unexported %s can't be set", dst.Type().Elem())
			}
			if dst.IsNil() {
				dst.Set(reflect.New(dst.Type().Elem()))
			}
			dst = dst.Elem()
		}
		dst = dst.Field(n)
	}
	return dst, nil
}

func (f field) set(dst reflect.Value, v V) error {
	if text, ok := v.(string); ok && f.quoted {
		var err error
		if v, err = FromJSON([]byte(text)); err != nil {
			return In("", err)
		}
	}
	return toGo(dst, v)
}

// loose is v in the types that programs expect in an any.
func loose(v V) any {
	switch v := v.(type) {
	case []V:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = loose(item)
		}
		return list
	case Dict:
		m := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			m[e.Key] = loose(e.Value)
		}
		return m
	case []byte:
		return append([]byte{}, v...)
	case *big.Int:
		return new(big.Int).Set(v)
	}
	return v
}
