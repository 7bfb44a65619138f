package repo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// Random lines over a small alphabet, so that quotes, escapes and headers
// meet: what git reads we read, and what it dies of we warn of.
func TestConfigAgainstGit(t *testing.T) {
	g := newGit(t)
	piece := rapid.SampledFrom([]string{"a", "B", "x-1", " ", "\t", "=", "\"", "\\", "\\\\", "\\\"", "\\n", "\\t", "#", ";",
		"\n", "\r\n", "[c]", "[c \"D\"]", "[", "]", "a = b", "\nb = ", "true", "\xff", "\\\n", "."})
	rapid.Check(t, func(t *rapid.T) {
		data := "[s]\n" + strings.Join(rapid.SliceOfN(piece, 0, 24).Draw(t, "pieces"), "")
		g.write("config", data)
		out, err := g.try("config", "-z", "--list", "-f", "config")
		got, bad := parsed(data)
		if err != nil {
			if bad == 0 {
				t.Fatalf("%q: git says %q, we read %q", data, out, got)
			}
			return
		}
		// Git 2.39 makes a space of every white byte in a value.
		blank := strings.NewReplacer("\t", " ", "\r", " ")
		for i, s := range got {
			if key, value, ok := strings.Cut(s, "\n"); ok && !strings.Contains(data, "\\t") {
				got[i] = key + "\n" + blank.Replace(value)
			}
		}
		want := strings.Join(splitNUL(out), "\x00")
		if bad != 0 || blank.Replace(want) != blank.Replace(strings.Join(got, "\x00")) {
			t.Fatalf("%q: %d bad\ngit %q\ngot %q", data, bad, want, got)
		}
	})
}

// Whatever git converts, we say may be converted.
func TestAttributesAgainstGit(t *testing.T) {
	g := newGit(t)
	pattern := rapid.SampledFrom([]string{"*", "a", "*.x", "/a", "d/*", "d/**", "**/a", "d/", "[a-b]", "\"a\"", "d/e/a.x", "?.x"})
	attr := rapid.SampledFrom([]string{"filter=f", "-filter", "!filter", "ident", "-ident", "working-tree-encoding=UTF-16",
		"text", "one", "two", "-one", "binary"})
	line := rapid.Custom(func(t *rapid.T) string {
		head := pattern.Draw(t, "pattern")
		if rapid.IntRange(0, 4).Draw(t, "macro") == 0 {
			head = "[attr]" + rapid.SampledFrom([]string{"one", "two"}).Draw(t, "name")
		}
		return head + " " + strings.Join(rapid.SliceOfN(attr, 1, 2).Draw(t, "attrs"), " ") + "\n"
	})
	file := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 3).Draw(t, "lines"), "")
	})
	paths := []string{"a", "b", "a.x", "d/a", "d/b.x", "d/e/a", "d/e/a.x", "d/e/c"}
	yes, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		info, top, d, e := file.Draw(t, "info"), file.Draw(t, "top"), file.Draw(t, "d"), file.Draw(t, "e")
		for name, data := range map[string]string{".git/info/attributes": info, ".gitattributes": top,
			"d/.gitattributes": d, "d/e/.gitattributes": e} {
			g.write(name, data)
		}
		root := AttrRoot(AttributeOptions{}, []byte(info)).WithFile([]byte(top))
		dirs := map[string]*Attributes{"": root}
		dirs["d/"] = root.Enter("d", []byte(d))
		dirs["d/e/"] = dirs["d/"].Enter("e", []byte(e))
		out := g.run(append([]string{"check-attr", "-z", "filter", "ident", "working-tree-encoding", "--"}, paths...)...)
		fields := splitNUL(out)
		for i, path := range paths {
			slash := strings.LastIndexByte(path, '/') + 1
			may := dirs[path[:slash]].MayConvert(path[slash:])
			if converts(strings.Join(fields[i*9:i*9+9], "\x00")) && !may {
				t.Fatalf("%s is converted\ninfo %q\ntop %q\nd %q\ne %q", path, info, top, d, e)
			}
			all++
			if may {
				yes++
			}
		}
	})
	assert.Less(t, yes, all, "always yes would pass the test too")
}
