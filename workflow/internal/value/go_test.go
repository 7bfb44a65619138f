package value

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type (
	Inner struct {
		Name string `json:"name"`
		Deep int
	}
	Other struct {
		Deep int
		Solo bool `json:"solo"`
	}
	Twice  struct{ Solo bool }
	hidden struct{ Seen int }
	self   struct {
		Self *self `json:"self,omitempty"`
		N    int
	}
	ring struct {
		N int
		*ring
	}

	tagged struct {
		A int    `json:"a"`
		B string `json:"b,omitempty"`
		C *int   `json:",omitempty"`
		D bool   `json:"-"`
		E bool   `json:"-,"`
		F []int
		G map[string]int
		H any
		I time.Time `json:"i,omitzero"`
		j int
		K int64             `json:"k,string"`
		L string            `json:"l,string,omitempty"`
		M [2]bool           `json:"m"`
		N *string           `json:"n,string"`
		O map[int]string    `json:"o,omitempty"`
		P json.RawMessage   `json:"p,omitempty"`
		Q []Inner           `json:"q,omitempty"`
		R netip.Addr        `json:"r,omitzero"`
		S map[netip.Addr]u8 `json:"s,omitempty"`
		T struct{}          `json:"t,omitempty"`
		U json.Number       `json:"u,omitempty"`
	}
	u8 uint8

	embeds struct {
		Inner
		*Other
		hidden
		Deep string
	}
	clash struct { // Deep is there twice
		Inner
		Other
		Twice `json:"twice"`
	}
	sameLevel struct {
		Inner
		Other
	}
	viaTwo struct {
		first
		second
	}
	first  struct{ bare }
	second struct{ bare }
	bare   struct{ Deep int }
	inName struct {
		Inner `json:"inner"`
	}
	inherited struct{ time.Time }

	outermost struct { // one field hides one below it
		bare
		Deep string
	}
	renamed struct {
		Depth int `json:"Deep"`
	}
	tagWins struct { // on one level the tag decides
		bare
		renamed
	}
)

// The structure is that of encoding/json.
func TestFromGoIsLikeJSON(t *testing.T) {
	n, s := 7, "x"
	when := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	for _, x := range []any{
		nil, true, "a<b", 1, int8(-1), uint64(math.MaxUint64), u8(3), json.Number("12345678901234567890"),
		[]int{}, []int(nil), map[string]int(nil), map[string]int{"b": 1, "a": 2}, [3]int{1, 2, 3}, (*int)(nil), &n,
		[3]byte{1, 2, 3},
		tagged{}, &tagged{}, tagged{I: time.Time{}.Local()}, self{Self: &self{N: 2}, N: 1}, &ring{N: 1, ring: &ring{N: 2}},
		tagged{A: 1, B: "b", C: &n, D: true, E: true, F: []int{1}, G: map[string]int{"x": 1}, H: []any{"y", nil, map[string]any{"z": false}},
			I: when, j: 1, K: -5, L: "quoted", M: [2]bool{true}, N: &s, O: map[int]string{10: "b", 9: "a"},
			P: json.RawMessage(`{"raw":[1]}`), Q: []Inner{{"q", 1}}, R: netip.MustParseAddr("::1"),
			S: map[netip.Addr]u8{netip.MustParseAddr("10.0.0.1"): 1}, U: "7"},
		embeds{Inner: Inner{"n", 1}, hidden: hidden{2}, Deep: "outer"},
		embeds{Other: &Other{Deep: 1, Solo: true}},
		clash{}, sameLevel{}, viaTwo{}, inName{}, inherited{when},
		outermost{bare{1}, "outer"}, tagWins{bare{1}, renamed{2}},
		when, time.Second, []time.Time{when}, map[string]any{"t": &when}, big.NewInt(5), struct{ N *big.Int }{big.NewInt(6)},
		[]json.Marshaler{when}, struct{ Err error }{errors.New("has no fields")},
	} {
		b, err := json.Marshal(x)
		require.NoError(t, err)
		want, err := FromJSON(b)
		require.NoError(t, err)
		got, err := FromGo(x)
		require.NoError(t, err, "%T", x)
		assert.Equal(t, string(JSON(want)), string(JSON(got)), "%T", x)
	}
}

