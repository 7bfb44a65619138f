package workflow

import (
	"fmt"
	"path/filepath"
)

// below is a path inside a directory, given relative to it.
func below(dir, sub string) (string, error) {
	if !filepath.IsLocal(sub) {
		return "", fmt.Errorf("dir: %q does not lie below the worktree", sub)
	}
	return filepath.Join(dir, sub), nil
}
