package value

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func huge(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		panic(digits)
	}
	return n
}

func obj(m map[string]V) Dict { return NewDict(m) }

// The encodings are in every ledger: a change here is a new scheme.
func TestEncode(t *testing.T) {
	hash := [32]byte{1, 2, 3}
	zeros := strings.Repeat("00", 29)
	for _, test := range []struct {
		name string
		v    V
		want string
	}{
		{"null", nil, "6e"},
		{"false", false, "66"},
		{"true", true, "74"},
		{"integer", int64(1), "69" + "0000000000000001"},
		{"negative", int64(-2), "69" + "fffffffffffffffe"},
		{"least integer of 64 bits", int64(math.MinInt64), "69" + "8000000000000000"},
		{"next", huge("9223372036854775808"), "2b" + "08" + "8000000000000000"},
		{"next below", huge("-9223372036854775809"), "2d" + "08" + "8000000000000001"},
		{"small in a large type", big.NewInt(1), "69" + "0000000000000001"},
		{"float", 1.0, "64" + "3ff0000000000000"},
		{"string", "aé", "73" + "03" + "61c3a9"},
		{"string of any bytes", "\xff\x00", "73" + "02" + "ff00"},
		{"bytes", []byte("a"), "62" + "01" + "61"},
		{"no bytes", []byte(nil), "62" + "00"},
		{"long string", strings.Repeat("x", 200), "73" + "c801" + strings.Repeat("78", 200)},
		{"list", []V{nil, []V{}}, "6c" + "02" + "6e" + "6c00"},
		{"object", obj(map[string]V{"b": nil, "a": true}), "6d" + "02" + "0161" + "74" + "0162" + "6e"},
		{"task", Ref{"p0.api/test"}, "72" + "0b" + hex.EncodeToString([]byte("p0.api/test"))},
		{"output", Output{hash}, "6f" + "010203" + zeros},
		{"interned bytes", Blob{Hash: hash, Size: 5000}, "42" + "010203" + zeros + "0000000000001388"},
		{"interned string", Blob{Hash: hash, Size: 5000, Text: true}, "54" + "010203" + zeros + "0000000000001388"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Encode(test.v)
			assert.Equal(t, test.want, hex.EncodeToString(got))
			v, err := Decode(got)
			require.NoError(t, err)
			assert.True(t, Equal(test.v, v) || test.name == "small in a large type", "%#v came back as %#v", test.v, v)
			assert.Equal(t, Hash(got), HashOf(test.v))
		})
	}
}

// What looks alike and is not the same.
func TestDistinct(t *testing.T) {
	values := []V{
		nil, false, int64(0), 0.0, math.Copysign(0, -1), "", []byte{}, []V{}, Dict{}, Ref{}, Output{}, Blob{}, Blob{Text: true},
		int64(1), 1.0, "1", []byte("1"), []V{int64(1)}, []V{1.0}, true,
		[]V{"ab", "c"}, []V{"a", "bc"}, []V{"abc"}, []V{[]V{"a"}, "b"}, []V{[]V{"a", "b"}}, []V{[]V{}, []V{}},
		obj(map[string]V{"a": "b"}), []V{"a", "b"}, obj(map[string]V{"ab": ""}), obj(map[string]V{"a": nil}),
		Ref{"a"}, "a", huge("18446744073709551616"), huge("-18446744073709551616"), 18446744073709551616.0,
	}
	for i, a := range values {
		for j, b := range values {
			assert.Equal(t, i == j, bytes.Equal(Encode(a), Encode(b)), "encodings of %#v and %#v", a, b)
			assert.Equal(t, i == j, Equal(a, b), "%#v and %#v", a, b)
		}
	}
}

// Only what Encode writes is read.
func TestDecodeRefuses(t *testing.T) {
	deep := strings.Repeat("6c01", 2*deepest+1) + "6e"
	for _, test := range []struct{ name, hex, want string }{
		{"nothing", "", "cut short"},
		{"a tag from the future", "7a", "unknown tag 0x7a"},
		{"more than a value", "6e6e", "1 bytes too many"},
		{"half an integer", "6900", "cut short"},
		{"small integer as a large one", "2b0101", "an integer in too many bytes"},
		{"no digits", "2b00", "an integer in too many bytes"},
		{"leading zero", "2b09008000000000000000", "an integer in too many bytes"},
		{"small negative as a large one", "2d088000000000000000", "an integer in too many bytes"},
		{"NaN", "647ff8000000000001", "NaN is not a number"},
		{"infinity", "647ff0000000000000", "+Inf is not a number"},
		{"long length", "738100" + "61", "a bad length"},
		{"endless length", "73ffffffffffffffffffff01", "a bad length"},
		{"string cut short", "730261", "cut short"},
		{"more items than bytes", "6cffffffffffffffff7f6e", "cut short"},
		{"keys out of order", "6d0201626e01616e", "keys out of order"},
		{"a key twice", "6d0201616e01616e", "keys out of order"},
		{"a key that is not text", "6d0101ff6e", "a key that is not text"},
		{"an object cut short", "6d010161", "cut short"},
		{"half a hash", "6f00", "cut short"},
		{"a blob of a negative size", "42" + strings.Repeat("00", 32) + "ffffffffffffffff", "a negative size"},
		{"too deep", deep, "nested too deeply"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := hex.DecodeString(test.hex)
			require.NoError(t, err)
			v, err := Decode(b)
			require.ErrorIs(t, err, ErrEncoding)
			assert.ErrorContains(t, err, test.want)
			assert.Nil(t, v)
		})
	}
}

