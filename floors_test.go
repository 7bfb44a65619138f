package retcon_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The floors, from the ground up. A room imports only rooms named in its list,
// and a list names only rooms that stand above it here. When this fails, ask
// first whether the line is in the wrong room; change the list only with the
// reason in the commit.
var floors = []struct{ room, may string }{
	{"internal/crash", ""},
	{"internal/redact", ""},
	{"snapshot", ""},
	{"sideeffect", ""},
	{"agent", ""},
	{"vcs/internal/ignore", ""},
	{"vcs/internal/inflate", ""},
	{"vcs/internal/object", "vcs/internal/inflate"},
	{"vcs/internal/repo", "vcs/internal/ignore vcs/internal/object"},
	{"vcs", "vcs/internal/ignore vcs/internal/object vcs/internal/repo internal/crash"},
	{"ledger", "snapshot sideeffect internal/crash"},
	{"ledger/ledgertest", "ledger"},
	{"checkpoint", "snapshot sideeffect vcs ledger internal/crash internal/redact"},
	{"cassette", "snapshot ledger internal/crash internal/redact"},
	{"timeline", "snapshot sideeffect vcs ledger checkpoint internal/crash"},
	{"workflow/internal/value", ""},
	{"workflow/internal/proc", ""},
	{"workflow", "snapshot sideeffect agent vcs ledger checkpoint cassette workflow/internal/value workflow/internal/proc internal/crash internal/redact"},
	{".", "snapshot sideeffect agent vcs ledger checkpoint cassette timeline workflow internal/crash internal/redact"},
	{"mcp", ". snapshot timeline"},
	{"web", ". snapshot timeline"},
	{"cli/handover", ""},
	{"cli", ". snapshot agent timeline mcp web cli/handover"},
	{"cli/retcon", "cli"},
	{"cli/retcon-hook", "cli/handover"},
}

// helpers are rooms that only tests may enter.
var helpers = []string{"ledger/ledgertest", "internal/gittest"}

// homes: one outside dependency, one home. A name covers the packages below it.
// A dependency that is not here has no home, and no business in the house.
var homes = []struct{ dependency, rooms string }{
	{"database/sql", "ledger"},
	{"github.com/mattn/go-sqlite3", "ledger"},
	{"github.com/go-git/go-git/v5", "vcs"},
	{"github.com/go-git/go-billy/v5", "vcs"},
	{"github.com/fsnotify/fsnotify", "vcs"},
	{"github.com/sergi/go-diff", "vcs cli"},
	{"github.com/urfave/cli/v2", "cli"},
	{"github.com/klauspost/compress", "vcs ledger"},
	{"github.com/BurntSushi/toml", "agent cli"},
	{"github.com/modelcontextprotocol/go-sdk", "mcp"},
	{"go.starlark.net", "workflow"},
	{"github.com/google/jsonschema-go", "workflow mcp"},
	{"mvdan.cc/sh/v3", "sideeffect"},
	{"golang.org/x/sync", "vcs ledger checkpoint timeline workflow . cli"},
	{"golang.org/x/sys", "vcs ledger timeline cli"},
	{"golang.org/x/term", "cli"},
	{"os/exec", "agent sideeffect workflow cli"},
}

// inTests may be used by the tests of any room: git is their oracle, and the
// rest is how they are written.
var inTests = []string{
	"github.com/go-git/go-git/v5",
	"github.com/go-git/go-billy/v5",
	"github.com/rogpeppe/go-internal",
	"github.com/stretchr/testify",
	"golang.org/x/sync",
	"golang.org/x/sys",
	"os/exec",
	"pgregory.net/rapid",
}

// calls are the laws about what a room may do, whatever it imports: a use of
// one of names is allowed in rooms only.
var calls = []struct{ names, rooms, law string }{
	{
		"os.Getenv os.LookupEnv os.Environ os.ExpandEnv os.Setenv os.Unsetenv os.UserHomeDir os.UserConfigDir os.UserCacheDir os.TempDir",
		"cli", "only cli reads the environment; take it as a field",
	},
	{"os.Getwd path/filepath.Abs os.Chdir", "cli", "only cli knows the current directory; take a path"},
	{"time.Now time.Since time.Until", "cli", "only cli reads the clock; take it as a field, Now func() time.Time"},
	{
		"os.Stdin os.Stdout os.Stderr fmt.Print fmt.Printf fmt.Println log.Print log.Printf log.Println log/slog.Default",
		"cli", "only cli prints; return a value or an error",
	},
	{"os.Exit syscall.Exit log.Fatal log.Fatalf log.Fatalln", "cli/retcon", "only cli/retcon exits; return an error"},
}

