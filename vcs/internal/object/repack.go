package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// RepackOptions says what to keep. Roots is required.
type RepackOptions struct {
	// Roots yields every tree and commit that must stay, newest first, and
	// returns the error of yield. It is called twice: to find what to pack,
	// and again when nobody is between writing and recording.
	Roots func(yield func(ID) error) error

	// Absent tells objects that were never here, as those a partial clone
	// left at its remote. Any other that is missing stops the repack.
	Absent func(ID) bool

	// Full also packs anew what an earlier repack has packed.
	Full bool

	// FreeSpace returns the bytes free where the store is; nil is not to ask.
	FreeSpace func() int64

	// Progress is told what is done, in objects; total is 0 when unknown.
	Progress func(stage string, done, total int)

	// Crash is called at each step with its name, so that a test can die
	// there.
	Crash func(name string)
}

// RepackStats says what a Repack did.
type RepackStats struct {
	Live         int // objects reached
	Packed       int // of them, written anew
	Deltas       int // of those, as deltas
	Bytes        int64
	PacksRemoved int
	PacksKept    int
	LooseRemoved int
	Freed        int64 // bytes of files removed that nobody else has
}

// keepAbove is the size of a pack which is kept, when it is mostly alive,
// rather than written anew. Tests lower it.
var keepAbove int64 = 64 << 20

// Repack writes what the roots reach into one pack, small, and removes the
// rest. Packs shared with the user's repository cost nothing and stay while a
// tenth of them is alive; large ones that are mostly alive stay too.
//
// If anything reachable cannot be read, nothing is removed: the error says
// what. One repack runs at a time, the second gets a *LockedError. Readers
// and writers go on meanwhile; for the removal it waits, as long as ctx
// allows, until no shared lock is held. A process that dies at any moment
// loses nothing; the next repack removes what it left.
func (s *Store) Repack(ctx context.Context, opt RepackOptions) (RepackStats, error) {
	if opt.Crash == nil {
		opt.Crash = func(string) {}
	}
	one, err := os.OpenFile(filepath.Join(s.dir, "repack.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return RepackStats{}, fmt.Errorf("repack: %w", err)
	}
	defer one.Close()
	if err := flockNow(one, unix.LOCK_EX); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return RepackStats{}, &LockedError{Path: one.Name()}
		}
		return RepackStats{}, fmt.Errorf("repack: %w", err)
	}
	r := &repacker{s: s, opt: opt, mark: newMarker(s, opt)}
	if err := r.run(ctx); err != nil {
		return r.stats, fmt.Errorf("repack: %w", err)
	}
	return r.stats, nil
}

// A repacker is one run. What was there when it began is in packs and loose;
// nothing else is ever removed.
type repacker struct {
	s     *Store
	opt   RepackOptions
	mark  *marker
	stats RepackStats

	packs   []*oldPack
	loose   map[ID]looseInfo
	pending []string // of dead processes
	made    []string // packs written, without suffix
}

type oldPack struct {
	*pack
	size   int64
	shared bool // with somebody's repository
	ours   bool // made by an earlier repack
	live   int
	bytes  int64 // of live objects
	keep   bool
}

type looseInfo struct {
	path   string
	size   int64
	shared bool
}