func TestDecodeKeepsNothing(t *testing.T) {
	b := Encode([]V{"abc", []byte("def"), obj(map[string]V{"k": int64(1)})})
	v, err := Decode(b)
	require.NoError(t, err)
	clear(b)
	assert.Equal(t, `["abc",{"$bytes":"ZGVm"},{"k":1}]`, string(JSON(v)))
}

func FuzzDecode(f *testing.F) {
	for _, v := range []V{nil, int64(1), 1.5, "a", []V{true, []byte("x")}, obj(map[string]V{"a": huge("99999999999999999999")}), Ref{"a"}, Output{}, Blob{}} {
		f.Add(Encode(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Decode(b)
		if err != nil {
			return
		}
		if again := Encode(v); !bytes.Equal(b, again) {
			t.Fatalf("%x is read as %#v, which is written %x", b, v, again)
		}
		JSON(v)
	})
}

// values are random values, with those that only exist inside when all.
func values(all bool) *rapid.Generator[V] {
	text := rapid.StringOf(rapid.RuneFrom([]rune{'a', 'b', '"', '\\', '\n', 0, 0x7f, 'é', '\u2028', '😀'}))
	leaves := []*rapid.Generator[V]{
		rapid.Just[V](nil),
		rapid.Map(rapid.Bool(), func(b bool) V { return b }),
		rapid.Map(rapid.Int64(), func(n int64) V { return n }),
		rapid.Map(rapid.Int64(), func(n int64) V { return integer(new(big.Int).Mul(big.NewInt(n), big.NewInt(1<<40))) }),
		rapid.Map(rapid.Float64(), func(f float64) V { return f }),
		rapid.Map(text, func(s string) V { return s }),
	}
	if all {
		leaves = append(leaves,
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) V { return b }),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) V { return string(b) }),
			rapid.Map(text, func(s string) V { return Ref{s} }),
			rapid.Map(rapid.Int64Min(0), func(n int64) V { return Blob{Size: n, Text: n%2 == 0} }),
		)
	}
	leaf := rapid.OneOf(leaves...)
	var nested func(depth int) *rapid.Generator[V]
	nested = func(depth int) *rapid.Generator[V] {
		if depth == 0 {
			return leaf
		}
		inner := nested(depth - 1)
		return rapid.OneOf(leaf,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []V) V { return slices.Clone(l) }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 4), func(m map[string]V) V { return NewDict(m) }))
	}
	return nested(3)
}

func TestRoundTrips(t *testing.T) {
	t.Run("encoding", rapid.MakeCheck(func(t *rapid.T) {
		v := values(true).Draw(t, "v")
		back, err := Decode(Encode(v))
		require.NoError(t, err)
		require.True(t, Equal(v, back), "%#v came back as %#v", v, back)
	}))
	t.Run("json", rapid.MakeCheck(func(t *rapid.T) {
		v := values(false).Draw(t, "v")
		back, err := FromJSON(JSON(v))
		require.NoError(t, err)
		require.True(t, Equal(v, back), "%s came back as %#v", JSON(v), back)
	}))
	t.Run("starlark", rapid.MakeCheck(func(t *rapid.T) {
		v := values(false).Draw(t, "v")
		back, err := FromStarlark(ToStarlark(v), nil, nil)
		require.NoError(t, err)
		require.True(t, Equal(v, back), "%s came back as %s", JSON(v), JSON(back))
	}))
	t.Run("go", rapid.MakeCheck(func(t *rapid.T) {
		v := values(false).Draw(t, "v")
		var x any
		require.NoError(t, ToGo(v, &x))
		back, err := FromGo(x)
		require.NoError(t, err)
		require.True(t, Equal(v, back), "%s came back as %s", JSON(v), JSON(back))
	}))
	t.Run("differences", rapid.MakeCheck(func(t *rapid.T) {
		a, b := values(true).Draw(t, "a"), values(true).Draw(t, "b")
		require.Empty(t, Diff(a, a))
		require.Equal(t, Equal(a, b), len(Diff(a, b)) == 0)
	}))
}

// What is handed something else than a value says so at once.
func TestAlien(t *testing.T) {
	for name, f := range map[string]func(){
		"encode":                  func() { Encode(1) },
		"NaN":                     func() { Encode(math.NaN()) },
		"json":                    func() { JSON(map[string]any{}) },
		"equal":                   func() { Equal(1, 1) },
		"starlark":                func() { ToStarlark(1) },
		"a reference in starlark": func() { ToStarlark([]V{Ref{"a"}}) },
		"a key twice":             func() { DictOf(Entry{"a", nil}, Entry{"a", nil}) },
		"nowhere to store":        func() { _ = ToGo(nil, 1) },
	} {
		t.Run(name, func(t *testing.T) { assert.PanicsWithValue(t, mustBug{}, asBug(f)) })
	}
}

type mustBug struct{}

// asBug turns a panic that confesses a bug into mustBug.
func asBug(f func()) func() {
	return func() {
		defer func() {
			if s, ok := recover().(string); ok && strings.HasPrefix(s, "BUG: ") {
				panic(mustBug{})
			}
		}()
		f()
	}
}

var arguments = obj(map[string]V{
	"command": "go test ./...", "env": obj(map[string]V{"GOFLAGS": "-count=1"}), "any_exit": false,
	"inputs": []V{Ref{"build~0123456789ab"}, int64(3)},
})

func BenchmarkHashOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		HashOf(arguments)
	}
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	encoded := Encode(arguments)
	for b.Loop() {
		if _, err := Decode(encoded); err != nil {
			b.Fatal(err)
		}
	}
}