// clocks are the files outside cli that may read the clock, with the reason.
var clocks = map[string]string{
	"ledger/db.go":                 "the default of the field Now",
	"vcs/sys_darwin.go":            "the clock that stamps files, to compare their times with",
	"vcs/internal/object/store.go": "likewise: is the listing of a folder older than its last change?",
}

func TestFloors(t *testing.T) {
	known := map[string][]string{}
	for _, floor := range floors {
		for _, below := range strings.Fields(floor.may) {
			assert.Contains(t, known, below, "%s may import %s, which stands no lower", floor.room, below)
		}
		known[floor.room] = strings.Fields(floor.may)
	}
	for _, s := range sources(t) {
		report(t, offFloor(known, s))
	}
}

func TestHomes(t *testing.T) {
	for _, s := range sources(t) {
		report(t, homeless(s))
	}
}

func TestCalls(t *testing.T) {
	for _, s := range sources(t) {
		report(t, forbiddenCalls(s))
	}
}

// offFloor finds the imports that go up or across. Tests may look where they
// like: that they do not is a matter of taste.
func offFloor(known map[string][]string, s source) (found []string) {
	may, ok := known[s.room]
	switch {
	case s.test:
		return nil
	case !ok && !slices.Contains(helpers, s.room):
		return []string{s.at(s.file.Name, "%s is on no floor: add it to floors in floors_test.go", s.room)}
	}
	s.imports(func(spec *ast.ImportSpec, p string) {
		if !within(p, module) {
			return
		}
		room := strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
		if room == "" {
			room = "."
		}
		switch {
		case slices.Contains(helpers, room) && !slices.Contains(helpers, s.room):
			found = append(found, s.at(spec, "floors: %s is for tests only", room))
		case !slices.Contains(may, room):
			found = append(found, s.at(spec, "floors: %s may not import %s", s.room, room))
		}
	})
	return found
}

// homeless finds the outside dependencies that are used away from home.
func homeless(s source) (found []string) {
	s.imports(func(spec *ast.ImportSpec, p string) {
		if spec.Name != nil && spec.Name.Name == "." {
			found = append(found, s.at(spec, "homes: no dot imports: a reader must see whose name it is"))
		}
		if (s.test || slices.Contains(helpers, s.room)) && slices.ContainsFunc(inTests, func(d string) bool { return within(p, d) }) {
			return
		}
		for _, home := range homes {
			if !within(p, home.dependency) {
				continue
			}
			if !atHome(s.room, home.rooms) {
				found = append(found, s.at(spec, "homes: %s lives in %s", home.dependency, strings.ReplaceAll(home.rooms, " ", ", ")))
			}
			return
		}
		if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") && !within(p, module) {
			found = append(found, s.at(spec, "homes: %s has no home: add it to homes in floors_test.go", p))
		}
	})
	return found
}

// atHome: the room is one of rooms or below one; only the root's own files are
// in the root.
func atHome(room, rooms string) bool {
	for home := range strings.FieldsSeq(rooms) {
		if room == home || home != "." && within(room, home) {
			return true
		}
	}
	return false
}

// forbiddenCalls finds what a room must not do. Tests are free: they are the
// surroundings.
func forbiddenCalls(s source) (found []string) {
	if s.test || slices.Contains(helpers, s.room) {
		return nil
	}
	s.uses(func(n ast.Node, name string) {
		for _, law := range calls {
			if !slices.Contains(strings.Fields(law.names), name) || atHome(s.room, law.rooms) {
				continue
			}
			if clocks[s.name] != "" && strings.HasPrefix(name, "time.") {
				continue
			}
			found = append(found, s.at(n, "%s: %s", path.Base(name), law.law))
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.Ident); ok && f.Obj == nil && (f.Name == "print" || f.Name == "println") {
			found = append(found, s.at(n, "%s: left over from debugging", f.Name))
		}
		return true
	})
	return found
}

