package ignore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each case is rules and paths: "+path" is ignored, "-path" is not, and a
// final slash marks a directory. Rules stand in the root's .gitignore but for
// lines "== name", which begin another file. Git is asked the same.
var cases = []struct {
	name  string
	fold  bool
	rules string
	paths string // separated by blanks; %20 is a blank
}{
	// The cases that go-git was measured with.
	{name: "info/exclude", rules: "== info\n*.log\n", paths: "+a.log +d/a.log -a.txt"},
	{name: "core.excludesFile", rules: "== excludes\n*.swp\n", paths: "+a.swp -a"},
	{name: "core.excludesFile gives way to info/exclude", rules: "== excludes\n*.swp\n== info\n!keep.swp\n", paths: "+a.swp -keep.swp"},
	{name: "info/exclude gives way to .gitignore", rules: "!a.log\n== info\n*.log\n", paths: "-a.log +b.log"},
	{name: "nothing is re-included below an ignored directory", rules: "out/\n!out/keep\n", paths: "+out/ +out/keep +out/x"},
	{name: "re-included below a starred directory", rules: "out/*\n!out/sub/\n", paths: "-out/ +out/a -out/sub/ -out/sub/a"},
	{name: "stars at any depth", rules: "a/**/*\n!a/b\n", paths: "-a/ -a/b +a/c +a/d/ +a/d/b"},
	{name: "byte order mark", rules: "\ufeffa\nb\n", paths: "+a +b"},
	{name: "core.ignoreCase", fold: true, rules: "Build/\n*.LOG\n", paths: "+build/ +BUILD/ +x.log +x.Log -build"},
	{name: "negated bracket", rules: "x[!a]\ny[^a]\n", paths: "-xa +xb -ya +yb"},
	{name: "two stars inside a name", rules: "foo**bar\n", paths: "+foobar +fooxbar +d/fooxbar -foo/bar"},
	{name: "escapes", rules: "\\#a\n\\!b\nc\\*\n\\d\n", paths: "+#a +!b +c* -cx +d -a -b"},
	{name: "nested", rules: "*.o\n== d/.gitignore\n!keep.o\n/here\n", paths: "+a.o -d/keep.o +d/x/a.o -d/x/keep.o +d/here -here -d/x/here"},

	{name: "last line wins", rules: "a\n!a\na*\n!ab\n", paths: "+a -ab +abc"},
	{name: "deeper file wins", rules: "a\n== d/.gitignore\n!a\n== d/e/.gitignore\na\n", paths: "+a -d/a +d/e/a -d/f/a"},
	{name: "comment", rules: "#a\n #b\n", paths: "-#a -a -b +%20#b"},
	{name: "blank lines", rules: "\n   \n\r\n/\n//\n!\n", paths: "-a -a/ -%20"},
	{name: "trailing blanks", rules: "a  \nb\\ \nc\\  \nd \\\n", paths: "+a +b%20 -b +c%20 -c -d -d%20"},
	{name: "carriage return", rules: "a\r\nb\r\r\nc \r\nd\r", paths: "+a -b +b\r +c +d"},
	{name: "no final line end", rules: "a\nb", paths: "+a +b"},
	{name: "nul ends a line", rules: "a\x00b\nc\n", paths: "+a -ab +c"},
	{name: "tab is no blank", rules: "a\t\n", paths: "-a +a\t"},
	{name: "directories only", rules: "a/\n/b/c/\n", paths: "+a/ -d/a +d/e/a/ +b/c/ -x/b/c/"},
	{name: "a file below an ignored directory", rules: "a/\n", paths: "+a/x +a/x/ +a/x/y"},
	{name: "anchored by a leading slash", rules: "/a\n", paths: "+a -d/a"},
	{name: "anchored by an inner slash", rules: "a/b\n", paths: "+a/b -d/a/b"},
	{name: "anchored in its own directory", rules: "== d/.gitignore\n/a\nb/c\n", paths: "+d/a -a -d/e/a +d/b/c -b/c"},
	{name: "leading stars", rules: "**/a\n**/b/c\n", paths: "+a +d/a +d/e/a +b/c +d/e/b/c -c"},
	{name: "trailing stars", rules: "a/**\n", paths: "-a/ +a/b +a/b/ +a/b/c -b/a/c"},
	{name: "middle stars", rules: "a/**/b\n", paths: "+a/b +a/c/b +a/c/d/b -b -c/a/b"},
	{name: "middle stars twice", rules: "a/**/b/**/c\n", paths: "+a/b/c +a/x/b/c +a/b/x/c +a/b/b/x/b/c -a/c"},
	{name: "stars run together", rules: "a/***/b\n**/**/c/d\n", paths: "+a/b +a/x/y/b +c/d +x/y/c/d"},
	{name: "stars before an escaped slash", rules: "**\\/a\n", paths: "-a +d/a +d/e/a"},
	{name: "stars beside other bytes", rules: "/a**/b\n/c/**d\n", paths: "+ax/b -a/x/b +c/d +c/xd -c/x/d -axb"},
	{name: "star stays in a name", rules: "a/*/c\nd/*\n", paths: "+a/b/c -a/c -a/b/b/c +d/x"},
	{name: "question mark", rules: "a?\nb?c/d\n", paths: "+ab -a -abc -b/c/d +bxc/d"},
	{name: "doubled slash", rules: "a//b\n//c\n", paths: "-a/b -c"},
	{name: "bracket", rules: "a[b-d]\n[]x]\n[]-]y\n[a-]z\n", paths: "+ab +ad -ae +] +x +-y +]y +-z +az -bz"},
	{name: "bracket with escape", rules: "[\\]a]\n[\\a-\\c]x\n[\\\\]y\n", paths: "+] +a +bx +\\y"},
	{name: "bracket never matches a slash", rules: "a[/]b\nc[!x]d\n[x/y]z\n", paths: "-a/b -c/d +cyd +xz -d/xz"},
	{name: "bracket backwards", rules: "[c-a]\n", paths: "-a -b +c"},
	{name: "range then dash", rules: "[a-c-e]\n", paths: "+b +- +e -d"},
	{name: "posix classes", rules: "[[:digit:]]\n[[:alpha:][:digit:]]x\n[![:alpha:]]y\n[[:a]z\n[a[:]w\n", paths: "+1 -a +ax +1x -_x +1y -ay +[z +d/:z +[w +aw"},
	{name: "vertical tab and form feed are no space", rules: "[[:space:]]\n[[:cntrl:]]x\n", paths: "-\v -\f +\t +\r +\vx +\x7fx"},
	{name: "malformed", rules: "a[\nb[a\n[[:foo:]]\nc\\\n[]\n[!]\n[[:alpha:]\nd[a-\n", paths: "-a -a[ -b -ba -f -c -c\\ -[] -a -da"},
	{name: "backslash keeps wildcards", rules: "\\*\n\\[a]\n\\?\n", paths: "+* -x +[a] -a +?"},
	{name: "names that are not UTF-8", rules: "\xff\n[\x80-\x9f]x\n?y\n", paths: "+\xff +\x85x -\xa0x +\xe9y -\xc3\xa9y"},
	{name: "hidden names are names", rules: "*\n!.keep\n", paths: "+a +.a -.keep"},
	{name: "extensions", rules: "*.o\n*.tar.gz\n*.\n!a.o\n", paths: "+b.o +.o -a.o +x.tar.gz -x.gz +x. -o"},
	{name: "fold, odd corners", fold: true, rules: "\\A\n[B]\n[C-D]\n[[:upper:]]x\n[[:lower:]]y\n\xc3\x89\n", paths: "-a -A -b -B +c +C +cx +Cx +Yy +\xc3\x89 -\xc3\xa9"},
	{name: "fold, directories", fold: true, rules: "/Src/*/GEN\n== D/.gitignore\nA\n", paths: "+sRC/x/gen -x +D/a -a"},
}

