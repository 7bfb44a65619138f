package value

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func compile(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := CompileSchema(parse(t, text))
	require.NoError(t, err)
	return s
}

func TestSchema(t *testing.T) {
	const person = `{"type":"object","properties":{"name":{"type":"string","minLength":2},"age":{"type":"integer","minimum":0},
		"tags":{"type":"array","items":{"enum":["a","b",3]}}},"required":["name"],"additionalProperties":false}`
	const list = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/list","$defs":{"node":{"type":"object",
		"properties":{"next":{"$ref":"#/$defs/node"},"v":{"$ref":"#small"}},"required":["v"]},"s":{"$anchor":"small","maximum":9}},"$ref":"#/$defs/node"}`
	for _, test := range []struct {
		name, schema, value string
		want                []string
	}{
		{"right", person, `{"name":"Ada","age":36,"tags":["a",3,3.0]}`, nil},
		{"everything wrong at once", person, `{"age":-1,"tags":["a","c"],"nmae":"x"}`, []string{
			`name is missing`, `age must be at least 0, is -1`, `nmae is not a known field; known are age, name, tags, is "x"`,
			`tags[1] must be one of "a", "b", 3, is "c"`}},
		{"whole", person, `[]`, []string{`the value must be an object, not a list, is []`}},
		{"whole float is an integer", `{"type":"integer"}`, `2.0`, nil},
		{"integer is a number", `{"type":["number","null"]}`, `2`, nil},
		{"fraction", `{"type":"integer"}`, `2.5`, []string{`the value must be an integer, not a number, is 2.5`}},
		{"several types", `{"type":["string","null","array"]}`, `true`, []string{`the value must be a string, null or a list, not a boolean, is true`}},
		{"const", `{"properties":{"v":{"const":null},"w":{"const":{"a":[1]}}}}`, `{"v":1,"w":{"a":[1.0]}}`, []string{`v must be null, is 1`}},
		{"numbers", `{"items":{"exclusiveMinimum":1,"maximum":5,"multipleOf":0.5}}`, `[1,2,2.25,5.5,1.5]`, []string{
			`[0] must be more than 1, is 1`, `[2] must be a multiple of 0.5, is 2.25`, `[3] must be at most 5, is 5.5`}},
		{"exclusive maximum", `{"exclusiveMaximum":10}`, `10`, []string{`the value must be less than 10, is 10`}},
		{"huge numbers", `{"items":{"type":"integer","minimum":0}}`, `[123456789012345678901234567890,-123456789012345678901234567890]`,
			[]string{`[1] must be at least 0, is -123456789012345678901234567890`}},
		{"strings", `{"items":{"minLength":2,"maxLength":3,"pattern":"^a"}}`, `["aé","a","abcd","bb"]`, []string{
			`[1] must have at least 2 characters, is "a"`, `[2] must have at most 3 characters, is "abcd"`, `[3] must match the pattern ^a, is "bb"`}},
		{"lists", `{"items":{"minItems":1,"maxItems":2,"uniqueItems":true}}`, `[[],[1,2,3],[1,1.0],[1,2]]`, []string{
			`[0] must have at least 1 item, is []`, `[1] must have at most 2 items, is [1,2,3]`, `[2] must have no item twice: 0 and 1 are equal, is [1,1.0]`}},
		{"contains", `{"contains":{"type":"string"},"maxContains":1}`, `[1]`, []string{`the value has 0 items of the kind it must contain, is [1]`}},
		{"contains too many", `{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, []string{`the value has 2 items of the kind it must contain, is ["a","b"]`}},
		{"contains none, which will do", `{"contains":{"type":"string"},"minContains":0}`, `[1]`, nil},
		{"first items", `{"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`, `["a","b",1]`, []string{
			`[1] must be an integer, not a string, is "b"`, `[2] is one of the values that are not allowed, is 1`}},
		{"first items of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema","items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`, `[1,"a"]`, []string{
			`[0] must be a string, not an integer, is 1`, `[1] must be an integer, not a string, is "a"`}},
		{"objects", `{"minProperties":2,"patternProperties":{"^n":{"type":"integer"}},"propertyNames":{"maxLength":2},"additionalProperties":{"type":"string"}}`, `{"nnn":"x"}`, []string{
			`the value must have at least 2 fields, is {"nnn":"x"}`,
			`the value has the field name "nnn", which must have at most 2 characters, is {"nnn":"x"}`,
			`nnn must be an integer, not a string, is "x"`}},
		{"other fields", `{"patternProperties":{"^n":true},"additionalProperties":{"type":"string"}}`, `{"n":1,"x":1}`, []string{`x must be a string, not an integer, is 1`}},
		{"field and pattern", `{"properties":{"na":{"minimum":3}},"patternProperties":{"^n":{"maximum":1}}}`, `{"na":2}`, []string{
			`na must be at least 3, is 2`, `na must be at most 1, is 2`}},
		{"too many fields", `{"maxProperties":0}`, `{"a":1}`, []string{`the value must have at most 0 fields, is {"a":1}`}},
		{"fields that need others", `{"dependentRequired":{"a":["b","c"]},"dependentSchemas":{"a":{"properties":{"d":false}}}}`, `{"a":1,"b":2,"d":3}`, []string{
			`c is missing`, `d is one of the values that are not allowed, is 3`}},
		{"fields that need others in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"c":1}`, []string{`b is missing`, `d is missing`}},
		{"no fields", `{"additionalProperties":false}`, `{"a":1}`, []string{`a is not a known field, is 1`}},
		{"a key that is no word", `{"properties":{"a b":{"type":"null"}}}`, `{"a b":1}`, []string{`["a b"] must be null, not an integer, is 1`}},
		{"all of", `{"allOf":[{"minimum":3},{"multipleOf":2}]}`, `1`, []string{`the value must be at least 3, is 1`, `the value must be a multiple of 2, is 1`}},
		{"any of, by type", `{"anyOf":[{"type":"null"},{"$ref":"#/$defs/o"}],"$defs":{"o":{"type":"object","required":["x"]}}}`, `{}`, []string{`x is missing`}},
		{"any of, no type", `{"anyOf":[{"type":"null"},{"type":"string"},{"type":"string","minLength":3}]}`, `1`, []string{`the value must be null or a string, not an integer, is 1`}},
		{"any of, several", `{"anyOf":[{"minimum":5},{"multipleOf":2}]}`, `1`, []string{`the value matches none of 2 allowed forms, is 1`}},
		{"any of, both", `{"anyOf":[{"minimum":0},{"multipleOf":2}]}`, `2`, nil},
		{"one of, both", `{"oneOf":[{"minimum":0},{"multipleOf":2},{"type":"string"}]}`, `2`, []string{`the value matches 2 of the schemas of which it must match one, is 2`}},
		{"one of, one", `{"oneOf":[{"minimum":5},{"multipleOf":2}]}`, `2`, nil},
		{"not", `{"not":{"type":"string"}}`, `"a"`, []string{`the value is one of the values that are not allowed, is "a"`}},
		{"if", `{"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["x"]},"else":{"required":["y"]}}`, `{"k":"x"}`, []string{`x is missing`}},
		{"else", `{"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["x"]},"else":{"required":["y"]}}`, `{"k":"z"}`, []string{`y is missing`}},
		{"references", list, `{"v":1,"next":{"v":2,"next":{"v":10,"next":{}}}}`, []string{`next.next.next.v is missing`, `next.next.v must be at most 9, is 10`}},
		{"reference to the whole", `{"properties":{"a":{"$ref":"#"}},"required":["k"]}`, `{"k":1,"a":{}}`, []string{`a.k is missing`}},
		{"reference with odd characters", `{"$ref":"#/$defs/a~1b%20c/items","$defs":{"a/b c":{"items":{"type":"null"}}}}`, `1`, []string{`the value must be null, not an integer, is 1`}},
		{"reference into a list", `{"properties":{"a":{"$ref":"#/allOf/0"}},"allOf":[{"type":"object"}]}`, `{"a":1}`, []string{`a must be an object, not an integer, is 1`}},
		{"what only the library knows", `{"properties":{"a":true},"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []string{
			`the value does not match the schema: not: validated against <anonymous schema>, is {"a":1,"b":2}`}},
		{"nothing is right", `false`, `1`, []string{`the value is one of the values that are not allowed, is 1`}},
		{"everything is right", `true`, `1`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := compile(t, test.schema)
			v := parse(t, test.value)
			var got []string
			for _, violation := range s.Check(v) {
				got = append(got, violation.String())
			}
			assert.Equal(t, test.want, got)
			if test.name != "what only the library knows" { // else the two agree
				assert.Equal(t, len(test.want) == 0, s.valid(s.root, v))
			}
		})
	}
}

func TestSchemaBytes(t *testing.T) {
	s := compile(t, `{"items":{"type":"string","maxLength":1}}`)
	got := s.Check([]V{[]byte("a"), "b", []byte("ab")})
	require.Len(t, got, 1)
	assert.Equal(t, Violation{Field: "[2]", Value: []byte(`{"$bytes":"YWI="}`), Problem: "must have at most 1 character"}, got[0])
	assert.Panics(t, func() { s.Check(Blob{}) })
}

func TestCompileSchemaRefuses(t *testing.T) {
	for _, test := range []struct{ name, schema, want string }{
		{"no schema", `1`, "cannot unmarshal number"},
		{"bad keyword", `{"minLength":"x"}`, "cannot be unmarshaled into an int"},
		{"bad pattern", `{"properties":{"a":{"pattern":"(?=x)"}}}`, "pattern: error parsing regexp: invalid or unsupported Perl syntax"},
		{"old draft", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, "http://json-schema.org/draft-04/schema# is not supported, only drafts 2020-12 and 7 are"},
		{"reference to nothing", `{"$ref":"#/$defs/x"}`, "$defs"},
		{"reference to elsewhere", `{"$ref":"https://example.com/x"}`, "example.com"},
		{"itself", `{"$ref":"#"}`, "a $ref leads back to itself"},
		{"itself, by a round", `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "a $ref leads back to itself"},
		{"itself, by its name", `{"$id":"https://example.com/s","allOf":[{"$ref":"https://example.com/s"}]}`, "a $ref leads back to itself"},
		{"itself, by an anchor", `{"$anchor":"me","if":{"$ref":"#me"}}`, "a $ref leads back to itself"},
		{"itself, when a field is there", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, "a $ref leads back to itself"},
		{"dynamic", `{"$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}}`, "$dynamicRef is not supported"},
		{"a schema of another name inside", `{"properties":{"a":{"$id":"https://example.com/a"}}}`, "an $id below the top is not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := CompileSchema(parse(t, test.schema))
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// One schema serves many goroutines.
func TestSchemaInParallel(t *testing.T) {
	s := compile(t, `{"items":{"pattern":"^a$"}}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				assert.Len(t, s.Check([]V{"a", "b"}), 1)
			}
		})
	}
	wg.Wait()
}
