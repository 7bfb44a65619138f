package retcon_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/retcon-dev/retcon"

// source is one Go file of the project, parsed. The tests that hold the house
// to its laws read the files themselves: asking the go command would let the
// test cache hide a file that was added.
type source struct {
	name string // "ledger/db.go"
	room string // "ledger"; the root is "."
	test bool
	fset *token.FileSet
	file *ast.File
}

// parse reads a file's text as one of the project's.
func parse(t *testing.T, name string, text []byte) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, 0)
	require.NoError(t, err)
	return source{name: name, room: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), fset: fset, file: file}
}

// sources reads every Go file of the project but those under testdata, scripts
// and examples, which are no rooms of the house.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || name == "scripts" || name == "examples" || name == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(base, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all = append(all, parse(t, filepath.ToSlash(name), text))
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// at says where a node stands, as an editor understands it, and what is wrong.
func (s source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.name, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// imports calls f with each import and its path.
func (s source) imports(f func(spec *ast.ImportSpec, path string)) {
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			f(spec, p)
		}
	}
}

// uses calls f with each name of another package that the file uses, as
// "os.Getenv" and "log/slog.Info", whatever the import is called in the file.
func (s source) uses(f func(n ast.Node, name string)) {
	local := map[string]string{}
	s.imports(func(spec *ast.ImportSpec, p string) {
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		local[name] = p
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && local[x.Name] != "" {
			f(sel, local[x.Name]+"."+sel.Sel.Name)
		}
		return true
	})
}

// within: a room, or one below it.
func within(room, of string) bool { return room == of || strings.HasPrefix(room, of+"/") }

// report fails with every violation there is, one a line.
func report(t *testing.T, found []string) {
	t.Helper()
	for _, line := range found {
		t.Error(line)
	}
}
