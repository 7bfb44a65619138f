package vcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// checkout is a commit on its way into an empty directory. Its records become
// the stat cache of what is made.
type checkout struct {
	ctx    context.Context
	o      *owned
	opt    CheckoutOptions
	modes  modes
	rootfd int
	dirs   []*dirRec // the root first, parents before children
	repos  []inner
	donor  *donor
	owner  atomic.Uint64 // uid and gid of what we make
}

// inner is a repository inside.
type inner struct {
	path string
	head object.ID
}

func newCheckout(ctx context.Context, o *owned, r *commitRoot, opt CheckoutOptions, rootfd int) *checkout {
	return &checkout{ctx: ctx, o: o, opt: opt, modes: r.meta.Modes, rootfd: rootfd, donor: newDonor(o.w)}
}

func (co *checkout) close() { co.donor.close() }

// fill makes all of it: directories, files, repositories, and then the
// permission bits of directories, the deepest first.
func (co *checkout) fill(r *commitRoot) error {
	co.add(-1, "", r.meta.Root, 0)
	if err := co.plan(r.top, 0); err != nil {
		return err
	}
	if err := co.makeDirs(); err != nil {
		return err
	}
	if err := co.writeFiles(); err != nil {
		return err
	}
	for i := range co.repos {
		if err := co.makeRepo(i); err != nil {
			return fmt.Errorf("repository in %s: %w", co.repos[i].path, err)
		}
	}
	return co.finishDirs()
}

func (co *checkout) add(parent int32, path string, mode, flags uint32) int32 {
	co.dirs = append(co.dirs, &dirRec{path: path, parent: parent, mode: mode & 0o7777, flags: flags | dirRacy, ignoreAt: -1})
	return int32(len(co.dirs) - 1)
}

// plan makes the records of a directory and of all below it.
func (co *checkout) plan(lv level, at int32) error {
	if err := co.ctx.Err(); err != nil {
		return err
	}
	nodes, err := co.o.w.list(lv, co.modes)
	if err != nil {
		return err
	}
	d := co.dirs[at]
	d.tree, d.aux = lv.tree, lv.aux
	for i := range nodes {
		n := &nodes[i]
		e := entryOf(n)
		switch e.class {
		case classDir:
			if e.child, err = co.planDir(n, at); err != nil {
				return err
			}
		case classIgnoredFile:
			if !co.opt.Ignored && n.name != ".gitignore" {
				d.flags |= dirFresh
				continue
			}
		case classFile:
			if e.flags&flagTorn != 0 { // here it is not in the middle of a change
				e.flags &^= flagTorn
				d.flags |= dirFresh
			}
		case classLink, classGitlink, classSparse:
		default: // not captured: the capture of what is made finds something else here
			d.flags |= dirFresh
			continue
		}
		d.add([]byte(n.name), e)
	}
	return nil
}

func (co *checkout) planDir(n *node, at int32) (int32, error) {
	path := join(co.dirs[at].path, n.name)
	if n.Kind == KindRepo {
		in := inner{path: path}
		if n.git == object.ModeGitlink {
			in.head = n.id
		}
		co.repos = append(co.repos, in)
	}
	child := co.add(at, path, n.Mode, nestedFlag(n))
	if err := co.plan(n.sub, child); err != nil {
		return child, err
	}
	if d := co.dirs[child]; onlySparse(co.dirs, d) {
		d.flags = dirVirtual
	}
	return child, nil
}

