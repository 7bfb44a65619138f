package repo

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMayConvert(t *testing.T) {
	cases := []struct {
		name            string
		global, top, in string // in: of folder "in"
		yes, no         []string
	}{
		{"nothing", "", "", "", nil, []string{"a", "in/a"}},
		{"filter", "", "*.psd filter=lfs diff=lfs -text\n", "", []string{"a.psd", "in/a.psd", "in/sub/x.psd"}, []string{"a.txt"}},
		{"ident and encoding", "*.c ident\n", "", "*.w working-tree-encoding=UTF-16\n",
			[]string{"a.c", "in/a.c", "in/a.w"}, []string{"a.w", "in/a.h"}},
		{"others", "* text=auto eol=lf -filter !ident diff merge=x binary\n", "", "", nil, []string{"a", "in/a"}},
		{"anchored", "", "/in/*.x filter=a\n/b filter=a\n", "", []string{"in/q.x", "b"}, []string{"q.x", "in/b", "in/sub/q.x"}},
		{"below a folder", "", "in/** filter=a\n", "", []string{"in/a", "in/sub/b"}, []string{"a"}},
		{"folders only", "", "in/ filter=a\n", "", nil, []string{"in/a", "in"}},
		{"macro", "", "[attr]big filter=lfs -text\n*.bin big\n*.txt -big\n", "", []string{"a.bin", "in/a.bin"}, []string{"a.txt"}},
		{"macro used before and elsewhere", "*.q two\n", "[attr]two one\n[attr]one two ident\n", "*.z one\n",
			[]string{"a.q", "in/a.z"}, []string{"a.z"}},
		{"macro below the root", "", "", "[attr]big filter=lfs\n*.bin big\n", nil, []string{"in/a.bin"}},
		{"macros in a circle", "", "[attr]one two\n[attr]two one text\n*.x one\n", "", nil, []string{"a.x"}},
		{"quoted", "", "\"a b\\\"\" filter=x\n", "", []string{"a b\"", "in/a b\""}, []string{"a", "b"}},
		{"comments and space", "", "\xef\xbb\xbf# c\n  \t*.x\t filter=a \r\n#*.y filter=a\n", "", []string{"a.x"}, []string{"a.y"}},
		{"negative", "", "!*.x filter=a\n", "", nil, []string{"a.x"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			top := AttrRoot(AttributeOptions{}, []byte(c.global)).WithFile([]byte(c.top))
			in := top.Enter("in", []byte(c.in))
			sub := in.Enter("sub", nil)
			may := func(path string) bool {
				switch {
				case len(path) > 7 && path[:7] == "in/sub/":
					return sub.MayConvert(path[7:])
				case len(path) > 3 && path[:3] == "in/":
					return in.MayConvert(path[3:])
				}
				return top.MayConvert(path)
			}
			g := newGit(t)
			g.write("global", c.global)
			g.write(".gitattributes", c.top)
			g.write("in/.gitattributes", c.in)
			oracle := func(path string) bool {
				out := g.run("-c", "core.attributesFile="+g.dir+"/global", "check-attr", "-z", "filter", "ident",
					"working-tree-encoding", "--", path)
				return converts(out)
			}
			for _, path := range c.yes {
				assert.True(t, may(path), path)
				assert.True(t, oracle(path), "git: %s", path)
			}
			for _, path := range c.no {
				assert.False(t, may(path), path)
				assert.False(t, oracle(path), "git: %s", path)
			}
		})
	}
	assert.True(t, AttrRoot(AttributeOptions{FoldCase: true}, []byte("*.PSD filter=x")).MayConvert("a.psd"))
	assert.False(t, AttrRoot(AttributeOptions{}, []byte("*.PSD filter=x")).MayConvert("a.psd"))
}

// converts reads check-attr -z: path, attribute, value.
func converts(out string) bool {
	fields := splitNUL(out)
	for i := 2; i < len(fields); i += 3 {
		if fields[i] != "unspecified" && fields[i] != "unset" {
			return true
		}
	}
	return false
}
