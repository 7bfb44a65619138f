package value

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// The library decides whether a value is right, but stops at the first thing
// that is wrong and names it by its place in the schema. What follows looks
// for all of them, and names them by their place in the value.

// explain is what at has against v. It knows the keywords that people write;
// for others it finds nothing.
func (s *Schema) explain(at *jsonschema.Schema, path string, v V) (found []Violation) {
	bad := func(format string, args ...any) {
		found = append(found, Violation{path, JSON(v), fmt.Sprintf(format, args...)})
	}
	if !typed(at, v) {
		bad("must be %s, not %s", alternatives(types(at)), kind(v))
		return found // the rest is about a value of that type
	}
	if target := s.target(at); target != nil {
		found = append(found, s.explain(target, path, v)...)
	}
	explainConst(at, v, bad)
	switch v := v.(type) {
	case int64, *big.Int, float64:
		explainNumber(at, v, bad)
	case string:
		s.explainString(at, v, bad)
	case []byte:
		s.explainString(at, string(v), bad)
	case []V:
		s.explainList(at, v, bad)
		found = append(found, s.explainItems(at, path, v)...)
	case Dict:
		s.explainDict(at, v, bad)
		found = append(found, s.explainKeys(at, path, v)...)
	}
	return append(found, s.explainLogic(at, path, v)...)
}

func (s *Schema) valid(at *jsonschema.Schema, v V) bool { return len(s.explain(at, "", v)) == 0 }

// complaint adds a problem with the value at hand.
type complaint func(format string, args ...any)

// types are the types that a schema allows; none when it does not say.
func types(at *jsonschema.Schema) []string {
	if at.Type != "" {
		return []string{at.Type}
	}
	return at.Types
}

func typed(at *jsonschema.Schema, v V) bool {
	allowed := types(at)
	if len(allowed) == 0 {
		return true
	}
	is := "number"
	switch v := v.(type) {
	case nil:
		is = "null"
	case bool:
		is = "boolean"
	case int64, *big.Int:
		is = "integer"
	case float64:
		if v == math.Trunc(v) {
			is = "integer"
		}
	case string, []byte:
		is = "string"
	case []V:
		is = "array"
	case Dict:
		is = "object"
	}
	return slices.Contains(allowed, is) || is == "integer" && slices.Contains(allowed, "number")
}

var words = map[string]string{
	"null": "null", "boolean": "a boolean", "integer": "an integer", "number": "a number",
	"string": "a string", "array": "a list", "object": "an object",
}

func alternatives(types []string) string {
	var text []string
	for _, t := range types {
		word, ok := words[t]
		if !ok {
			word = t
		}
		text = append(text, word)
	}
	if len(text) == 1 {
		return text[0]
	}
	last := len(text) - 1
	return strings.Join(text[:last], ", ") + " or " + text[last]
}

func explainConst(at *jsonschema.Schema, v V, bad complaint) {
	if at.Const != nil && !jsonschema.Equal(*at.Const, instance(v)) {
		bad("must be %s", literal(*at.Const))
	}
	if at.Enum == nil {
		return
	}
	var allowed []string
	for _, e := range at.Enum {
		if jsonschema.Equal(e, instance(v)) {
			return
		}
		allowed = append(allowed, literal(e))
	}
	bad("must be one of %s", strings.Join(allowed, ", "))
}

// literal is a value of a schema as JSON, where 1.0 is 1.
func literal(x any) string {
	v, err := FromGo(x)
	if err != nil {
		return fmt.Sprint(x)
	}
	if f, ok := v.(float64); ok {
		return decimal(f)
	}
	return string(JSON(v))
}

func decimal(f float64) string { return strings.TrimSuffix(string(JSON(f)), ".0") }

