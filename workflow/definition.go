package workflow

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// engineVersion is part of every definition: what another version of the
// engine would make of a body is not known.
const engineVersion = 1

// body is what a run executes: a Starlark program or a Go function.
type body interface {
	main(b *branch, input value.V) error
	definition() *Definition
}

// Definition is what a run executes, pinned: the body's file, the modules it
// loads and the files it reads, each by the hash of its content.
type Definition struct {
	Name  string            // the main file's, without its ending
	Main  string            // path of the main file, relative to its own directory
	Files map[string][]byte // by path relative to the main file's directory
	Hash  snapshot.Hash

	// Version is of a Go program, which has no files; "" for others.
	Version string
}

// IsGo tells that a Go program is executed, which is not kept: only the program
// itself can go on.
func (d *Definition) IsGo() bool { return len(d.Files) == 0 }

// value is the definition as it is stored; the files' contents stand beside it.
func (d *Definition) value() value.V {
	files := map[string]value.V{}
	for p, b := range d.Files {
		files[p] = value.Output{Hash: value.Hash(b)}
	}
	return value.NewDict(map[string]value.V{"engine": int64(engineVersion), "main": d.Main, "name": d.Name, "files": value.NewDict(files),
		"version": d.Version})
}

func (d *Definition) seal() { d.Hash = hashOf(value.Encode(d.value())) }

// contents are what has to be kept for the definition to be read again.
func (d *Definition) contents() []ledger.Prepared {
	all := []ledger.Prepared{ledger.Prepare(value.Encode(d.value()))}
	for _, b := range d.Files {
		all = append(all, ledger.Prepare(b))
	}
	return all
}

// storedDefinition reads what a run was pinned to.
func storedDefinition(tx *ledger.Tx, h snapshot.Hash) (*Definition, error) {
	b, err := tx.Content(h)
	if err != nil {
		return nil, fmt.Errorf("the definition %s: %w", h.Short(), err)
	}
	v, err := value.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("the definition %s: %w", h.Short(), err)
	}
	top, _ := v.(value.Dict)
	d := &Definition{Name: text(top, "name"), Main: text(top, "main"), Version: text(top, "version"), Files: map[string][]byte{}, Hash: h}
	list, _ := top.Get("files")
	files, _ := list.(value.Dict)
	for p, ref := range files.All() {
		out, ok := ref.(value.Output)
		if !ok {
			return nil, fmt.Errorf("the definition %s: %s is not named by its content", h.Short(), p)
		}
		if d.Files[p], err = tx.Content(out.Hash); err != nil {
			return nil, fmt.Errorf("the definition %s: %s: %w", h.Short(), p, err)
		}
	}
	return d, nil
}

// Paths are the files of the definition, in order.
func (d *Definition) Paths() []string {
	var paths []string
	for p := range d.Files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// sourcePath is a path that a body names, relative to the file that names it.
func sourcePath(from, to string) (string, error) {
	p := path.Join(path.Dir(from), to)
	if to == "" || path.IsAbs(to) || p == ".." || strings.HasPrefix(p, "../") {
		return "", fmt.Errorf("%q does not lie below the directory of the workflow", to)
	}
	return p, nil
}