// The laws themselves can fail: each is shown a file that breaks it.
func TestLawsCatch(t *testing.T) {
	known := map[string][]string{}
	for _, floor := range floors {
		known[floor.room] = strings.Fields(floor.may)
	}
	for _, test := range []struct{ name, file, text, want string }{
		{"up", "ledger/x.go", `import "github.com/retcon-dev/retcon/timeline"`, "ledger/x.go:2: floors: ledger may not import timeline"},
		{"into the root", "ledger/x.go", `import "github.com/retcon-dev/retcon"`, "ledger/x.go:2: floors: ledger may not import ."},
		{"across", "timeline/x.go", `import "github.com/retcon-dev/retcon/workflow"`, "timeline/x.go:2: floors: timeline may not import workflow"},
		{"past the front door", "cli/x.go", `import "github.com/retcon-dev/retcon/ledger"`, "cli/x.go:2: floors: cli may not import ledger"},
		{"a helper outside tests", "ledger/x.go", `import "github.com/retcon-dev/retcon/ledger/ledgertest"`, "ledger/x.go:2: floors: ledger/ledgertest is for tests only"},
		{"a test looks where it likes", "ledger/x_test.go", `import "github.com/retcon-dev/retcon/timeline"`, ""},
		{"a new room", "utils/x.go", ``, "utils/x.go:1: utils is on no floor: add it to floors in floors_test.go"},

		{"away from home", "timeline/x.go", `import "database/sql"`, "timeline/x.go:2: homes: database/sql lives in ledger"},
		{"below its home", "ledger/ledgertest/x.go", `import "database/sql"`, ""},
		{"a package below the dependency", "checkpoint/x.go", `import "github.com/go-git/go-git/v5/plumbing"`, "checkpoint/x.go:2: homes: github.com/go-git/go-git/v5 lives in vcs"},
		{"a name that only begins alike", "checkpoint/x.go", `import "os/execution"`, ""},
		{"no home", "cli/x.go", `import "github.com/spf13/cobra"`, "cli/x.go:2: homes: github.com/spf13/cobra has no home: add it to homes in floors_test.go"},
		{"the root is not everywhere", "agent/x.go", `import "golang.org/x/sync/errgroup"`, "agent/x.go:2: homes: golang.org/x/sync lives in vcs, ledger, checkpoint, timeline, workflow, ., cli"},
		{"testify outside tests", "vcs/x.go", `import "github.com/stretchr/testify/assert"`, "vcs/x.go:2: homes: github.com/stretchr/testify/assert has no home: add it to homes in floors_test.go"},
		{"git as oracle", "vcs/x_test.go", `import "os/exec"`, ""},
		{"a process of the library's", "vcs/x.go", `import "os/exec"`, "vcs/x.go:2: homes: os/exec lives in agent, sideeffect, workflow, cli"},
		{"sql in another room's test", "timeline/x_test.go", `import _ "github.com/mattn/go-sqlite3"`, "timeline/x_test.go:2: homes: github.com/mattn/go-sqlite3 lives in ledger"},
		{"a dot import", "vcs/x.go", `import . "strings"`, "vcs/x.go:2: homes: no dot imports: a reader must see whose name it is"},

		{"environment", "vcs/x.go", `import "os"; var x = os.Getenv("HOME")`, "vcs/x.go:2: os.Getenv: only cli reads the environment; take it as a field"},
		{"under another name", "vcs/x.go", `import o "os"; var x, _ = o.UserHomeDir()`, "vcs/x.go:2: os.UserHomeDir: only cli reads the environment; take it as a field"},
		{"a field that is called like a package", "vcs/x.go", `func f(os struct{ Getenv int }) int { return os.Getenv }`, ""},
		{"the current directory, by the back door", "vcs/x.go", `import "path/filepath"; var x, _ = filepath.Abs("x")`, "vcs/x.go:2: filepath.Abs: only cli knows the current directory; take a path"},
		{"the clock", "timeline/x.go", `import "time"; var x = time.Now()`, "timeline/x.go:2: time.Now: only cli reads the clock; take it as a field, Now func() time.Time"},
		{"the clock in cli", "cli/x.go", `import "time"; var x = time.Now()`, ""},
		{"the clock where it is allowed", "ledger/db.go", `import "time"; var x = time.Now`, ""},
		{"exit", "cli/x.go", `import "os"; func f() { os.Exit(1) }`, "cli/x.go:2: os.Exit: only cli/retcon exits; return an error"},
		{"exit in main", "cli/retcon/x.go", `import "os"; func f() { os.Exit(1) }`, ""},
		{"printing", "ledger/x.go", `import "fmt"; func f() { fmt.Println() }`, "ledger/x.go:2: fmt.Println: only cli prints; return a value or an error"},
		{"debugging", "cli/x.go", `func f() { println("here") }`, "cli/x.go:2: println: left over from debugging"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := parse(t, test.file, []byte("package x\n"+test.text))
			found := slices.Concat(offFloor(known, s), homeless(s), forbiddenCalls(s))
			if strings.Contains(test.want, "homes: ") { // such a file may break a floor as well
				found = homeless(s)
			}
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			if assert.Len(t, found, 1) {
				assert.Equal(t, test.want, found[0])
			}
		})
	}
}

// Every file with a clock of its own still exists and still reads it.
func TestClocksAreNotStale(t *testing.T) {
	left := map[string]bool{}
	for name := range clocks {
		left[name] = true
	}
	for _, s := range sources(t) {
		s.uses(func(_ ast.Node, name string) {
			if strings.HasPrefix(name, "time.") {
				delete(left, s.name)
			}
		})
	}
	for name := range left {
		t.Errorf("%s does not read the clock: take it out of clocks", name)
	}
}
