package value

import (
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// below are the schemas directly inside at.
func below(at *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	one := []*jsonschema.Schema{
		at.Items, at.AdditionalItems, at.Contains, at.UnevaluatedItems,
		at.AdditionalProperties, at.PropertyNames, at.UnevaluatedProperties,
		at.Not, at.If, at.Then, at.Else, at.ContentSchema,
	}
	lists := slices.Concat(one, at.PrefixItems, at.ItemsArray, at.AllOf, at.AnyOf, at.OneOf)
	byKey := []map[string]*jsonschema.Schema{
		at.Defs, at.Definitions, at.Properties, at.PatternProperties, at.DependentSchemas, at.DependencySchemas,
	}
	return func(yield func(*jsonschema.Schema) bool) {
		for _, sub := range lists {
			if sub != nil && !yield(sub) {
				return
			}
		}
		for _, m := range byKey {
			for _, key := range ordered(m) {
				if !yield(m[key]) {
					return
				}
			}
		}
	}
}

func ordered[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// target is the schema that the $ref of at leads to: a part of the whole, by
// pointer or anchor.
func (s *Schema) target(at *jsonschema.Schema) *jsonschema.Schema {
	if at.Ref == "" {
		return nil
	}
	base, fragment, _ := strings.Cut(at.Ref, "#")
	if base != "" && base != s.root.ID {
		return nil
	}
	if fragment != "" && fragment[0] != '/' {
		return s.anchored(fragment)
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil
	}
	found := s.root
	for steps := pointer(fragment); len(steps) > 0 && found != nil; {
		found, steps = inside(found, steps)
	}
	return found
}

// followed is where the references from at end.
func (s *Schema) followed(at *jsonschema.Schema) *jsonschema.Schema {
	for next := s.target(at); next != nil; next = s.target(at) {
		at = next
	}
	return at
}

func (s *Schema) anchored(name string) (found *jsonschema.Schema) {
	_ = each(s.root, func(at *jsonschema.Schema) error {
		if at.Anchor == name || at.DynamicAnchor == name {
			found = at
		}
		return nil
	})
	return found
}

// pointer are the steps of a JSON pointer.
func pointer(text string) []string {
	steps := strings.Split(text, "/")[1:]
	for i, step := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps
}

// inside is the schema that the first steps lead to from at, and the steps
// that are left; nil when they lead nowhere.
func inside(at *jsonschema.Schema, steps []string) (*jsonschema.Schema, []string) {
	one := map[string]*jsonschema.Schema{
		"items": at.Items, "additionalItems": at.AdditionalItems, "contains": at.Contains,
		"unevaluatedItems": at.UnevaluatedItems, "additionalProperties": at.AdditionalProperties,
		"propertyNames": at.PropertyNames, "unevaluatedProperties": at.UnevaluatedProperties,
		"not": at.Not, "if": at.If, "then": at.Then, "else": at.Else, "contentSchema": at.ContentSchema,
	}
	if sub := one[steps[0]]; sub != nil {
		return sub, steps[1:]
	}
	if len(steps) < 2 {
		return nil, nil
	}
	byKey := map[string]map[string]*jsonschema.Schema{
		"$defs": at.Defs, "definitions": at.Definitions, "properties": at.Properties,
		"patternProperties": at.PatternProperties, "dependentSchemas": at.DependentSchemas,
		"dependencies": at.DependencySchemas,
	}
	if sub := byKey[steps[0]][steps[1]]; sub != nil {
		return sub, steps[2:]
	}
	byNumber := map[string][]*jsonschema.Schema{
		"prefixItems": at.PrefixItems, "items": at.ItemsArray,
		"allOf": at.AllOf, "anyOf": at.AnyOf, "oneOf": at.OneOf,
	}
	if i, err := strconv.Atoi(steps[1]); err == nil && i >= 0 && i < len(byNumber[steps[0]]) {
		return byNumber[steps[0]][i], steps[2:]
	}
	return nil, nil
}
