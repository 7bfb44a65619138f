// Package tree makes the worktrees that the benches measure: generated ones,
// equal for equal arguments, and copies of others.
//
// The package does not know what is measured, or by whom.
package tree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// perDir is how many files a directory holds.
const perDir = 100

// stamped is when every generated file was last written. It lies so far back
// that no tool takes a file for one that may still be changing.
var stamped = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// Paths returns the names of a generated tree of n files, in the order in which
// they are written: 100 in a directory, two or three levels deep.
func Paths(n int) []string {
	paths := make([]string, 0, n)
	for i := range n {
		dir := i / perDir
		name := fmt.Sprintf("area%02d/pkg%03d/file%02d.txt", dir/20, dir, i%perDir)
		if dir%3 == 2 {
			name = fmt.Sprintf("area%02d/pkg%03d/inner/file%02d.txt", dir/20, dir, i%perDir)
		}
		paths = append(paths, name)
	}
	return paths
}

// Generate writes a tree of n text files of about 4 KiB below dir, and ignore
// rules such as most projects have.
func Generate(dir string, n int) error {
	made := map[string]bool{}
	for _, name := range Paths(n) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if parent := filepath.Dir(at); !made[parent] {
			if err := os.MkdirAll(parent, 0o755); err != nil {
				return err
			}
			made[parent] = true
		}
		if err := write(at, Text(name, 0)); err != nil {
			return err
		}
	}
	return write(filepath.Join(dir, ".gitignore"), []byte("*.log\n*.o\nbuild/\nnode_modules/\n"))
}

func write(at string, text []byte) error {
	if err := os.WriteFile(at, text, 0o644); err != nil {
		return err
	}
	return os.Chtimes(at, stamped, stamped)
}

// Shuffled returns the paths in an order that spreads them over the tree: the
// first k of them stand for any k files. The first k are also among the first
// k+1, so that cases which change ever more files change the same ones again.
func Shuffled(paths []string) []string {
	out := append([]string(nil), paths...)
	r := rand.New(rand.NewPCG(20, 26))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
