package object

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shallowName lists the commits where history ends, as git keeps it.
const shallowName = "shallow"

func readShallow(dir string) map[ID]bool {
	return readList(filepath.Join(dir, shallowName), func(line string) (ID, bool) {
		id, err := ParseID(line)
		return id, err == nil
	})
}

func appendShallow(dir string, ids []ID) error {
	if len(ids) == 0 {
		return nil
	}
	all := readShallow(dir)
	for _, id := range ids {
		all[id] = true
	}
	lines := make([]string, 0, len(all))
	for id := range all {
		lines = append(lines, id.String())
	}
	return writeList(filepath.Join(dir, shallowName), lines)
}

// partialName lists the packs in which a repack left objects without what
// these mention.
const partialName = "partial"

func readPartial(dir string) map[string]bool {
	return readList(filepath.Join(dir, partialName), func(line string) (string, bool) { return line, line != "" })
}

// repackedName lists the packs that repacks have made.
const repackedName = "repacked"

func readRepacked(dir string) map[string]bool {
	return readList(filepath.Join(dir, repackedName), func(line string) (string, bool) { return line, line != "" })
}

func readList[K comparable](path string, parse func(string) (K, bool)) map[K]bool {
	all := map[K]bool{}
	b, err := os.ReadFile(path)
	if err != nil {
		return all // the usual case: there is none
	}
	for line := range strings.Lines(string(b)) {
		if k, ok := parse(strings.TrimSuffix(line, "\n")); ok {
			all[k] = true
		}
	}
	return all
}

// writeList replaces a file of lines.
func writeList(path string, lines []string) error {
	slices.Sort(lines)
	f, err := createTemp(filepath.Dir(path), "list")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer dropTemp(f)
	for _, l := range lines {
		if _, err := f.WriteString(l + "\n"); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
