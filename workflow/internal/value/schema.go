package value

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is what a value must look like: a JSON Schema, draft 2020-12 or 7. It
// may be used by several goroutines.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	patterns sync.Map // string to *regexp.Regexp, for the explanations
}

// Violation is one thing that is wrong with a value.
type Violation struct {
	Field   string          `json:"field"`           // as the Path of an Error; "" for the whole
	Value   json.RawMessage `json:"value,omitempty"` // what is there; nil when something is missing
	Problem string          `json:"problem"`         // in plain words: must be a string, is missing
}

// String is a sentence: field, problem, and what is there.
func (v Violation) String() string {
	field := v.Field
	if field == "" {
		field = "the value"
	}
	if v.Value == nil {
		return field + " " + v.Problem
	}
	return field + " " + v.Problem + ", is " + cut(string(v.Value))
}

// CompileSchema makes a Schema of a JSON Schema. Its references lead to parts
// of itself; nothing is fetched.
func CompileSchema(v V) (*Schema, error) {
	s := &Schema{root: new(jsonschema.Schema)}
	if err := json.Unmarshal(JSON(v), s.root); err != nil {
		return nil, err
	}
	draft, ok := drafts[strings.TrimSuffix(s.root.Schema, "#")]
	if !ok {
		return nil, fmt.Errorf("%s is not supported, only drafts 2020-12 and 7 are", s.root.Schema)
	}
	s.root.Schema = draft
	var err error
	if s.resolved, err = s.root.Resolve(nil); err != nil {
		return nil, err
	}
	if err := s.endless(); err != nil {
		return nil, err
	}
	return s, nil
}

// drafts are the ways to name a draft, and the one the library knows.
var drafts = map[string]string{
	"": "",
	"https://json-schema.org/draft/2020-12/schema": "https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema":       "http://json-schema.org/draft-07/schema#",
	"https://json-schema.org/draft-07/schema":      "https://json-schema.org/draft-07/schema#",
}

// Check is what is wrong with v; nothing when it is as it must be. v holds no
// Blob, and bytes count as a string.
func (s *Schema) Check(v V) []Violation {
	err := s.resolved.Validate(instance(v))
	if err == nil {
		return nil
	}
	if found := s.explain(s.root, "", v); len(found) > 0 {
		return found
	}
	return []Violation{{Value: JSON(v), Problem: "does not match the schema: " + innermost(err)}}
}

// innermost is the text of an error without the places it went through.
func innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// instance is v in the types that the library takes. It compares integers
// outside of 64 bits as floats.
func instance(v V) any {
	switch v := v.(type) {
	case []V:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = instance(item)
		}
		return list
	case Dict:
		m := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			m[e.Key] = instance(e.Value)
		}
		return m
	case []byte:
		return string(v)
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return max(-math.MaxFloat64, min(f, math.MaxFloat64))
	case nil, bool, int64, float64, string:
		return v
	}
	panic("BUG: " + kind(v) + " by reference can't be checked")
}

// endless refuses a schema that leads back to itself without going deeper into
// the value: to check one would never end.
func (s *Schema) endless() error {
	const doing, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	var visit func(at *jsonschema.Schema) error
	visit = func(at *jsonschema.Schema) error {
		switch state[at] {
		case doing:
			return errors.New("a $ref leads back to itself")
		case done:
			return nil
		}
		state[at] = doing
		for _, next := range s.beside(at) {
			if err := visit(next); err != nil {
				return err
			}
		}
		state[at] = done
		return nil
	}
	return each(s.root, func(at *jsonschema.Schema) error {
		if at.DynamicRef != "" {
			return errors.New("$dynamicRef is not supported")
		}
		if at.ID != "" && at != s.root {
			return errors.New("an $id below the top is not supported")
		}
		return visit(at)
	})
}

// beside are the schemas that at applies to the same value.
func (s *Schema) beside(at *jsonschema.Schema) []*jsonschema.Schema {
	next := append([]*jsonschema.Schema{s.target(at), at.Not, at.If, at.Then, at.Else}, at.AllOf...)
	next = append(append(next, at.AnyOf...), at.OneOf...)
	for _, m := range []map[string]*jsonschema.Schema{at.DependentSchemas, at.DependencySchemas} {
		for _, sub := range m {
			next = append(next, sub)
		}
	}
	var found []*jsonschema.Schema
	for _, sub := range next {
		if sub != nil {
			found = append(found, sub)
		}
	}
	return found
}

// each calls f for at and all schemas below it.
func each(at *jsonschema.Schema, f func(*jsonschema.Schema) error) error {
	if at == nil {
		return nil
	}
	if err := f(at); err != nil {
		return err
	}
	for sub := range below(at) {
		if err := each(sub, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) pattern(text string) *regexp.Regexp {
	if known, ok := s.patterns.Load(text); ok {
		return known.(*regexp.Regexp)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		panic("BUG: a schema was compiled with a bad pattern: " + err.Error())
	}
	s.patterns.Store(text, re)
	return re
}