func (r *repacker) run(ctx context.Context) error {
	if err := r.survey(); err != nil {
		return err
	}
	if err := r.mark.all(ctx, r.opt.Roots); err != nil {
		return err
	}
	r.opt.Crash("marked")
	if err := r.judge(); err != nil {
		return err
	}
	if err := r.pack(ctx, r.homeless()); err != nil {
		return err
	}
	r.opt.Crash("packed")

	lock, err := r.s.lock(ctx, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	r.opt.Crash("locked")
	r.s.rescan(r.s.cur.Load())
	if err := r.mark.all(ctx, r.opt.Roots); err != nil {
		return err
	}
	if late := r.homeless(); len(late) > 0 {
		if err := r.pack(ctx, late); err != nil {
			return err
		}
		r.opt.Crash("late")
	}
	r.stats.Live = len(r.mark.nodes)
	return r.sweep(lock)
}

// survey lists what is there.
func (r *repacker) survey() error {
	set := r.s.rescan(r.s.cur.Load())
	own := readRepacked(r.s.dir)
	for _, p := range set.packs {
		if filepath.Dir(p.base) != r.s.packDir() {
			continue // of an alternate: not ours
		}
		var st unix.Stat_t
		if err := unix.Stat(p.packPath(), &st); err != nil {
			return &os.PathError{Op: "stat", Path: p.packPath(), Err: err}
		}
		r.packs = append(r.packs, &oldPack{
			pack: p, size: st.Size, shared: st.Nlink > 1, ours: own[filepath.Base(p.base)],
		})
	}
	r.loose = map[ID]looseInfo{}
	for i := range 256 {
		sub := fmt.Sprintf("%02x", i)
		names, err := readNames(filepath.Join(r.s.objects[0], sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, n := range names {
			id, err := looseID(sub, n)
			if err != nil {
				continue
			}
			path := filepath.Join(r.s.objects[0], sub, n)
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil {
				return &os.PathError{Op: "stat", Path: path, Err: err}
			}
			r.loose[id] = looseInfo{path, st.Size, st.Nlink > 1}
		}
	}
	open, err := r.s.pendings()
	if err != nil {
		return err
	}
	for _, n := range open {
		path := filepath.Join(r.s.dir, n)
		f, err := os.Open(path)
		if err != nil {
			continue // its owner is done
		}
		if flockNow(f, unix.LOCK_EX) == nil {
			r.pending = append(r.pending, path)
		}
		f.Close()
	}
	return nil
}

// judge decides which packs stay. An unreadable one stops the repack: what
// it holds may be alive.
func (r *repacker) judge() error {
	for _, p := range r.packs {
		x, err := p.index()
		if err != nil {
			return err
		}
		order := x.byOffset()
		for k, i := range order {
			if _, ok := r.mark.index[x.id(int(i))]; !ok {
				continue
			}
			end := p.size - 20
			if k+1 < len(order) {
				end = x.offset(int(order[k+1]))
			}
			p.live++
			p.bytes += end - x.offset(int(i))
		}
		switch {
		case p.live == 0:
		case p.shared:
			p.keep = p.bytes >= p.size/10
		case !r.opt.Full && p.size >= keepAbove:
			p.keep = p.bytes >= p.size/5*4
		}
	}
	if !r.opt.Full {
		r.keepLone()
	}
	return r.trustKept()
}

// trustKept reads what would be left with its copy in a pack that is kept,
// since another copy goes: it may be the good one.
func (r *repacker) trustKept() error {
	for _, p := range r.packs {
		if p.keep || p.live == 0 {
			continue
		}
		x, err := p.index()
		if err != nil {
			return err
		}
		for i := range x.count {
			id := x.id(i)
			if _, live := r.mark.index[id]; !live {
				continue
			}
			if err := r.verifyKept(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *repacker) verifyKept(id ID) error {
	for _, k := range r.packs {
		if !k.keep {
			continue
		}
		x, err := k.index()
		if err != nil {
			return err
		}
		if i := x.find(&id); i >= 0 {
			return k.verify(id, x.offset(i), &r.s.cache)
		}
	}
	return nil
}

// keepLone keeps the pack of the last repack when there would be nothing else
// to write.
func (r *repacker) keepLone() {
	var lone *oldPack
	for _, p := range r.packs {
		if p.live == 0 || p.keep {
			continue
		}
		if lone != nil {
			return
		}
		lone = p
	}
	if lone == nil || !lone.ours {
		return
	}
	if x, err := lone.index(); err != nil || x.count != lone.live {
		return
	}
	lone.keep = true
	if len(r.homeless()) > 0 {
		lone.keep = false
	}
}

// homeless returns the nodes that are in nothing that stays.
func (r *repacker) homeless() []int32 {
	stay := r.staying()
	var out []int32
	for i := range r.mark.nodes {
		n := &r.mark.nodes[i]
		if n.off > 0 || stay.has(&n.id) {
			continue
		}
		if l, ok := r.loose[n.id]; ok && l.shared {
			continue
		}
		out = append(out, int32(i))
	}
	return out
}

type packList []*pack

func (l packList) has(id *ID) bool {
	for _, p := range l {
		if x, err := p.index(); err == nil && x.find(id) >= 0 {
			return true
		}
	}
	return false
}

// staying returns the packs that will not be removed, those that came since
// the survey among them.
func (r *repacker) staying() packList {
	going := map[string]bool{}
	for _, p := range r.packs {
		if !p.keep {
			going[p.base] = true
		}
	}
	var stay packList
	for _, p := range r.s.set().packs {
		if !going[p.base] || r.isMade(p.base) {
			stay = append(stay, p)
		}
	}
	return stay
}

func (r *repacker) isMade(base string) bool {
	for _, m := range r.made {
		if m == base {
			return true
		}
	}
	return false
}

// sweep removes. The exclusive lock is held, and everything alive is in what
// stays: that is checked once more, object by object.
func (r *repacker) sweep(lock *os.File) error {
	r.s.rescan(r.s.cur.Load())
	stay := r.staying()
	for i := range r.mark.nodes {
		id := &r.mark.nodes[i].id
		if l, ok := r.loose[*id]; !stay.has(id) && !(ok && l.shared) {
			if r.s.Has(*id) { // came loose meanwhile
				continue
			}
			return &MissingError{ID: *id}
		}
	}
	partial, packed := r.lists()
	if err := writeList(filepath.Join(r.s.dir, partialName), partial); err != nil {
		return err
	}
	if err := writeList(filepath.Join(r.s.dir, repackedName), packed); err != nil {
		return err
	}
	r.opt.Crash("listed")
	if err := bumpGeneration(lock); err != nil {
		return err
	}
	r.opt.Crash("counted")
	if err := r.removePacks(); err != nil {
		return err
	}
	if err := r.removeLoose(); err != nil {
		return err
	}
	r.opt.Crash("removed")
	for _, path := range r.pending {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := r.tidy(); err != nil {
		return err
	}
	r.s.rescan(r.s.cur.Load())
	r.opt.Crash("done")
	return nil
}

// repackedName lists the packs that repacks have made.
const repackedName = "repacked"

func readRepacked(dir string) map[string]bool {
	return readList(filepath.Join(dir, repackedName), func(line string) (string, bool) { return line, line != "" })
}

// lists returns the packs that keep dead objects, whose own mentions may now
// go, and those made by this and earlier repacks.
func (r *repacker) lists() (partial, packed []string) {
	for _, m := range r.made {
		packed = append(packed, filepath.Base(m))
	}
	before := readPartial(r.s.dir)
	for _, p := range r.packs {
		if !p.keep || r.isMade(p.base) {
			continue
		}
		name := filepath.Base(p.base)
		if x, err := p.index(); err != nil || x.count != p.live || before[name] {
			partial = append(partial, name)
		}
		if p.ours {
			packed = append(packed, name)
		}
	}
	return partial, packed
}

func (r *repacker) removePacks() error {
	for _, p := range r.packs {
		if p.keep || r.isMade(p.base) {
			r.stats.PacksKept++
			continue
		}
		// The index first: a pack without one is a left-over that gets removed.
		for _, path := range []string{p.idxPath(), p.packPath()} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.opt.Crash("remove" + filepath.Ext(path))
		}
		r.stats.PacksRemoved++
		if !p.shared {
			r.stats.Freed += p.size
		}
	}
	return syncDir(r.s.packDir())
}

func (r *repacker) removeLoose() error {
	stay := r.staying()
	for id, l := range r.loose {
		if _, live := r.mark.index[id]; live && !stay.has(&id) {
			continue
		}
		if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.opt.Crash("remove.loose")
		r.stats.LooseRemoved++
		if !l.shared {
			r.stats.Freed += l.size
		}
	}
	for i := range 256 {
		os.Remove(filepath.Join(r.s.objects[0], fmt.Sprintf("%02x", i))) // only if empty
	}
	return nil
}

// tidy removes left-overs; the exclusive lock is held.
func (r *repacker) tidy() error {
	names, err := readNames(r.s.packDir())
	if err != nil {
		return err
	}
	var orphans []string
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, tempPrefix):
			if err := removeIdle(filepath.Join(r.s.packDir(), n)); err != nil {
				return err
			}
		case strings.HasSuffix(n, ".pack"):
			orphans = append(orphans, n)
		}
	}
	return removeOrphanFiles(r.s.packDir(), orphans)
}