func explainNumber(at *jsonschema.Schema, v V, bad complaint) {
	n := new(big.Rat)
	switch v := v.(type) {
	case int64:
		n.SetInt64(v)
	case *big.Int:
		n.SetInt(v)
	case float64:
		n.SetFloat64(v)
	}
	against := func(limit *float64, wrong func(int) bool, words string) {
		if limit != nil && wrong(n.Cmp(new(big.Rat).SetFloat64(*limit))) {
			bad("must be %s %s", words, decimal(*limit))
		}
	}
	against(at.Minimum, func(c int) bool { return c < 0 }, "at least")
	against(at.Maximum, func(c int) bool { return c > 0 }, "at most")
	against(at.ExclusiveMinimum, func(c int) bool { return c <= 0 }, "more than")
	against(at.ExclusiveMaximum, func(c int) bool { return c >= 0 }, "less than")
	if at.MultipleOf != nil && *at.MultipleOf > 0 {
		f, _ := n.Float64()
		if times := f / *at.MultipleOf; times != math.Trunc(times) {
			bad("must be a multiple of %s", decimal(*at.MultipleOf))
		}
	}
}

func (s *Schema) explainString(at *jsonschema.Schema, text string, bad complaint) {
	between(utf8.RuneCountInString(text), at.MinLength, at.MaxLength, "character", bad)
	if at.Pattern != "" && !s.pattern(at.Pattern).MatchString(text) {
		bad("must match the pattern %s", at.Pattern)
	}
}