func (w *world) addRules(text string) {
	file := ".gitignore"
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "== "); ok {
			file = strings.TrimSpace(name)
			continue
		}
		switch file {
		case "info":
			w.info += line
		case "excludes":
			w.excludes += line
		default:
			w.files[strings.Trim(strings.TrimSuffix(file, ".gitignore"), "/")] += line
		}
	}
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := world{fold: c.fold, files: map[string]string{}}
			w.addRules(c.rules)
			var want []bool
			for _, p := range strings.Split(c.paths, " ") {
				want = append(want, p[0] == '+')
				w.paths = append(w.paths, strings.ReplaceAll(p[1:], "%20", " "))
			}
			for i, got := range w.ours() {
				if (got.Decision == Ignored) != want[i] {
					t.Errorf("%q: got %v, want ignored = %v", w.paths[i], got, want[i])
				}
			}
			if !slices.ContainsFunc(strings.Split(c.rules, "\n"), func(r string) bool { return agreed(r) != r }) {
				w.paths = consistent(w.paths)
				requireSame(t, w, t.TempDir())
			}
		})
	}
}

func TestStarsAfterALiteralStart(t *testing.T) {
	w := world{files: map[string]string{"": "foo**/bar\n/baz**\n"}, paths: []string{"foobar", "foox/bar", "foo/x/bar", "bazx/"}}
	want := []Decision{None, Ignored, None, Ignored}
	for i, got := range w.ours() {
		if got.Decision != want[i] {
			t.Errorf("%q: got %v, want %v", w.paths[i], got, want[i])
		}
	}
}

