package value

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDict(t *testing.T) {
	d := DictOf(Entry{"b", int64(2)}, Entry{"a", int64(1)})
	var keys []string
	for k := range d.All() {
		keys = append(keys, k)
	}
	assert.Equal(t, []string{"a", "b"}, keys)
	for range d.All() {
		break // and no more
	}
	v, ok := d.Get("b")
	assert.Equal(t, []any{int64(2), true}, []any{v, ok})
	_, ok = d.Get("c")
	assert.False(t, ok)

	more := d.With("aa", nil).With("b", "new")
	assert.Equal(t, `{"a":1,"aa":null,"b":"new"}`, string(JSON(more)))
	assert.Equal(t, `{"a":9,"b":2}`, string(JSON(d.With("a", int64(9)))))
	assert.Equal(t, `{"a":1,"b":2}`, string(JSON(d)), "the first one is as it was")
	assert.Equal(t, `{"a":1,"b":"new"}`, string(JSON(more.Without("aa").Without("zz"))))
	assert.Equal(t, `{"a":1,"aa":null,"b":"new"}`, string(JSON(more)), "as it was")
	assert.Equal(t, 3, more.Len())
	assert.Equal(t, Dict{}, Dict{}.With("a", nil).Without("a"))
	assert.Equal(t, Dict{}, NewDict(nil))
}

func TestOverlay(t *testing.T) {
	for _, test := range []struct{ name, base, patch, want string }{
		{"deep", `{"a":{"b":1,"c":[1,2]},"d":true}`, `{"a":{"b":2,"x":0}}`, `{"a":{"b":2,"c":[1,2],"x":0},"d":true}`},
		{"lists are replaced", `{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`},
		{"null is a value", `{"a":1,"b":2}`, `{"a":null}`, `{"a":null,"b":2}`},
		{"object over something else", `{"a":1}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"something else over an object", `{"a":1}`, `7`, `7`},
		{"nothing over nothing", `{}`, `{}`, `{}`},
		{"before, between and after", `{"b":1,"d":1}`, `{"a":2,"c":2,"e":2}`, `{"a":2,"b":1,"c":2,"d":1,"e":2}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			base, patch := parse(t, test.base), parse(t, test.patch)
			assert.Equal(t, test.want, string(JSON(Overlay(base, patch))))
			assert.Equal(t, test.base, string(JSON(base)), "the base is as it was")
		})
	}
}

func parse(t *testing.T, text string) V {
	t.Helper()
	v, err := FromJSON([]byte(text))
	require.NoError(t, err)
	return v
}

func TestResolve(t *testing.T) {
	v := V([]V{Ref{"b"}, obj(map[string]V{"x": Ref{"a"}, "y": []V{Ref{"b"}}, "z": "a"}), int64(1)})
	assert.Equal(t, []string{"a", "b"}, Refs(v))
	out := map[string][32]byte{"b": {2}}
	got := Resolve(v, func(task string) ([32]byte, bool) { h, ok := out[task]; return h, ok })
	want := V([]V{Output{[32]byte{2}}, obj(map[string]V{"x": Ref{"a"}, "y": []V{Output{[32]byte{2}}}, "z": "a"}), int64(1)})
	assert.Equal(t, want, got)
	assert.Equal(t, []string{"a"}, Refs(got), "what has no output yet stays")
	assert.Equal(t, []string{"a", "b"}, Refs(v), "as it was")
	assert.Empty(t, Refs("a"))

	same := V([]V{"x", obj(map[string]V{"k": []V{}})})
	assert.Equal(t, same, Resolve(same, func(string) ([32]byte, bool) { return [32]byte{}, true }))
}

// keeper keeps what is interned.
type keeper map[[32]byte][]byte

func (k keeper) intern(b []byte) Blob {
	h := Hash(b)
	k[h] = b
	return Blob{Hash: h, Size: int64(len(b))}
}

func (k keeper) load(b Blob) ([]byte, error) {
	if v, ok := k[b.Hash]; ok {
		return v, nil
	}
	return nil, errors.New("gone")
}

func TestIntern(t *testing.T) {
	kept := keeper{}
	long, limit := strings.Repeat("x", Large+1), strings.Repeat("x", Large)
	v := V(obj(map[string]V{"text": long, "bytes": []V{[]byte(long)}, "limit": limit, "few": []byte(limit)}))
	got := Intern(v, kept.intern)

	h := Hash([]byte(long))
	assert.Equal(t, obj(map[string]V{
		"text":  Blob{Hash: h, Size: Large + 1, Text: true},
		"bytes": []V{Blob{Hash: h, Size: Large + 1}},
		"limit": limit, "few": []byte(limit),
	}), got)
	assert.Less(t, len(Encode(got)), 3*Large)

	back, err := Expand(got, kept.load)
	require.NoError(t, err)
	assert.Equal(t, v, back)

	kept[h] = []byte("something else")
	_, err = Expand(got, kept.load)
	assert.ErrorContains(t, err, "another hash")
	delete(kept, h)
	_, err = Expand(got, kept.load)
	assert.ErrorContains(t, err, "gone")
}

