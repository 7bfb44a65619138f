package ignore

import (
	"os"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Small alphabets, so that rules and names meet. The longer pieces are those
// that random bytes would seldom make.
var (
	ruleBytes  = strings.Split("a b a b A B c . - * * ? [ ] ! ^ \\ / / #", " ")
	rulePieces = append(strings.Split("** **/ /** /**/ \\/ [a-c] [!a] [^b] [A-B] [[:alpha:]] [[:upper:]] [[:lower:]] "+
		"[[:punct:]] [[:space:]] [[:cntrl:]] [[:x:]] [[:a] []a] [a-] [--a] [a\\-c] [\\]] [B-\\b] *.a *.b .a a/ b/", " "),
		" ", "\\ ", "\r", "\t", "\xff", "\xc3\xa9", "[\x80-\xff]", "\x00", "[a/b]", "[!x]")
	nameBytes = strings.Split("a b a b A B c . - * ? [ ] ! ^ \\ #", " ")
	nameExtra = []string{" ", "\r", "\t", "\xff", "\xc3\xa9", ".a", ".b", "ab"}
)

func drawName(t *rapid.T) string {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "A", "ab", "a.b", "c"}),
		rapid.Map(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(nameBytes), rapid.SampledFrom(nameExtra)), 1, 4),
			func(s []string) string { return strings.Join(s, "") }),
	).Draw(t, "name")
	if name == "." || name == ".." {
		return "a"
	}
	return name
}

func drawRule(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(ruleBytes), rapid.SampledFrom(ruleBytes), rapid.SampledFrom(rulePieces)), 1, 7).Draw(t, "rule")
	return agreed(strings.Join(parts, ""))
}

func drawFile(t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(0, 5).Draw(t, "rules") {
		rule := drawRule(t)
		if rapid.IntRange(0, 4).Draw(t, "negate") == 0 {
			rule = "!" + rule
		}
		b.WriteString(agreed(rule))
		b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", "\n\n", "\r\n", " \n", "\n# a\n"}).Draw(t, "end"))
	}
	s := b.String()
	switch rapid.IntRange(0, 9).Draw(t, "shape") {
	case 0:
		return "\ufeff" + s
	case 1:
		return strings.TrimSuffix(s, "\n")
	}
	return s
}

func drawWorld(t *rapid.T, paths int) world {
	w := world{
		fold:     rapid.Bool().Draw(t, "fold"),
		excludes: drawFile(t),
		info:     drawFile(t),
		files:    map[string]string{"": drawFile(t)},
	}
	dirs := []string{""}
	seen := map[string]bool{}
	for range paths {
		dir := rapid.SampledFrom(dirs).Draw(t, "dir")
		p := path.Join(dir, drawName(t))
		if seen[p] {
			continue
		}
		seen[p] = true
		if rapid.Bool().Draw(t, "file") {
			w.paths = append(w.paths, p)
			continue
		}
		w.paths = append(w.paths, p+"/")
		if strings.Count(p, "/") < 4 {
			dirs = append(dirs, p)
			if rapid.IntRange(0, 2).Draw(t, "nested") == 0 {
				w.files[p] = drawFile(t)
			}
		}
	}
	return w
}

// TestRandomAgainstGit makes whole worktrees of rules and compares every
// decision and the line that made it. -rapid.checks=N asks for more.
func TestRandomAgainstGit(t *testing.T) {
	base := t.TempDir()
	paths := 0
	seen := map[Decision]int{}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		must(t, err)
		defer os.RemoveAll(dir)
		w := drawWorld(t, 150)
		for _, a := range requireSame(t, w, dir) {
			seen[a.Decision]++
		}
		paths += len(w.paths)
	})
	t.Logf("%d paths: %v", paths, seen)
	if paths < 5000 && !testing.Short() {
		t.Errorf("only %d paths", paths)
	}
	for _, d := range []Decision{None, Ignored, Included} {
		if seen[d] < paths/50 {
			t.Errorf("too few %v to mean anything", d)
		}
	}
}

// TestRandomRulesAgainstGit asks one random rule at a time about many paths,
// each rule in a directory of its own so that one git answers for all.
func TestRandomRulesAgainstGit(t *testing.T) {
	base := t.TempDir()
	pairs, hits := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		must(t, err)
		defer os.RemoveAll(dir)
		w := world{fold: rapid.Bool().Draw(t, "fold"), files: map[string]string{}}
		for i := range 30 {
			home := "d" + string(rune('A'+i))
			w.files[home] = drawRule(t) + "\n"
			seen := map[string]bool{}
			p := home
			for range 12 {
				p = path.Join(p, drawName(t))
				if seen[p] {
					break
				}
				seen[p] = true
				last := strings.Count(p, "/") == 4 || rapid.IntRange(0, 2).Draw(t, "last") == 0
				if !last {
					w.paths = append(w.paths, p+"/")
					continue
				}
				if rapid.Bool().Draw(t, "dir") {
					w.paths = append(w.paths, p+"/")
				} else {
					w.paths = append(w.paths, p)
				}
				p = home
			}
		}
		w.paths = consistent(w.paths)
		for _, a := range requireSame(t, w, dir) {
			if a.Decision != None {
				hits++
			}
		}
		pairs += len(w.paths)
	})
	t.Logf("%d pairs, %d hits", pairs, hits)
	if pairs < 10000 && !testing.Short() {
		t.Errorf("only %d pairs", pairs)
	}
	if hits < pairs/20 {
		t.Errorf("too few matches to mean anything")
	}
}

// consistent drops paths that are asked for twice, and files that are also
// directories.
func consistent(paths []string) []string {
	dirs := map[string]bool{}
	for _, p := range paths {
		for p, isDir := strings.CutSuffix(p, "/"); p != "."; p = path.Dir(p) {
			dirs[p] = dirs[p] || isDir
			isDir = true
		}
	}
	var out []string
	seen := map[string]bool{}
	for _, p := range paths {
		name, isDir := strings.CutSuffix(p, "/")
		if !seen[name] && (isDir || !dirs[name]) {
			seen[name] = true
			out = append(out, p)
		}
	}
	return out
}
