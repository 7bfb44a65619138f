package retcon

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/retcon-dev/retcon/vcs"
)

// Scratch makes a folder beside the store that is a workspace of its own, hands
// it to do, and takes it away again: to try something out that leaves nothing
// behind.
func (w *Workspace) Scratch(do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp(filepath.Join(w.Folder(), "worktrees"), "doctor-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// A folder below a git directory is no workspace unless it has a store.
	if err := os.MkdirAll(filepath.Join(dir, "."+vcs.StoreName, "store.git"), 0o700); err != nil {
		return err
	}
	return do(dir)
}

// Arrived tells whether an event of an agent has arrived in the workspace at a
// directory.
func Arrived(ctx context.Context, o Options, agent string) (bool, error) {
	w, err := Open(ctx, o)
	if err != nil {
		return false, err
	}
	defer w.Close()
	heard, err := w.Deliveries(ctx)
	_, ok := heard[agent]
	return ok, err
}
