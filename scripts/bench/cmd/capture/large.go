package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

const (
	largeFile = 200 << 20
	largeGoal = 64 << 20
	largeRuns = 3 // memory varies little, and a run takes long
)

// large is what a capture of one large file needs of memory. Nobody is raced:
// the ratio is to the figure itself.
func large(ctx context.Context, g *ground.Ground) error {
	const name, rival = "peak memory, one file of 200 MiB", "64 MiB"
	if !g.Wants(name) {
		return nil
	}
	dir, err := g.Folder("large")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	row := g.Report.Row(name, rival, bench.Goal(1))
	if err := writeLarge(filepath.Join(dir, "large.bin")); err != nil {
		return err
	}
	var pairs []bench.Pair
	for range largeRuns {
		if err := os.RemoveAll(filepath.Join(dir, ".retcon")); err != nil {
			return err
		}
		bench.Shrink()
		c, u, err := g.Driver.Capture(ctx, dir, "--create", "--no-caps")
		if err == nil && c.Bytes < largeFile {
			err = fmt.Errorf("read %d bytes of %d", c.Bytes, largeFile)
		}
		if err != nil {
			return g.Report.Add(row.Fail(err))
		}
		pairs = append(pairs, bench.Pair{Ours: u, Theirs: bench.Usage{Peak: largeGoal}})
	}
	return g.Report.Add(row.Measure(pairs, bench.Memory))
}

// writeLarge writes a file of which every other block can be compressed.
func writeLarge(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w, r := bufio.NewWriter(f), rand.NewChaCha8([32]byte{'r', 'e', 't', 'c', 'o', 'n'})
	block := make([]byte, 64<<10)
	for i := range largeFile / len(block) {
		clear(block)
		if i%2 == 0 {
			_, _ = r.Read(block) // never fails
		}
		if _, err := w.Write(block); err != nil {
			break // Flush returns it
		}
	}
	return errors.Join(w.Flush(), f.Close())
}
