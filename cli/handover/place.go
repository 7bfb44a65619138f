package handover

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Place is a workspace as far as the short way knows it.
type Place struct {
	Root   string // the top of the worktree, without symbolic links
	Folder string // of the store
}

// Find looks for the workspace of a directory. It knows worktrees of git that
// are where git puts them, and folders with a store of their own, and only such
// as have a store already; false says nothing of others.
func Find(dir string) (Place, bool) {
	if !filepath.IsAbs(dir) {
		return Place{}, false
	}
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Place{}, false
	}
	for {
		if fi, err := os.Lstat(at + "/.git"); err == nil {
			return inGit(at, fi)
		}
		if _, err := os.Lstat(at + "/.retcon"); err == nil {
			return withStore(Place{Root: at, Folder: at + "/.retcon"})
		}
		up := filepath.Dir(at)
		if up == at {
			return Place{}, false
		}
		at = up
	}
}

// inGit is the workspace at a root that has something called .git.
func inGit(root string, git os.FileInfo) (Place, bool) {
	if _, err := os.Lstat(root + "/.retcon"); err == nil {
		return Place{}, false // which of them it is has to be told by more than names
	}
	if git.IsDir() {
		return withStore(Place{Root: root, Folder: root + "/.git/retcon"})
	}
	dir, ok := readPath(root+"/.git", "gitdir: ", root)
	if !ok {
		return Place{}, false
	}
	common, ok := readPath(dir+"/commondir", "", dir)
	if !ok {
		return Place{}, false
	}
	return withStore(Place{Root: root, Folder: common + "/retcon"})
}

// readPath reads a file that holds one path, relative to a directory.
func readPath(file, before, dir string) (string, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), before)
	if !ok || path == "" || strings.Contains(path, "\n") {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path, true
}

func withStore(p Place) (Place, bool) {
	fi, err := os.Lstat(p.Folder + "/ledger.db")
	return p, err == nil && fi.Mode().IsRegular()
}

// Disabled tells whether the settings of the workspace switch recording off.
// Where they are written in a way that retcon config does not write, it is
// false.
func (p Place) Disabled() bool {
	text, err := os.ReadFile(p.Folder + "/config.toml")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case line == "disabled = true":
			return true
		case strings.HasPrefix(line, "["), strings.Contains(line, `"""`), strings.Contains(line, "'''"):
			return false // what follows may mean something else
		}
	}
	return false
}

// Socket is where a process that watches the worktree listens.
func (p Place) Socket() string {
	return p.Folder + "/watch/" + strconv.FormatUint(digest(p.Root), 16) + ".sock"
}

// digest tells the worktrees of a repository apart (FNV-1a).
func digest(text string) uint64 {
	sum := uint64(14695981039346656037)
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * 1099511628211
	}
	return sum
}
