package object

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// SetAside looks at the ends of every pack and renames those that a power cut
// has left unfinished, so that Has no longer believes in what they were to
// hold. What Commit did not sync may be in that state after a boot; a pack that
// was synced never is. It returns how many were set aside.
func (s *Store) SetAside(ctx context.Context) (int, error) {
	unlock, err := s.Shared(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	set := s.rescan(s.cur.Load())
	for _, p := range set.packs {
		x, err := p.index()
		if err == nil {
			var f *packFile
			if f, err = openPackFile(p.packPath(), x); err == nil && f.f != nil {
				f.f.Close()
			}
		}
		if !errors.Is(err, ErrCorrupt) {
			continue // whole, or not for us to judge
		}
		for _, path := range []string{p.idxPath(), p.packPath()} {
			if err := os.Rename(path, path+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
				return n, fmt.Errorf("set aside: %w", err)
			}
		}
		n++
	}
	if n > 0 {
		s.rescan(s.cur.Load())
	}
	return n, nil
}
