package retcon_test

import (
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const gogit = "github.com/go-git/go-git/v5"

// forbiddenImports are packages of go-git that code of ours must not import,
// with what they did when they were tried.
var forbiddenImports = map[string]string{
	gogit:                                "Open refuses ordinary repositories, Worktree deletes ignored files, Status writes submodules; build on storage and plumbing",
	gogit + "/plumbing/format/gitignore": "decides wrongly in 8 of 13 cases; use vcs/internal/ignore",
	gogit + "/config":                    "dies on configurations that git accepts; read the keys that are needed with vcs/internal/repo",
	gogit + "/storage/transactional":     "publishes in place, without git's locks",
	gogit + "/plumbing/format/index":     "fails on split, sparse and skip-hash indexes; use vcs/internal/repo",
}

// forbiddenMethods are methods that code of ours must not call, on whatever:
// their names are go-git's alone.
var forbiddenMethods = map[string]string{
	"PlainOpen":                   "refuses extensions that are in daily use; build the storage directly",
	"PlainOpenWithOptions":        "refuses extensions that are in daily use; build the storage directly",
	"PlainInit":                   "writes a configuration of its own; create the store's files",
	"PlainClone":                  "checks out through Worktree",
	"PlainCloneContext":           "checks out through Worktree",
	"ConfigScoped":                "parses the user's whole configuration, and fails on valid ones",
	"SetIndex":                    "truncates the index in place, ignores index.lock, drops extensions",
	"SetReference":                "truncates the file in place, ignores the .lock, writes no reflog",
	"CheckAndSetReference":        "locks the file itself, where git locks <ref>.lock",
	"RemoveReference":             "rewrites packed-refs without git's lock",
	"PackRefs":                    "rewrites packed-refs without git's lock",
	"CountLooseRefs":              "belongs to PackRefs",
	"RepackObjects":               "knows neither other worktrees nor reflogs, and deletes what they need",
	"DeleteObject":                "knows neither other worktrees nor reflogs, and deletes what they need",
	"DeleteOldObjectPackAndIndex": "knows neither other worktrees nor reflogs, and deletes what they need",
	"AddWithOptions":              "method of Worktree: runs Status for every file",
	"AddGlob":                     "method of Worktree: runs Status for every file",
	"ResetSparsely":               "method of Worktree: deletes untracked and ignored files",
	"SubmodulesStatus":            "Submodule: initialises submodules on disk while looking",
}

// withGoGit are common names that are forbidden in files that import go-git.
var withGoGit = map[string]string{
	"SetConfig":  "rewrites the configuration and loses what it does not know",
	"Prune":      "knows neither other worktrees nor reflogs, and deletes what they need",
	"Submodules": "initialises submodules on disk while looking",
	"Submodule":  "initialises submodules on disk while looking",
	"Worktree":   "every method of git.Worktree is slower than git or deletes what it should not",
}

// benches may use all of it: they measure it.
const benches = "scripts/bench"

func TestLint(t *testing.T) {
	for _, s := range sources(t) {
		report(t, lint(s))
	}
}

func lint(s source) (found []string) {
	if s.test || within(s.room, benches) {
		return nil // an oracle or a contestant
	}
	imported := false
	s.imports(func(spec *ast.ImportSpec, p string) {
		imported = imported || within(p, gogit)
		if why := forbiddenImports[p]; why != "" {
			found = append(found, s.at(spec, "lint: %s: %s", p, why))
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		why := forbiddenMethods[sel.Sel.Name]
		if why == "" && imported {
			why = withGoGit[sel.Sel.Name]
		}
		if why != "" {
			found = append(found, s.at(sel, "lint: %s: %s", sel.Sel.Name, why))
		}
		return true
	})
	return found
}

func TestLintCatches(t *testing.T) {
	for _, test := range []struct {
		name, file, text string
		want             []string
	}{
		{"the root package", "vcs/x.go", `import git "github.com/go-git/go-git/v5"; var r, _ = git.PlainOpen("x")`,
			[]string{"vcs/x.go:2: lint: " + gogit + ": ", "vcs/x.go:2: lint: PlainOpen: "}},
		{"ignore rules", "vcs/x.go", `import "github.com/go-git/go-git/v5/plumbing/format/gitignore"; var m = gitignore.NewMatcher(nil)`,
			[]string{"vcs/x.go:2: lint: " + gogit + "/plumbing/format/gitignore: "}},
		{"a write through the storer", "vcs/x.go", `func f(s interface{ SetReference(int) error }) { _ = s.SetReference(1) }`,
			[]string{"vcs/x.go:2: lint: SetReference: "}},
		{"the method as a value", "vcs/x.go", `func f(s interface{ SetIndex(int) error }) any { return s.SetIndex }`,
			[]string{"vcs/x.go:2: lint: SetIndex: "}},
		{"a common name beside go-git", "vcs/x.go", `import "github.com/go-git/go-git/v5/storage/filesystem"; func f(s *filesystem.Storage) { s.SetConfig(nil) }`,
			[]string{"vcs/x.go:2: lint: SetConfig: "}},
		{"a common name without it", "ledger/x.go", `func f(s interface{ Prune() }) { s.Prune() }`, nil},
		{"an oracle", "vcs/x_test.go", `import git "github.com/go-git/go-git/v5"; var r, _ = git.PlainOpen("x")`, nil},
		{"a contestant", "scripts/bench/x.go", `import git "github.com/go-git/go-git/v5"; var r, _ = git.PlainOpen("x")`, nil},
		{"what is safe", "vcs/x.go", `import "github.com/go-git/go-git/v5/plumbing"; var h = plumbing.NewHash("")`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := lint(parse(t, test.file, []byte("package x\n"+test.text)))
			require.Len(t, found, len(test.want), "%q", found)
			for i := range found {
				assert.True(t, strings.HasPrefix(found[i], test.want[i]), "got %q, want %q…", found[i], test.want[i])
			}
		})
	}
}

// .golangci.yml says the same to editors; a name in one is in the other.
func TestLintAgreesWithGolangci(t *testing.T) {
	text, err := os.ReadFile(".golangci.yml")
	require.NoError(t, err)
	var names []string
	for _, table := range []map[string]string{forbiddenImports, forbiddenMethods, withGoGit} {
		for name := range table {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		assert.Contains(t, string(text), name)
	}
}