func TestExplain(t *testing.T) {
	root := Root(Options{}, Source{"user", []byte("*.swp\n")}, Source{"info/exclude", []byte("\n*.log  \n")})
	top := root.Enter("", []byte("# top\n!keep.log\r\nout/ \n"))
	sub := top.Enter("a", nil).Enter("b", []byte("/x\n!x/y/"))
	for _, c := range []struct {
		chain *Chain
		name  string
		isDir bool
		want  answer
	}{
		{top, "a.swp", false, answer{Ignored, Rule{"user", 1, "*.swp"}}},
		{sub, "a.log", false, answer{Ignored, Rule{"info/exclude", 2, "*.log"}}},
		{sub, "keep.log", false, answer{Included, Rule{".gitignore", 2, "!keep.log"}}},
		{top, "out", true, answer{Ignored, Rule{".gitignore", 3, "out/"}}},
		{top, "out", false, answer{None, Rule{}}},
		{sub, "x", false, answer{Ignored, Rule{"a/b/.gitignore", 1, "/x"}}},
		{sub.Enter("x", nil), "y", true, answer{Included, Rule{"a/b/.gitignore", 2, "!x/y/"}}},
		{sub.Enter("x", nil), "x", true, answer{None, Rule{}}},
	} {
		d, r := c.chain.Explain(c.name, c.isDir)
		if got := (answer{d, r}); got != c.want {
			t.Errorf("%q: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEnterIgnored(t *testing.T) {
	c := Root(Options{}).WithFile([]byte("out/\n")).EnterIgnored("out")
	want := answer{Ignored, Rule{".gitignore", 1, "out/"}}
	for _, c := range []*Chain{c, c.WithFile([]byte("!*\n")), c.Enter("d", []byte("!*\n")), c.EnterIgnored("d")} {
		d, r := c.Explain("x", false)
		if got := (answer{d, r}); got != want || c.Match("x", false) != Ignored {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if _, r := Root(Options{}).EnterIgnored("out").Explain("x", false); r != (Rule{}) {
		t.Errorf("ignored by nothing, explained by %v", r)
	}
}

// A chain is shared by the walkers of many directories: adding to it in one
// must not show in another.
func TestChainsAreIndependent(t *testing.T) {
	top := Root(Options{}, Source{"1", []byte("x\n")}, Source{"2", []byte("b\n")}, Source{"3", []byte("c\n")})
	one, two := top.Enter("a", []byte("one\n")), top.Enter("a", []byte("two\n"))
	for _, c := range []struct {
		chain *Chain
		name  string
		want  Decision
	}{
		{one, "one", Ignored}, {one, "two", None}, {two, "two", Ignored}, {two, "one", None},
		{one, "x", Ignored}, {two, "x", Ignored}, {top, "x", Ignored}, {top, "one", None},
	} {
		if got := c.chain.Match(c.name, false); got != c.want {
			t.Errorf("%q: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEnterSharesRules(t *testing.T) {
	c := Root(Options{}, Source{"", []byte("*.o\n*.[ab]\n/x\ny/z\n")}).Enter("a", nil)
	if n := testing.AllocsPerRun(100, func() { c.Enter("b", nil) }); n > 1 {
		t.Errorf("entering a directory without rules allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { c.Match("main.go", false) }); n > 0 {
		t.Errorf("matching allocates %v times", n)
	}
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		isDir, fold   bool
		want          bool
	}{
		{pattern: "*.txt", path: "a/b.txt", want: true},
		{pattern: "/*.txt", path: "a/b.txt"},
		{pattern: "/*.txt", path: "b.txt", want: true},
		{pattern: "a/**", path: "a/b/c", want: true},
		{pattern: "a/**", path: "a"},
		{pattern: "a", path: "a/b"},
		{pattern: "a/", path: "a"},
		{pattern: "a/", path: "a", isDir: true, want: true},
		{pattern: "a/", path: "a/b"},
		{pattern: "!a", path: "a"},
		{pattern: "!a", path: "!a"},
		{pattern: `\!a`, path: "!a", want: true},
		{pattern: "a ", path: "a ", want: true},
		{pattern: "", path: "a"},
		{pattern: "[", path: "["},
		{pattern: "A/B", path: "a/b"},
		{pattern: "A/B", path: "a/b", fold: true, want: true},
		{pattern: "a/b", path: "A/B", fold: true, want: true},
		{pattern: "a/**/b/c", path: "a/b/b/c", want: true},
	} {
		if got := Compile(c.pattern, c.fold).MatchPath(c.path, c.isDir); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	if (Pattern{}).MatchPath("", true) {
		t.Error("the zero Pattern matches")
	}
}

// Backtracking over every star would take longer than anybody waits.
func TestManyStars(t *testing.T) {
	long := strings.Repeat("a", 4000)
	for _, c := range []struct{ pattern, path string }{
		{strings.Repeat("*a", 60) + "b", long},
		{"/" + strings.Repeat("*a", 60) + "b", long},
		{strings.Repeat("a/**/", 60) + "b", strings.Repeat("a/", 2000) + "a"},
		{strings.Repeat("**/*a*a/", 60) + "b", strings.Repeat("aaa/", 1000) + "a"},
		{strings.Repeat("**\\/a*", 60) + "b", strings.Repeat("aa/", 1000) + "a"},
	} {
		if Compile(c.pattern, false).MatchPath(c.path, false) {
			t.Errorf("%.20q matches", c.pattern)
		}
		if !Compile(c.pattern, false).MatchPath(c.path+"b", false) && !strings.Contains(c.path, "/") {
			t.Errorf("%.20q does not match with a b", c.pattern)
		}
	}
}

func ExampleChain() {
	top := Root(Options{}, Source{".git/info/exclude", []byte("*.log\n")}).WithFile([]byte("/build/\n!keep.log\n"))
	fmt.Println(top.Match("build", true), top.Match("src", true))

	src := top.Enter("src", nil)
	fmt.Println(src.Match("build", true), src.Match("x.log", false), src.Match("keep.log", false))

	_, rule := src.Explain("x.log", false)
	fmt.Printf("%s:%d:%s\n", rule.Source, rule.Line, rule.Pattern)
	// Output:
	// ignored none
	// none ignored included
	// .git/info/exclude:1:*.log
}
