package repo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxSmallFile bounds what is read of files that hold one line.
const maxSmallFile = 1 << 20

// readGitFile returns the directory named by a .git file.
func readGitFile(path string) (string, error) {
	data, err := readSmall(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrGitFile, err)
	}
	target, ok := bytes.CutPrefix(data, []byte("gitdir: "))
	target = bytes.TrimRight(target, "\r\n")
	if !ok || len(target) == 0 {
		return "", fmt.Errorf("%w: %s does not name a directory", ErrGitFile, path)
	}
	return within(filepath.Dir(path), string(target)), nil
}

// isGitDir judges as git does: HEAD looks like one, and the common directory
// has objects and refs.
func isGitDir(dir string) bool {
	if !looksLikeHead(filepath.Join(dir, "HEAD")) {
		return false
	}
	common, err := commonDir(dir)
	return err == nil && isDir(filepath.Join(common, "objects")) && isDir(filepath.Join(common, "refs"))
}

func looksLikeHead(path string) bool {
	if target, err := os.Readlink(path); err == nil {
		return strings.HasPrefix(target, "refs/")
	}
	data, err := readSmall(path)
	if err != nil {
		return false
	}
	if name, ok := symbolicTarget(data); ok {
		return strings.HasPrefix(name, "refs/")
	}
	_, ok := leadingHex(data)
	return ok
}

// commonDir returns the directory that gitDir shares with the repository's
// other worktrees: itself, unless it has a file called commondir.
func commonDir(gitDir string) (string, error) {
	path := filepath.Join(gitDir, "commondir")
	data, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.EvalSymlinks(gitDir)
	}
	if err != nil {
		return "", fmt.Errorf("common directory: %w", err)
	}
	common, err := filepath.EvalSymlinks(within(gitDir, string(bytes.TrimRight(data, "\r\n"))))
	if err != nil {
		return "", fmt.Errorf("common directory: %w", err)
	}
	return common, nil
}

// within resolves path against base, unless it is absolute.
func within(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	// Not Join: "link/.." means the parent of what link leads to.
	return base + "/" + path
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readSmall reads a regular file of at most maxSmallFile bytes. Anything else
// a name may lead to, a FIFO above all, could hold us up for ever.
func readSmall(path string) ([]byte, error) { return readRegular(path, maxSmallFile) }

func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if info.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("file too large")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	return io.ReadAll(io.LimitReader(f, limit))
}

// escapeGlob quotes a path for filepath.Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