func TestDiff(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b V
		want []string
	}{
		{"equal", parse(t, `{"a":[1,{"b":2}]}`), parse(t, `{"a":[1,{"b":2}]}`), nil},
		{"whole", int64(1), 1.0, []string{`1 -> 1.0`}},
		{"fields", parse(t, `{"args":{"env":{"KEY":"a","same":1},"gone":1}}`), parse(t, `{"args":{"env":{"KEY":"b","same":1},"new":null}}`),
			[]string{`args.env.KEY: "a" -> "b"`, `args.gone: 1 -> (nothing)`, `args.new: (nothing) -> null`}},
		{"items", parse(t, `{"l":[1,[2],3]}`), parse(t, `{"l":[1,[5]]}`), []string{`l[1][0]: 2 -> 5`, `l[2]: 3 -> (nothing)`}},
		{"longer", parse(t, `[]`), parse(t, `[{"a":1}]`), []string{`[0]: (nothing) -> {"a":1}`}},
		{"odd keys", parse(t, `{"a.b":{"":1}}`), parse(t, `{"a.b":{"":2}}`), []string{`["a.b"][""]: 1 -> 2`}},
		{"other kinds", parse(t, `{"a":{},"b":[]}`), parse(t, `{"a":[],"b":{}}`), []string{`a: {} -> []`, `b: [] -> {}`}},
		{"tasks", []V{Ref{"a"}}, []V{Ref{"b"}}, []string{`[0]: {"$task":"a"} -> {"$task":"b"}`}},
		{"long", strings.Repeat("é", 100), "", []string{`"` + strings.Repeat("é", 59) + `… (102 characters) -> ""`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, d := range Diff(test.a, test.b) {
				got = append(got, d.String())
			}
			assert.Equal(t, test.want, got)
		})
	}
	b, err := Diff(parse(t, `{"a":1}`), parse(t, `{"a":null,"b":1}`))[0].MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, `{"path":"a","old":1,"new":null}`, string(b))
	b, err = Diff(Dict{}, parse(t, `{"b":1}`))[0].MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, `{"path":"b","new":1}`, string(b))
}

// A failure is the same again after it was stored, and after a hop over JSON.
func TestFailure(t *testing.T) {
	for _, f := range []Failure{
		{},
		{Type: "exit", Message: "exit status 2", Code: "2", Task: "p0.api/test"},
		{Type: "quota", Message: "no more", Data: obj(map[string]V{"limit": int64(5), "rate": 1.0})},
	} {
		stored, err := Decode(Encode(f.V()))
		require.NoError(t, err)
		back, err := FailureOf(stored)
		require.NoError(t, err)
		assert.Equal(t, &f, back)

		hopped, err := FromJSON(JSON(f.V()))
		require.NoError(t, err)
		back, err = FailureOf(hopped)
		require.NoError(t, err)
		assert.Equal(t, &f, back)
	}
	for text, want := range map[string]string{
		`1`:                                      "an integer is not a failure",
		`{"type":"exit"}`:                        "message: is missing",
		`{"type":"exit","message":1,"code":"2"}`: "message: is an integer, not a string",
	} {
		_, err := FailureOf(parse(t, text))
		assert.EqualError(t, err, want)
	}
	assert.EqualError(t, &Failure{Type: "exit", Code: "2"}, "exit 2")
	assert.EqualError(t, &Failure{Type: "timeout"}, "timeout")
	assert.EqualError(t, &Failure{Type: "exit", Code: "2", Message: "no tests"}, "no tests")
}

func TestIn(t *testing.T) {
	inner := errors.New("is no good")
	err := In("args", inKey("env", inKey("a b", inItem(3, inner))))
	assert.EqualError(t, err, `args.env["a b"][3]: is no good`)
	assert.ErrorIs(t, err, inner)
	assert.NoError(t, In("args", nil))
	for key, want := range map[string]string{"a": "a", "_a1-b": "_a1-b", "1a": `["1a"]`, "": `[""]`, "é": `["é"]`, "-x": `["-x"]`, "$ref": `["$ref"]`} {
		assert.Equal(t, want, step(key))
	}
}

func TestJSON(t *testing.T) {
	h := [32]byte{0xab}
	hash := "ab" + strings.Repeat("00", 31)
	for _, test := range []struct {
		v    V
		want string
	}{
		{1.0, `1.0`}, {1e21, `1e+21`}, {math.Copysign(0, -1), `-0.0`}, {0.1, `0.1`},
		{huge("123456789012345678901234567890"), `123456789012345678901234567890`},
		{"<&>\"\\\b\x7f\u2028é\n\r\t", `"<&>\"\\\u0008\u007f\u2028é\n\r\t"`},
		{"a\xff", `{"$bytes":"Yf8="}`}, {[]byte("a"), `{"$bytes":"YQ=="}`},
		{Blob{Hash: h, Size: 7}, `{"$blob":"` + hash + `","size":7}`},
		{Output{h}, `{"$output":"` + hash + `"}`}, {Ref{"a"}, `{"$task":"a"}`},
		{[]V{}, `[]`}, {Dict{}, `{}`}, {[]V{nil, true}, `[null,true]`},
	} {
		assert.Equal(t, test.want, string(JSON(test.v)))
	}
}
