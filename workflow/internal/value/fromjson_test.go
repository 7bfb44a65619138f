package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFromJSON(t *testing.T) {
	for _, test := range []struct {
		text string
		want V
	}{
		{`null`, nil}, {` true `, true}, {`"a\u00e9\ud83d\ude00"`, "aé😀"},
		{`1`, int64(1)}, {`-0`, int64(0)}, {`1.0`, 1.0}, {`1e2`, 100.0}, {`1E-2`, 0.01},
		{`9007199254740993`, int64(9007199254740993)},
		{`9223372036854775808`, huge("9223372036854775808")},
		{`-123456789012345678901234567890`, huge("-123456789012345678901234567890")},
		{`[]`, []V{}}, {`{}`, Dict{}},
		{`{"b":[1,{"c":null}],"a":"x"}`, obj(map[string]V{"a": "x", "b": []V{int64(1), obj(map[string]V{"c": nil})}})},
		{`{"$bytes":"YQ=="}`, obj(map[string]V{"$bytes": "YQ=="})},
		{`1e-400`, 0.0},
	} {
		t.Run(test.text, func(t *testing.T) {
			v, err := FromJSON([]byte(test.text))
			require.NoError(t, err)
			assert.Equal(t, test.want, v)
		})
	}
}

func TestFromJSONRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, `not JSON: line 1, column 1: unexpected end of JSON input`},
		{`[1,`, `not JSON: line 1, column 3: unexpected end of JSON input`},
		{"{\n  \"a\": nope\n}", `not JSON: line 2, column 9: invalid character 'o' in literal null (expecting 'u')`},
		{`1 2`, `not JSON: line 1, column 3: invalid character '2' after top-level value`},
		{`{} x`, `not JSON: line 1, column 4: invalid character 'x' after top-level value`},
		{`[1,]`, `not JSON: line 1, column 4: invalid character ']' looking for beginning of value`},
		{`[1}`, ``}, {`{"a":1]`, ``}, {`{"a" 1}`, ``}, {`{1:2}`, ``}, {`{"a":1,}`, ``}, {`01`, ``}, {`[1 2]`, ``}, {`{"a"}`, ``},
		{"\"\xff\"", `not JSON: the text is not UTF-8`},
		{`{"a":{"b":1,"c":2,"b":1}}`, `a: the key "b" is there twice`},
		{`{"a":1,"\u0061":1}`, `the key "a" is there twice`},
		{`{"a":[0,1e400]}`, `a[1]: 1e400 is out of range`},
		{strings.Repeat("[", 600) + strings.Repeat("]", 600), strings.Repeat("[0]", 20) + `… (1503 characters): nested too deeply, or contains itself`},
	} {
		t.Run(test.text[:min(30, len(test.text))], func(t *testing.T) {
			v, err := FromJSON([]byte(test.text))
			require.Error(t, err)
			assert.Nil(t, v)
			if test.want != "" {
				assert.EqualError(t, err, test.want)
			}
		})
	}
}

// FromJSON takes what encoding/json takes, but for what is refused by name, and
// reads the same from it.
func FuzzFromJSON(f *testing.F) {
	for _, seed := range []string{`null`, `{"a":[1,2.5,"x\n"],"b":{}}`, `[1,]`, `{"a" 1}`, `"\ud800"`, `1e400`, `{"a":1,"a":2}`, `[}`, `1 2`, `-0.0`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := FromJSON(b)
		var named *Error
		if valid := json.Valid(b) && utf8.Valid(b); valid != (err == nil) && !errors.As(err, &named) {
			t.Fatalf("%q: valid is %v, and the error %v", b, valid, err)
		}
		if err != nil {
			return
		}
		again, err := FromJSON(JSON(v))
		if err != nil || !Equal(v, again) {
			t.Fatalf("%q is written %s and read as %#v, %v", b, JSON(v), again, err)
		}
		var theirs any
		if json.Unmarshal(b, &theirs) != nil || bytes.Contains(b, []byte("-0")) {
			return // a number that is no float, or a zero with a sign, which no integer has
		}
		want, err := json.Marshal(theirs)
		var ours any
		if err != nil || json.Unmarshal(JSON(v), &ours) != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if got, _ := json.Marshal(ours); string(got) != string(want) {
			t.Fatalf("%q is %s, not %s", b, got, want)
		}
	})
}
