package vcs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// OpenStage finds the stage a crash has left behind; nil when there is none.
// Only Rescue and Discard may be called on it.
func (w *Worktree) OpenStage(id string) (*Staged, error) {
	return w.openStage(w.stageDir(id), id)
}

func (w *Worktree) openStage(dir, id string) (*Staged, error) {
	s := &Staged{w: w, dir: dir, dirs: make(map[string]int)}
	s.folders = []*folder{{dir: s.dir, fd: -1}}
	f, err := os.Open(filepath.Join(s.dir, "manifest"))
	if errors.Is(err, os.ErrNotExist) {
		if _, serr := os.Lstat(s.dir); serr != nil {
			return nil, nil
		}
		return s, nil // died before the manifest: nothing was displaced
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		st := step{change: &FileChange{}, was: true, odd: true}
		c := st.change
		// A line that cannot be read is the torn end of a manifest that was being
		// written: nothing had been displaced.
		var mount string
		if n, _ := fmt.Sscanf(sc.Text(), "%s %q %q %q %q", &st.name, &c.Old.ID, &c.New.ID, &c.Path, &mount); n != 5 {
			continue
		}
		i := slices.IndexFunc(s.folders, func(f *folder) bool { return f.mount == mount })
		if i < 0 {
			i = len(s.folders)
			s.folders = append(s.folders, &folder{mount: mount, dir: w.mountStage(mount, id), fd: -1})
		}
		st.at = s.folders[i]
		s.steps = append(s.steps, st)
	}
	return s, sc.Err()
}

// DiscardStages removes every stage of this worktree, after keep has recorded
// what somebody wrote to paths whose files lie there, and some of the files that
// restores have displaced when they are many. Call it under the move lock, when no
// move is open.
func (w *Worktree) DiscardStages(ctx context.Context, keep func(c Commit, paths []string) error) error {
	if _, err := w.sweep(ctx, displacedFiles/2, displacedBytes/2, keep); err != nil {
		return err
	}
	ids, err := w.stages()
	if err != nil || len(ids) == 0 {
		return err
	}
	unshare, err := w.Shared(ctx)
	if err != nil {
		return err
	}
	defer unshare()
	for _, id := range ids {
		s, err := w.OpenStage(id)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		c, paths, err := s.Rescue(ctx, true)
		if err == nil && c != "" {
			err = keep(c, paths)
		}
		if err == nil {
			err = s.Discard()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Rescue stores whatever lies in the stage and is neither what the plan saw nor
// what it put there, and returns a commit of those paths alone; "" when there is
// nothing. With all, it looks at every file of the stage, not only at those
// known to be odd. Those who still write to one of them are waited for.
func (s *Staged) Rescue(ctx context.Context, all bool) (Commit, []string, error) {
	if err := s.awaitWriters(ctx); err != nil {
		return "", nil, err
	}
	return s.rescue(ctx, all)
}

func (s *Staged) rescue(ctx context.Context, all bool) (Commit, []string, error) {
	wr := s.w.store.NewWriter()
	defer wr.Abort()
	found := make(map[string]object.TreeEntry)
	for i := range s.steps {
		st := &s.steps[i]
		if !st.odd && !all {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", nil, err
		}
		for _, name := range []string{st.name, st.name + displacedSuffix} {
			e, ok, err := s.rescueFile(wr, filepath.Join(st.at.dir, name))
			if err != nil {
				return "", nil, fmt.Errorf("rescue %s: %w", st.change.Path, err)
			}
			if id := e.ID.String(); ok && id != st.change.Old.ID && id != st.change.New.ID {
				found[st.change.Path], st.rescued = e, e.ID
			}
		}
	}
	if len(found) == 0 {
		return "", nil, nil
	}
	paths := make([]string, 0, len(found))
	for p := range found {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	c, err := s.w.writeCommit(wr, paths, found)
	if err != nil {
		return "", nil, err
	}
	crash.Point("restore.rescue")
	if err := wr.Commit(true); err != nil {
		return "", nil, err
	}
	return c, paths, nil
}

func (s *Staged) rescueFile(wr *object.Writer, path string) (e object.TreeEntry, ok bool, err error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	switch {
	case fi.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return e, false, err
		}
		e.Mode, e.ID = object.ModeSymlink, object.Sum(object.Blob, []byte(target))
		if s.w.store.Has(e.ID) {
			return e, true, nil
		}
		return e, true, wr.AddHashed(e.ID, object.Blob, []byte(target))
	case fi.Mode().IsRegular():
		e.Mode = object.ModeFile
		if fi.Mode()&0o100 != 0 {
			e.Mode = object.ModeExec
		}
		id, err := hashFile(path)
		if err != nil {
			return e, false, err
		}
		if e.ID = id; s.w.store.Has(id) {
			return e, true, nil
		}
		f, err := os.Open(path)
		if err != nil {
			return e, false, err
		}
		defer f.Close()
		e.ID, err = wr.AddStream(fi.Size(), f)
		return e, true, err
	}
	return e, false, nil // a FIFO or socket has no bytes to keep
}

func hashFile(path string) (object.ID, error) {
	f, err := os.Open(path)
	if err != nil {
		return object.ID{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return object.ID{}, err
	}
	h := object.NewHasher()
	h.Reset(object.Blob, fi.Size())
	if _, err := io.Copy(h, f); err != nil {
		return object.ID{}, err
	}
	return h.Sum(), nil
}

// writeCommit writes a commit that holds these paths and nothing else.
func (w *Worktree) writeCommit(wr *object.Writer, paths []string, entries map[string]object.TreeEntry) (Commit, error) {
	var build func(prefix string, paths []string) (object.ID, error)
	build = func(prefix string, paths []string) (object.ID, error) {
		var in []object.TreeEntry
		for i := 0; i < len(paths); {
			name, _, deeper := strings.Cut(paths[i][len(prefix):], "/")
			if !deeper {
				e := entries[paths[i]]
				e.Name = name
				in = append(in, e)
				i++
				continue
			}
			sub, end := prefix+name+"/", i
			for end < len(paths) && strings.HasPrefix(paths[end], sub) {
				end++
			}
			id, err := build(sub, paths[i:end])
			if err != nil {
				return object.ID{}, err
			}
			in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: name, ID: id})
			i = end
		}
		object.SortEntries(in)
		return wr.Add(object.Tree, object.AppendTree(nil, in))
	}
	tree, err := build("", paths)
	if err != nil {
		return "", err
	}
	m := meta{Version: 1, Modes: modes{File: 0o644, Exec: 0o755, Dir: 0o755}, Root: 0o755}
	js, err := m.encode()
	if err != nil {
		return "", err
	}
	metaID, err := wr.Add(object.Blob, js)
	if err != nil {
		return "", err
	}
	id, err := wr.Add(object.Tree, object.AppendTree(nil, []object.TreeEntry{
		{Mode: object.ModeFile, Name: "meta", ID: metaID}, {Mode: object.ModeDir, Name: "tree", ID: tree}}))
	return Commit(id.String()), err
}