// What JSON would lose, and what belongs to this package.
func TestFromGoKeeps(t *testing.T) {
	f := &Failure{Type: "exit", Code: "1"}
	for _, test := range []struct {
		x    any
		want V
	}{
		{1.0, 1.0}, {float32(0.5), 0.5}, {[]float64{2}, []V{2.0}},
		{[]byte{0xff}, []byte{0xff}}, {struct{ B []byte }{[]byte("a")}, obj(map[string]V{"B": []byte("a")})},
		{[]byte(nil), nil}, {json.RawMessage(`1.0`), 1.0},
		{"\xff", "\xff"}, {[]string{"\xff"}, []V{"\xff"}},
		{Ref{"a"}, Ref{"a"}}, {[]any{Ref{"a"}, Output{}, Blob{Size: 1}}, []V{Ref{"a"}, Output{}, Blob{Size: 1}}},
		{map[string]V{"a": Ref{"b"}}, obj(map[string]V{"a": Ref{"b"}})},
		{[]V{1, uint8(2)}, []V{int64(1), int64(2)}}, {obj(map[string]V{"a": 1}), obj(map[string]V{"a": int64(1)})},
		{huge("18446744073709551616"), huge("18446744073709551616")}, {*big.NewInt(1), int64(1)},
		{f, f.V()}, {[]any{f}, []V{f.V()}}, {*f, f.V()}, {(*Failure)(nil), nil},
	} {
		got, err := FromGo(test.x)
		require.NoError(t, err, "%#v", test.x)
		assert.True(t, Equal(test.want, got), "%#v became %#v", test.x, got)
	}
	n := huge("18446744073709551616")
	v, err := FromGo(n)
	require.NoError(t, err)
	n.SetInt64(1)
	assert.Equal(t, "18446744073709551616", string(JSON(v)), "a value is not changed by what happens to its source")
	b := []byte("a")
	v, err = FromGo(b)
	require.NoError(t, err)
	b[0] = 'b'
	assert.Equal(t, []byte("a"), v)
}

type broken struct{}

var errBroken = errors.New("is broken")

func (broken) MarshalJSON() ([]byte, error)  { return nil, errBroken }
func (*broken) UnmarshalJSON(b []byte) error { return errBroken }

type brokenText struct{ N int }

func (brokenText) MarshalText() ([]byte, error)  { return nil, errBroken }
func (*brokenText) UnmarshalText(b []byte) error { return errBroken }

type sameText int

func (sameText) MarshalText() ([]byte, error) { return []byte("same"), nil }

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { return []byte(`{"a":1,"a":2}`), nil }

func TestFromGoRefuses(t *testing.T) {
	loop := &self{}
	loop.Self = loop
	list := []any{nil}
	list[0] = list
	m := map[string]any{}
	m["m"] = m
	for _, test := range []struct {
		name string
		x    any
		want string
	}{
		{"function", map[string]any{"env": map[string]any{"KEY": func() {}}}, `env.KEY: a func() is not data`},
		{"nil function", struct{ F func() }{}, `F: a func() is not data`},
		{"channel", []any{1, make(chan int)}, `[1]: a chan int is not data`},
		{"complex", struct{ C complex64 }{}, `C: a complex64 is not data`},
		{"NaN", map[string]float64{"a b": math.NaN()}, `["a b"]: NaN is not a number`},
		{"infinity", float32(math.Inf(-1)), `-Inf is not a number`},
		{"NaN alone", math.NaN(), `NaN is not a number`},
		{"NaN in a value", []V{math.NaN()}, `[0]: NaN is not a number`},
		{"NaN in an object", obj(map[string]V{"a": math.NaN()}), `a: NaN is not a number`},
		{"MarshalJSON", []any{broken{}}, `[0]: is broken`},
		{"MarshalText", []any{brokenText{}}, `[0]: is broken`},
		{"MarshalText of a key", map[brokenText]int{{}: 1}, `is broken`},
		{"what MarshalJSON returns", struct{ B badJSON }{}, `B: the key "a" is there twice`},
		{"keys that come out the same", map[sameText]int{1: 1, 2: 2}, `the key "same" is there twice`},
		{"key that is not text", map[string]int{"\xff": 1}, `the key "\xff" is not UTF-8 text`},
		{"key of another kind", map[bool]int{true: 1}, `a bool can't be a key`},
		{"bad number", json.Number("x"), `not JSON: line 1, column 1: invalid character 'x' looking for beginning of value`},
		{"pointers in a loop", loop, strings.Repeat("self.", 12) + "… (1249 characters): nested too deeply, or contains itself"},
		{"list in itself", list, ""},
		{"map in itself", m, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, err := FromGo(test.x)
			require.Error(t, err)
			assert.Nil(t, v)
			if test.want == "" {
				assert.ErrorIs(t, err, errDeep)
				return
			}
			assert.EqualError(t, err, test.want)
		})
	}
	_, err := FromGo([]any{broken{}})
	assert.ErrorIs(t, err, errBroken)
}

