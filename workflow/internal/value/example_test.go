package value

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExample(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`true`, `true`},
		{`{}`, `true`},
		{`{"type":"boolean"}`, `true`},
		{`{"const":false}`, `false`},
		{`{"enum":["ship","hold"]}`, `"ship"`},
		{`{"type":"string"}`, `"text"`},
		{`{"type":"string","minLength":6}`, `"text text"`},
		{`{"type":"string","maxLength":2}`, `"te"`},
		{`{"type":"string","default":"main"}`, `"main"`},
		{`{"type":"string","pattern":"^v[0-9]+$"}`, ``},
		{`{"type":"string","pattern":"^v[0-9]+$","examples":["v1"]}`, `"v1"`},
		{`{"type":"integer"}`, `1`},
		{`{"type":"integer","minimum":3.5}`, `4`},
		{`{"type":"number","maximum":-2.5}`, `-3`},
		{`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":3}`, `2`},
		{`{"type":"integer","exclusiveMaximum":1}`, `0`},
		{`{"type":"integer","multipleOf":7}`, ``},
		{`{"type":["null","string"]}`, `"text"`},
		{`{"type":"null"}`, `null`},
		{`{"type":"array"}`, `[]`},
		{`{"type":"array","minItems":2,"items":{"type":"integer"}}`, `[1,1]`},
		{`{"type":"array","minItems":2,"prefixItems":[{"type":"string"},{"type":"null"}]}`, `["text",null]`},
		{`{"type":"object","properties":{"ok":{"type":"boolean"},"why":{"type":"string"}},"required":["ok"]}`, `{"ok":true}`},
		{`{"properties":{"by":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}},"required":["by"]}`, `{"by":{"name":"text"}}`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `1`},
		{`{"oneOf":[{"type":"integer"},{"type":"integer"}]}`, ``},
		{`{"$defs":{"word":{"type":"string"}},"$ref":"#/$defs/word"}`, ``},
		{`false`, ``},
	} {
		v, err := FromJSON([]byte(test.schema))
		require.NoError(t, err, test.schema)
		s, err := CompileSchema(v)
		require.NoError(t, err, test.schema)
		got, ok := s.Example()
		if test.want == "" {
			assert.False(t, ok, "%s: %s", test.schema, JSON(got))
			continue
		}
		if assert.True(t, ok, test.schema) {
			assert.JSONEq(t, test.want, string(JSON(got)), test.schema)
			assert.Empty(t, s.Check(got), test.schema)
		}
	}
}