func between(n int, least, most *int, thing string, bad complaint) {
	if least != nil && n < *least {
		bad("must have at least %s", count(*least, thing))
	}
	if most != nil && n > *most {
		bad("must have at most %s", count(*most, thing))
	}
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// explainList is about a list as a whole.
func (s *Schema) explainList(at *jsonschema.Schema, list []V, bad complaint) {
	between(len(list), at.MinItems, at.MaxItems, "item", bad)
	if at.UniqueItems {
		if i, j, ok := twins(list); ok {
			bad("must have no item twice: %d and %d are equal", i, j)
		}
	}
	if at.Contains == nil {
		return
	}
	n := 0
	for _, item := range list {
		if s.valid(at.Contains, item) {
			n++
		}
	}
	least := 1
	if at.MinContains != nil {
		least = *at.MinContains
	}
	if n < least || at.MaxContains != nil && n > *at.MaxContains {
		bad("has %s of the kind it must contain", count(n, "item"))
	}
}

// twins are two equal items.
func twins(list []V) (i, j int, ok bool) {
	for j := range list {
		for i := range j {
			if jsonschema.Equal(instance(list[i]), instance(list[j])) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

func (s *Schema) explainItems(at *jsonschema.Schema, path string, list []V) (found []Violation) {
	first, rest := at.PrefixItems, at.Items
	if at.ItemsArray != nil {
		first, rest = at.ItemsArray, at.AdditionalItems
	}
	for i, item := range list {
		schema := rest
		if i < len(first) {
			schema = first[i]
		}
		if schema != nil {
			found = append(found, s.explain(schema, join(path, index(i)), item)...)
		}
	}
	return found
}

// explainDict is about an object as a whole.
func (s *Schema) explainDict(at *jsonschema.Schema, d Dict, bad complaint) {
	between(d.Len(), at.MinProperties, at.MaxProperties, "field", bad)
	if at.PropertyNames == nil {
		return
	}
	for key := range d.All() {
		for _, v := range s.explain(at.PropertyNames, "", key) {
			bad("has the field name %s, which %s", quote(key), v.Problem)
		}
	}
}

// explainKeys is about the fields of an object, the missing ones first.
func (s *Schema) explainKeys(at *jsonschema.Schema, path string, d Dict) (found []Violation) {
	for _, key := range needed(at, d) {
		found = append(found, Violation{Field: join(path, step(key)), Problem: "is missing"})
	}
	for key, v := range d.All() {
		field := join(path, step(key))
		schemas := s.schemasOf(at, key)
		if len(schemas) == 0 && at.AdditionalProperties != nil {
			if never(at.AdditionalProperties) {
				found = append(found, Violation{field, JSON(v), "is not a known field" + known(at)})
				continue
			}
			schemas = append(schemas, at.AdditionalProperties)
		}
		for _, schema := range schemas {
			found = append(found, s.explain(schema, field, v)...)
		}
	}
	return found
}

// needed are the keys that d must have and has not.
func needed(at *jsonschema.Schema, d Dict) (missing []string) {
	need := slices.Clone(at.Required)
	for key := range d.All() {
		need = append(need, at.DependentRequired[key]...)
		need = append(need, at.DependencyStrings[key]...)
	}
	for _, key := range need {
		if _, ok := d.Get(key); !ok && !slices.Contains(missing, key) {
			missing = append(missing, key)
		}
	}
	return missing
}

// schemasOf are those that a schema has for a key by name.
func (s *Schema) schemasOf(at *jsonschema.Schema, key string) (found []*jsonschema.Schema) {
	if schema, ok := at.Properties[key]; ok {
		found = append(found, schema)
	}
	for _, pattern := range ordered(at.PatternProperties) {
		if s.pattern(pattern).MatchString(key) {
			found = append(found, at.PatternProperties[pattern])
		}
	}
	return found
}

// never reports whether a schema is false.
func never(at *jsonschema.Schema) bool {
	return at.Not != nil && reflect.ValueOf(*at.Not).IsZero()
}

func known(at *jsonschema.Schema) string {
	if len(at.Properties) == 0 {
		return ""
	}
	return "; known are " + strings.Join(ordered(at.Properties), ", ")
}

func (s *Schema) explainLogic(at *jsonschema.Schema, path string, v V) (found []Violation) {
	for _, schema := range at.AllOf {
		found = append(found, s.explain(schema, path, v)...)
	}
	if at.AnyOf != nil {
		found = append(found, s.explainChoice(at.AnyOf, path, v, false)...)
	}
	if at.OneOf != nil {
		found = append(found, s.explainChoice(at.OneOf, path, v, true)...)
	}
	if at.Not != nil && s.valid(at.Not, v) {
		found = append(found, Violation{path, JSON(v), "is one of the values that are not allowed"})
	}
	if at.If != nil {
		then := at.Else
		if s.valid(at.If, v) {
			then = at.Then
		}
		if then != nil {
			found = append(found, s.explain(then, path, v)...)
		}
	}
	if d, ok := v.(Dict); ok {
		for _, m := range []map[string]*jsonschema.Schema{at.DependentSchemas, at.DependencySchemas} {
			for _, key := range ordered(m) {
				if _, ok := d.Get(key); ok {
					found = append(found, s.explain(m[key], path, v)...)
				}
			}
		}
	}
	return found
}

// explainChoice is about a value that must match one of several schemas. If
// only one of them is for its type, that one says what is wrong.
func (s *Schema) explainChoice(choices []*jsonschema.Schema, path string, v V, one bool) []Violation {
	var fits int
	var near [][]Violation
	var allowed []string
	for _, schema := range choices {
		reasons := s.explain(schema, path, v)
		if len(reasons) == 0 {
			fits++
		}
		schema = s.followed(schema)
		if typed(schema, v) {
			near = append(near, reasons)
		}
		allowed = append(allowed, types(schema)...)
	}
	switch {
	case fits == 1 || fits > 1 && !one:
		return nil
	case fits > 1:
		return []Violation{{path, JSON(v), fmt.Sprintf("matches %d of the schemas of which it must match one", fits)}}
	case len(near) == 1:
		return near[0]
	case len(near) == 0 && len(allowed) > 0:
		slices.Sort(allowed)
		return []Violation{{path, JSON(v), "must be " + alternatives(slices.Compact(allowed)) + ", not " + kind(v)}}
	}
	return []Violation{{path, JSON(v), fmt.Sprintf("matches none of %d allowed forms", len(choices))}}
}
