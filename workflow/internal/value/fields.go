package value

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is a field of a struct under the name it has in JSON.
type field struct {
	name      string
	index     []int // through embedded structs
	tagged    bool
	omitEmpty bool
	omitZero  bool
	quoted    bool
}

var fieldsByType sync.Map // reflect.Type to []field

// fieldsOf are the fields of a struct that encoding/json would write, by name.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldsByType.Load(t); ok {
		return known.([]field)
	}
	found := dominant(candidates(t))
	fieldsByType.Store(t, found)
	return found
}

// candidates are all fields with a name in JSON, those of embedded structs
// among them. A type is looked into on the outermost level it is embedded on; if
// it is there twice its fields hide each other.
func candidates(t reflect.Type) (found []field) {
	type place struct {
		t     reflect.Type
		index []int
	}
	seen := map[reflect.Type]bool{}
	for level := []place{{t, nil}}; len(level) > 0; {
		for _, p := range level {
			seen[p.t] = true
		}
		var below []place
		for _, p := range level {
			for i := range p.t.NumField() {
				sf := p.t.Field(i)
				index := append(slices.Clone(p.index), i)
				inner := embedded(sf)
				tag := sf.Tag.Get("json")
				switch f := named(sf, index); {
				case tag == "-" || !sf.IsExported() && inner == nil:
				case inner == nil || f.tagged:
					found = append(found, f)
				case !seen[inner]:
					below = append(below, place{inner, index})
				}
			}
		}
		level = below
	}
	return found
}

// named is the field as its tag describes it.
func named(sf reflect.StructField, index []int) field {
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	f := field{name: name, index: index, tagged: name != ""}
	if name == "" {
		f.name = sf.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		case "string":
			f.quoted = scalar(sf.Type)
		}
	}
	return f
}

// scalar reports whether the option string means something for a type.
func scalar(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return false
}

// embedded is the struct whose fields may count as those of the one it is
// embedded in.
func embedded(sf reflect.StructField) reflect.Type {
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !sf.Anonymous || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// dominant keeps, of the fields with one name, the outermost, then the tagged
// one; and none when that leaves two.
func dominant(all []field) (kept []field) {
	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	for _, f := range all {
		rivals := byName[f.name]
		wins := !slices.ContainsFunc(rivals, func(o field) bool {
			return !slices.Equal(o.index, f.index) && !f.over(o)
		})
		if wins {
			kept = append(kept, f)
		}
	}
	slices.SortFunc(kept, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return kept
}

func (f field) over(o field) bool {
	if len(f.index) != len(o.index) {
		return len(f.index) < len(o.index)
	}
	return f.tagged && !o.tagged
}