func (co *checkout) makeDirs() error {
	for i, d := range co.dirs {
		if d.flags&dirVirtual != 0 {
			continue
		}
		if i > 0 {
			if err := co.makeDir(d.path); err != nil {
				return err
			}
		}
		for j := range d.entries {
			if e := &d.entries[j]; e.class == classGitlink {
				path := join(d.path, string(d.name(e)))
				if err := co.makeDir(path); err != nil {
					return err
				}
				if err := co.in(path, func(fd int, name string) error { return chmodAt(fd, name, e.mode&0o7777) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (co *checkout) makeDir(path string) error {
	return co.in(path, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o700) })
}

// in calls f with the directory that path lies in, opened below the root.
func (co *checkout) in(path string, f func(fd int, name string) error) error {
	dir, name := split(path)
	fd, err := openDirAt(co.rootfd, dir)
	if err == nil {
		err = f(fd, name)
		unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// writeFiles writes the content of every directory, on all cores.
func (co *checkout) writeFiles() error {
	type part struct {
		d        *dirRec
		from, to int
	}
	var parts []part
	for _, d := range co.dirs {
		for from := 0; from < len(d.entries) && d.flags&dirVirtual == 0; from += chunk {
			parts = append(parts, part{d, from, min(from+chunk, len(d.entries))})
		}
	}
	g, ctx := errgroup.WithContext(co.ctx)
	var next atomic.Int64
	for range min(max(2, runtime.GOMAXPROCS(0)), 8) {
		g.Go(func() error {
			buf := make([]byte, 0, 64<<10)
			for {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					return nil
				}
				p := parts[i]
				if err := co.writePart(ctx, p.d, p.from, p.to, &buf); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func (co *checkout) writePart(ctx context.Context, d *dirRec, from, to int, buf *[]byte) error {
	fd, err := openDirAt(co.rootfd, d.path)
	if err != nil {
		return &os.PathError{Op: "open", Path: d.path, Err: err}
	}
	defer unix.Close(fd)
	for i := from; i < to; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &d.entries[i]
		switch e.class {
		case classFile, classIgnoredFile:
			err = co.writeFile(fd, d, e, buf)
		case classLink:
			err = co.writeLink(fd, d, e, buf)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", join(d.path, string(d.name(e))), err)
		}
	}
	return nil
}

func (co *checkout) writeLink(dirfd int, d *dirRec, e *entry, buf *[]byte) error {
	_, target, err := co.o.w.store.ReadVerified(e.id, *buf)
	if err != nil {
		return err
	}
	name := string(d.name(e))
	if err := unix.Symlinkat(string(target), dirfd, name); err != nil {
		return err
	}
	var st fileStat
	if err := statName(dirfd, name, &st); err != nil {
		return err
	}
	e.setStat(&st)
	return nil
}

func (co *checkout) writeFile(dirfd int, d *dirRec, e *entry, buf *[]byte) error {
	name := string(d.name(e))
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, e.mode&0o777)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	given, err := co.donor.give(fd, d.path, name, e.id)
	if err == nil && !given {
		err = co.o.w.writeBlob(fd, e.id, buf)
	}
	if err != nil {
		return err
	}
	stat := func() error { return retry(func() error { return unix.Fstat(fd, &st) }) }
	if err := stat(); err != nil {
		return err
	}
	if uint32(st.Mode)&0o7777 != e.mode&0o7777 { // the umask took some
		if err := errors.Join(unix.Fchmod(fd, e.mode&0o7777), stat()); err != nil {
			return err
		}
	}
	co.owner.Store(uint64(st.Uid)<<32 | uint64(st.Gid)) // the same for all: nothing in here has a set-group-id bit yet
	var is fileStat
	fromStat(&st, &is)
	e.setStat(&is)
	return nil
}

// writeBlob writes the verified content of a blob to an empty file.
func (w *Worktree) writeBlob(fd int, id object.ID, buf *[]byte) error {
	kind, data, err := w.store.ReadSmall(id, *buf, stream-1)
	switch {
	case errors.Is(err, object.ErrLarge):
		return w.streamBlob(fd, id)
	case err != nil:
		return err
	case kind != object.Blob:
		return fmt.Errorf("%w: %s is a %v", ErrDamaged, id, kind)
	}
	if cap(data) > cap(*buf) {
		*buf = data[:0]
	}
	return writeAll(fd, data)
}

func (w *Worktree) streamBlob(fd int, id object.ID) error {
	kind, size, r, err := w.store.Stream(id)
	if err != nil {
		return err
	}
	defer r.Close()
	if kind != object.Blob {
		return fmt.Errorf("%w: %s is a %v", ErrDamaged, id, kind)
	}
	h := object.NewHasher()
	h.Reset(object.Blob, size)
	if _, err := io.CopyBuffer(io.MultiWriter(fdWriter(fd), h), struct{ io.Reader }{r}, make([]byte, 256<<10)); err != nil {
		return err
	}
	if h.Sum() != id {
		return &object.CorruptError{ID: id}
	}
	return nil
}

// makeRepo gives the repository inside a git directory of its own, if the
// workspace still has it. Without, it is a directory like any other.
func (co *checkout) makeRepo(i int) error {
	in := co.repos[i]
	from, err := repo.Open(co.o.w.root+"/"+in.path, co.o.w.opt.repoOptions())
	if err != nil {
		return nil //nolint:nilerr // what is not there cannot lend objects
	}
	if _, only := from.FilesOnly(); only {
		return nil
	}
	name := fmt.Sprintf("nested-%d", i)
	head := repo.Head{}
	if !in.head.IsZero() {
		head.ID = in.head.String()
	}
	if err := co.o.gitDir(from, name, head); err != nil {
		return err
	}
	err = co.in(join(in.path, ".git"), func(fd int, _ string) error {
		return writeNew(fd, ".git", []byte("gitdir: "+co.o.nestedFrom(in.path, name)+"\n"))
	})
	if err != nil {
		return err
	}
	made, err := repo.Open(co.o.root+"/"+in.path, co.o.w.opt.repoOptions())
	if err != nil {
		return err
	}
	entries, err := headEntries(made, co.o.w.store)
	if err != nil {
		return err
	}
	return co.writeIndex(made, in.path, entries)
}

// nestedFrom is from for the pointer in a directory below the root.
func (o *owned) nestedFrom(path, name string) string {
	to := o.from(filepath.Join(o.home, name))
	if filepath.IsAbs(to) {
		return to
	}
	return strings.Repeat("../", strings.Count(path, "/")+1) + to
}

// finishDirs sets the permission bits of directories and notes their stamps.
func (co *checkout) finishDirs() error {
	for i := len(co.dirs) - 1; i >= 0; i-- {
		d := co.dirs[i]
		if d.flags&dirVirtual != 0 {
			continue
		}
		fd, err := openDirAt(co.rootfd, d.path)
		if err != nil {
			return &os.PathError{Op: "open", Path: d.path, Err: err}
		}
		mode := d.mode
		if i == 0 {
			mode |= 0o700
		}
		var st fileStat
		err = unix.Fchmod(fd, mode)
		if err == nil {
			err = statFd(fd, &st)
		}
		unix.Close(fd)
		if err != nil {
			return &os.PathError{Op: "chmod", Path: d.path, Err: err}
		}
		d.setStat(&st)
	}
	return nil
}

// writeIndex writes entries, of paths below dir, with what is known of their
// files. An entry kept off the disk says so.
func (co *checkout) writeIndex(r *repo.Repo, dir string, entries []repo.IndexEntryOut) error {
	at := make(map[string]*dirRec, len(co.dirs))
	for _, d := range co.dirs {
		at[d.path] = d
	}
	owner := co.owner.Load()
	for i := range entries {
		x := &entries[i]
		if x.Stage != 0 {
			continue
		}
		d, e := findEntry(at, join(dir, x.Name))
		switch {
		case e == nil:
		case e.class == classSparse:
			x.Flags |= repo.SkipWorktree
		case e.class == classFile && x.Mode == gitMode(e) || e.class == classLink && x.Mode == repo.ModeSymlink:
			if object.ID(x.OID) == e.id && x.Flags == 0 {
				x.Ctime, x.Mtime = stamp32(e.ctime), stamp32(e.mtime)
				x.Dev, x.Ino, x.Size = uint32(d.dev), uint32(e.ino), uint32(e.size)
				x.UID, x.GID = uint32(owner>>32), uint32(owner)
			}
		}
	}
	return r.WriteIndex(entries, repo.IndexSignature{})
}

// findEntry finds a path, or the sparse directory it would lie in.
func findEntry(at map[string]*dirRec, path string) (*dirRec, *entry) {
	for {
		dir, base := split(path)
		if d := at[dir]; d != nil {
			if i, ok := d.find(base); ok {
				return d, &d.entries[i]
			}
			return nil, nil
		}
		path = dir
	}
}

func gitMode(e *entry) uint32 {
	if e.flags&flagExec != 0 {
		return repo.ModeExec
	}
	return repo.ModeFile
}

func stamp32(ns int64) repo.Timestamp {
	return repo.Timestamp{Sec: uint32(ns / 1e9), Nsec: uint32(ns % 1e9)}
}
