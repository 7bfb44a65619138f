package tree

import (
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Edit changes one line of each of the files below dir, in place. Equal files
// become equal files: two copies of a tree stay copies of each other.
func Edit(dir string, paths []string, version int) error {
	for _, name := range paths {
		at := filepath.Join(dir, filepath.FromSlash(name))
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		if err := os.WriteFile(at, Changed(text, name, version), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Step is one step of a session at work.
type Step struct {
	Version int
	Paths   []string // one to three
}

// Session returns steps that change one to three files each. They keep coming
// back to the same part of the tree, as whoever works on something does.
func Session(paths []string, steps int) []Step {
	hot := Shuffled(paths)
	hot = hot[:max(3, len(hot)/100)]
	r := rand.New(rand.NewPCG(1, 3))
	out := make([]Step, steps)
	for i := range out {
		out[i].Version = i + 1
		for _, at := range r.Perm(len(hot))[:1+r.IntN(3)] {
			out[i].Paths = append(out[i].Paths, hot[at])
		}
	}
	return out
}