// What FromGo takes, ToGo gives back.
func TestGoRoundTrip(t *testing.T) {
	n, s := 7, "x"
	when := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	full := tagged{A: 1, B: "b", C: &n, E: true, F: []int{1}, G: map[string]int{"x": 1}, H: []any{"y", nil, map[string]any{"z": int64(1), "f": 1.0}},
		I: when, K: -5, L: "quoted", M: [2]bool{true}, N: &s, O: map[int]string{10: "b", -9: "a"},
		P: json.RawMessage(`{"raw":[1]}`), Q: []Inner{{"q", 1}}, R: netip.MustParseAddr("::1"),
		S: map[netip.Addr]u8{netip.MustParseAddr("10.0.0.1"): 1}, U: "7"}
	backTo(t, full)
	backTo(t, tagged{})
	backTo(t, embeds{Inner: Inner{Name: "n"}, Other: &Other{Solo: true}, hidden: hidden{2}, Deep: "outer"})
	backTo(t, self{Self: &self{N: 2}, N: 1})
	backTo(t, struct {
		B []byte
		F float32
		U uint64
		I *big.Int
		V big.Int
		P **int
		E any
		X V
		D Dict
		L []V
		R Ref
		A map[uint8][]byte
	}{[]byte{0xff}, 0.5, math.MaxUint64, huge("-18446744073709551616"), *big.NewInt(3), ptr(ptr(1)), []byte("b"), []V{Ref{"r"}, int64(1)},
		obj(map[string]V{"k": Blob{Size: 1}}), []V{Output{}}, Ref{"a"}, map[uint8][]byte{255: {1}}})
	backTo(t, Failure{Type: "exit", Data: int64(1)})
	backTo(t, []*Failure{{Type: "exit"}, nil})
	backTo(t, map[string]V{"a": nil, "b": 1.5})
	backTo(t, time.Minute)
	backTo(t, json.Number("1.5"))
	backTo(t, inherited{when})
}

func ptr[T any](v T) *T { return &v }

func backTo[T any](t *testing.T, x T) {
	t.Helper()
	v, err := FromGo(x)
	require.NoError(t, err)
	v, err = Decode(Encode(v))
	require.NoError(t, err)
	var got T
	require.NoError(t, ToGo(v, &got))
	assert.Equal(t, x, got)
}

func TestToGo(t *testing.T) {
	t.Run("other letter case", func(t *testing.T) {
		var x struct{ Name, NAME string }
		require.NoError(t, ToGo(parse(t, `{"name":"a","NAME":"b"}`), &x))
		assert.Equal(t, struct{ Name, NAME string }{"a", "b"}, x)
	})
	t.Run("unknown fields are left out", func(t *testing.T) {
		x := Inner{Deep: 3}
		require.NoError(t, ToGo(parse(t, `{"name":"a","more":1}`), &x))
		assert.Equal(t, Inner{"a", 3}, x)
	})
	t.Run("null", func(t *testing.T) {
		x := struct {
			I int
			P *int
			S []int
			M map[string]int
			A any
			T time.Time
			B netip.Addr
		}{1, ptr(1), []int{1}, map[string]int{}, 1, time.Unix(1, 0), netip.IPv6Loopback()}
		want := x
		want.P, want.S, want.M, want.A = nil, nil, nil, nil
		require.NoError(t, ToGo(parse(t, `{"I":null,"P":null,"S":null,"M":null,"A":null,"T":null,"B":null}`), &x))
		assert.Equal(t, want, x)
	})
	t.Run("base64", func(t *testing.T) {
		var b []byte
		require.NoError(t, ToGo("/w==", &b))
		assert.Equal(t, []byte{0xff}, b)
	})
	t.Run("whole numbers as floats", func(t *testing.T) {
		var f []float64
		require.NoError(t, ToGo([]V{int64(1), int64(1 << 53), huge("18446744073709551616")}, &f))
		assert.Equal(t, []float64{1, 1 << 53, 1 << 64}, f)
	})
	t.Run("what is stored is not shared", func(t *testing.T) {
		v := []V{[]byte("a"), huge("18446744073709551616"), []byte("a"), huge("18446744073709551616")}
		x := struct {
			A, B any
			C    []byte
			D    *big.Int
		}{}
		require.NoError(t, ToGo(obj(map[string]V{"A": v[0], "B": v[1], "C": v[2], "D": v[3]}), &x))
		x.A.([]byte)[0], x.C[0] = 'b', 'b'
		x.B.(*big.Int).SetInt64(1)
		x.D.SetInt64(1)
		assert.Equal(t, `[{"$bytes":"YQ=="},18446744073709551616,{"$bytes":"YQ=="},18446744073709551616]`, string(JSON(v)))
	})
}

