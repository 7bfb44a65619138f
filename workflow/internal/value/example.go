package value

import (
	"encoding/json"
	"math"

	"github.com/google/jsonschema-go/jsonschema"
)

// Example is a value that fits the schema, to show what is asked for; false when
// none was found: what patterns and references ask for is not worked out.
func (s *Schema) Example() (V, bool) {
	v, err := FromGo(example(s.root, 0))
	if err != nil || len(s.Check(v)) > 0 {
		return nil, false
	}
	return v, true
}

// example is a guess, best of what the schema itself names.
func example(s *jsonschema.Schema, depth int) any {
	if s == nil || depth > 16 {
		return true
	}
	switch {
	case s.Const != nil:
		return *s.Const
	case s.Default != nil:
		return s.Default
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	for _, one := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf, s.AllOf} {
		if len(one) > 0 && kindOf(s) == "" {
			return example(one[0], depth+1)
		}
	}
	switch kindOf(s) {
	case "string":
		text := "text"
		for s.MinLength != nil && len(text) < *s.MinLength && len(text) < 1<<10 {
			text += " text"
		}
		if s.MaxLength != nil {
			text = text[:min(len(text), max(*s.MaxLength, 0))]
		}
		return text
	case "integer", "number":
		return amount(s)
	case "array":
		items := []any{}
		for i := 0; s.MinItems != nil && i < min(*s.MinItems, 16); i++ {
			items = append(items, example(itemOf(s, i), depth+1))
		}
		return items
	case "object":
		fields := map[string]any{}
		for _, name := range s.Required {
			fields[name] = example(s.Properties[name], depth+1)
		}
		return fields
	case "null":
		return nil
	}
	return true
}

// kindOf is the type that a schema asks for, or seems to; "" for any.
func kindOf(s *jsonschema.Schema) string {
	for _, kind := range append([]string{s.Type}, s.Types...) {
		if kind != "" && kind != "null" {
			return kind
		}
	}
	switch {
	case s.Type == "null" || len(s.Types) > 0:
		return "null"
	case len(s.Properties) > 0 || len(s.Required) > 0:
		return "object"
	case s.Items != nil || len(s.PrefixItems) > 0:
		return "array"
	}
	return ""
}

// amount is a number between the bounds: 1 where that is.
func amount(s *jsonschema.Schema) json.Number {
	n := 1.0
	if s.Maximum != nil {
		n = math.Min(n, math.Floor(*s.Maximum))
	}
	if s.ExclusiveMaximum != nil {
		n = math.Min(n, math.Ceil(*s.ExclusiveMaximum)-1)
	}
	if s.Minimum != nil {
		n = math.Max(n, math.Ceil(*s.Minimum))
	}
	if s.ExclusiveMinimum != nil {
		n = math.Max(n, math.Floor(*s.ExclusiveMinimum)+1)
	}
	b, err := json.Marshal(n)
	if err != nil {
		return "1" // the bounds are no numbers
	}
	return json.Number(b)
}

func itemOf(s *jsonschema.Schema, i int) *jsonschema.Schema {
	for _, list := range [][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray} {
		if i < len(list) {
			return list[i]
		}
	}
	return s.Items
}
