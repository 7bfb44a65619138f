package retcon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// strays says which processes still work in this worktree that a run has
// started which does not go on: a killed agent leaves some, and they write when
// nobody expects it. It goes by their directory and by what runs and agents put
// into their environment, and sees none where the system shows neither.
func (w *Workspace) strays(ctx context.Context) (notes []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []stray
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || slices.Contains(w.opt.Above, pid) {
			continue
		}
		if s, ok := w.stray(pid); ok {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	err = w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		for _, s := range all {
			run, err := s.run(tx)
			if errors.Is(err, ledger.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			live, err := liveRoots(tx, run)
			if err != nil {
				return err
			}
			if len(live) == 0 { // a run that goes on is guarded by itself
				notes = append(notes, fmt.Sprintf("process %d (%s) of %s still works here, and may write", s.pid, s.name, runRef(run.ID)))
			}
		}
		return nil
	})
	if err != nil {
		return nil // a warning less
	}
	return notes
}

// stray is a process in this worktree that says which run started it.
type stray struct {
	pid      int
	name     string
	own      string // "r7"
	sessions []agent.Session
}

func (w *Workspace) stray(pid int) (s stray, ok bool) {
	at := fmt.Sprintf("/proc/%d/", pid)
	dir, err := os.Readlink(at + "cwd")
	if err != nil {
		return s, false // another user's, or it has ended
	}
	if rel, err := filepath.Rel(w.Root(), dir); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return s, false
	}
	environ, err := os.ReadFile(at + "environ")
	if err != nil {
		return s, false
	}
	vars := map[string]string{}
	for pair := range bytes.SplitSeq(environ, []byte{0}) {
		if name, value, ok := bytes.Cut(pair, []byte("=")); ok {
			vars[string(name)] = string(value)
		}
	}
	s = stray{pid: pid, own: vars["RETCON_RUN"], sessions: agent.Sessions(func(name string) string { return vars[name] })}
	if s.own == "" && len(s.sessions) == 0 {
		return s, false
	}
	name, err := os.ReadFile(at + "comm")
	s.name = strings.TrimSpace(string(name))
	return s, err == nil
}

// run is the innermost run that started it.
func (s stray) run(tx *ledger.Tx) (ledger.Run, error) {
	for _, in := range s.sessions {
		if run, err := tx.RunByExt(in.Agent, in.Session); !errors.Is(err, ledger.ErrNotFound) {
			return run, err
		}
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(s.own, "r"), 10, 64)
	if err != nil {
		return ledger.Run{}, ledger.ErrNotFound
	}
	return tx.Run(id)
}