func TestToGoRefuses(t *testing.T) {
	type unset struct{ *hidden }
	for _, test := range []struct {
		name, v string
		dst     any
		want    string
	}{
		{"string for a number", `{"a":"1"}`, new(tagged), `a: a string does not fit a int`},
		{"fraction", `{"a":1.5}`, new(tagged), `a: a number does not fit a int`},
		{"whole float", `{"a":1.0}`, new(tagged), `a: a number does not fit a int`},
		{"too large", `[300]`, new([]int8), `[0]: 300 does not fit a int8`},
		{"too large without a sign", `[70000]`, new([]uint16), `[0]: 70000 does not fit a uint16`},
		{"negative", `[-1]`, new([]uint), `[0]: -1 does not fit a uint`},
		{"beyond 64 bits", `18446744073709551616`, new(int64), `18446744073709551616 does not fit a int64`},
		{"beyond the digits of a float", `9007199254740993`, new(float64), `9007199254740993 does not fit a float64`},
		{"beyond the digits of a short float", `16777217`, new(float32), `16777217 does not fit a float32`},
		{"beyond a short float", `1e300`, new(float32), `1e+300 does not fit a float32`},
		{"list for an object", `[]`, new(map[string]int), `a list does not fit a map[string]int`},
		{"list for a struct", `{"q":[[]]}`, new(tagged), `q[0]: a list does not fit a value.Inner`},
		{"object for a list", `{}`, new([]int), `an object does not fit a []int`},
		{"object for an array", `{}`, new([1]int), `an object does not fit a [1]int`},
		{"other length", `[1]`, new([2]int), `a list of 1 does not fit a [2]int`},
		{"number for a string", `1`, new(string), `an integer does not fit a string`},
		{"number for a boolean", `1`, new(bool), `an integer does not fit a bool`},
		{"string for json.Number", `"1"`, new(json.Number), ``},
		{"object for an interface", `{}`, new(error), `an object does not fit a error`},
		{"number for bytes", `1`, new([]byte), `an integer does not fit a []uint8`},
		{"no base64", `"?"`, new([]byte), `illegal base64 data at input byte 0`},
		{"key", `{"a":1}`, new(map[int]int), `a: strconv.ParseInt: parsing "a": invalid syntax`},
		{"large key", `{"256":1}`, new(map[uint8]int), `["256"]: strconv.ParseUint: parsing "256": value out of range`},
		{"key of another kind", `{"a":1}`, new(map[bool]int), `a: a bool can't be a key`},
		{"UnmarshalJSON", `{"a":1}`, new(map[string]broken), `a: is broken`},
		{"UnmarshalText", `["a"]`, new([]brokenText), `[0]: is broken`},
		{"UnmarshalText of a key", `{"a":1}`, new(map[brokenText]int), `a: is broken`},
		{"text of another kind", `[1]`, new([]brokenText), `[0]: an integer does not fit a value.brokenText`},
		{"quoted", `{"k":"x"}`, new(tagged), `k: not JSON: line 1, column 1: invalid character 'x' looking for beginning of value`},
		{"failure", `{"type":1}`, new(Failure), `type: is an integer, not a string`},
		{"channel", `1`, new(chan int), `an integer does not fit a chan int`},
		{"unexported pointer", `{"Seen":1}`, new(unset), `Seen: a field of the unexported value.hidden can't be set`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := ToGo(parse(t, test.v), test.dst)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			var bad *Error
			require.ErrorAs(t, err, &bad)
			assert.EqualError(t, err, test.want)
		})
	}
}
