package value

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// handle is a task's handle, as the engine might have it.
type handle struct{ task string }

func (h handle) String() string        { return "handle " + h.task }
func (h handle) Type() string          { return "task" }
func (h handle) Freeze()               {}
func (h handle) Truth() starlark.Bool  { return true }
func (h handle) Hash() (uint32, error) { return 1, nil }

func own(v starlark.Value) (Ref, bool) {
	h, ok := v.(handle)
	return Ref{h.task}, ok && h.task != "foreign"
}

// star is what an expression comes to. Before it stands what it needs.
func star(t *testing.T, program string) starlark.Value {
	t.Helper()
	globals, err := starlark.ExecFileOptions(&syntax.FileOptions{Set: true, While: true, TopLevelControl: true},
		&starlark.Thread{}, "x.star", program, starlark.StringDict{
			"struct": starlark.NewBuiltin("struct", starlarkstruct.Make),
			"task": starlark.NewBuiltin("task", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
				return handle{string(args[0].(starlark.String))}, nil
			}),
		})
	require.NoError(t, err)
	return globals["x"]
}

func TestFromStarlark(t *testing.T) {
	for _, test := range []struct{ program, want string }{
		{`x = None`, `null`},
		{`x = [True, False]`, `[true,false]`},
		{`x = [1, -1, 1.0, 1 << 70, -(1 << 63), 1e3]`, `[1,-1,1.0,1180591620717411303424,-9223372036854775808,1000.0]`},
		{`x = ["a", b"\xff"]`, `["a",{"$bytes":"/w=="}]`},
		{`x = (1, [2], ())`, `[1,[2],[]]`},
		{`x = {"b": 1, "a": {"d": 1, "c": None}}`, `{"a":{"c":null,"d":1},"b":1}`},
		{`x = {}`, `{}`},
		{`x = set([3, 1, 2, -1])`, `[1,2,3,-1]`},
		{`x = [set(["b", "a"]), set(["a", "b"])]`, `[["a","b"],["a","b"]]`},
		{`x = struct(b = 1, a = struct())`, `{"a":{},"b":1}`},
		{`x = {"in": [task("p0.api/test"), 1]}`, `{"in":[{"$task":"p0.api/test"},1]}`},
		{`x = ["x" * 4096]`, `["` + strings.Repeat("x", 4096) + `"]`},
	} {
		t.Run(test.program, func(t *testing.T) {
			v, err := FromStarlark(star(t, test.program), own, nil)
			require.NoError(t, err)
			assert.Equal(t, test.want, string(JSON(v)))
		})
	}
}

func TestFromStarlarkRefuses(t *testing.T) {
	for _, test := range []struct{ program, want string }{
		{`x = {"env": {"KEY": len}}`, `args.env.KEY: a function is not data`},
		{"def f():\n    pass\nx = [1, f]", `args[1]: a function is not data`},
		{`x = (lambda: 1)`, `args: a function is not data`},
		{`x = {"a": range(3)}`, `args.a: a range is not data: make a list of it`},
		{`x = "abc".elems()`, `args: a string.elems is not data: make a list of it`},
		{`x = [task("foreign")]`, `args[0]: a task is not data`},
		{`x = struct(a = len)`, `args.a: a function is not data`},
		{`x = set([len])`, `args[0]: a function is not data`},
		{`x = {"a": {1: 2}}`, `args.a: a key must be a string, not 1`},
		{`x = {"a": float("nan")}`, `args.a: NaN is not a number`},
		{`x = float("inf")`, `args: +Inf is not a number`},
		{"x = []\nx.append(x)", `args` + strings.Repeat("[0]", 18) + `[0… (1507 characters): nested too deeply, or contains itself`},
		{"x = {}\nx[\"me\"] = [x]", `args` + strings.Repeat(".me[0]", 9) + `.m… (1507 characters): nested too deeply, or contains itself`},
	} {
		t.Run(test.program, func(t *testing.T) {
			_, err := FromStarlark(star(t, test.program), own, nil)
			var bad *Error
			require.ErrorAs(t, err, &bad)
			assert.EqualError(t, In("args", err), test.want)
		})
	}
	_, err := FromStarlark(starlark.NewBuiltin("b", nil), nil, nil)
	assert.Error(t, err, "without handles")
	bad := starlark.NewDict(1)
	require.NoError(t, bad.SetKey(starlark.String("\xff"), starlark.None))
	_, err = FromStarlark(bad, nil, nil)
	assert.EqualError(t, err, `the key "\xff" is not UTF-8 text`)
}

// The same large value is interned the same from Starlark as later.
func TestFromStarlarkInterns(t *testing.T) {
	x := star(t, `x = ["x" * 5000, bytes("x" * 5000), set(["y" * 5000]), {"k": "x" * 4096}]`)
	kept := keeper{}
	got, err := FromStarlark(x, nil, kept.intern)
	require.NoError(t, err)
	assert.Len(t, kept, 2)

	plain, err := FromStarlark(x, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, Intern(plain, keeper{}.intern), got)
	back, err := Expand(got, kept.load)
	require.NoError(t, err)
	assert.Equal(t, plain, back)
}

func TestToStarlark(t *testing.T) {
	v := obj(map[string]V{"n": nil, "b": true, "i": int64(-1), "big": huge("18446744073709551616"), "f": 1.0,
		"s": "a\xff", "y": []byte{0xff}, "l": []V{"x"}, "d": obj(map[string]V{"k": int64(1)})})
	x := ToStarlark(v)
	assert.Equal(t, `{"b": True, "big": 18446744073709551616, "d": {"k": 1}, "f": 1.0, "i": -1, "l": ["x"], "n": None, "s": "a\xff", "y": b"\xff"}`, x.String())

	back, err := FromStarlark(x, nil, nil)
	require.NoError(t, err)
	assert.True(t, Equal(v, back))

	for _, key := range []string{"l", "d"} {
		inner, _, err := x.(*starlark.Dict).Get(starlark.String(key))
		require.NoError(t, err)
		switch inner := inner.(type) {
		case *starlark.List:
			assert.ErrorContains(t, inner.Append(starlark.None), "frozen")
		case *starlark.Dict:
			assert.ErrorContains(t, inner.SetKey(starlark.None, starlark.None), "frozen")
		default:
			t.Fatalf("%s is a %s", key, inner.Type())
		}
	}
	for _, inside := range []V{Ref{"a"}, Output{}, Blob{}} {
		assert.Panics(t, func() { ToStarlark(inside) }, fmt.Sprintf("%T", inside))
	}
}

func BenchmarkFromStarlark(b *testing.B) {
	x := ToStarlark(arguments.Without("inputs"))
	b.ReportAllocs()
	for b.Loop() {
		v, err := FromStarlark(x, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		HashOf(v)
	}
}
