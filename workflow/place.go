package workflow

import (
	"sync"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/vcs"
)

// files are the content of a worktree: a commit, and the tree that a digest
// covers.
type files struct {
	commit vcs.Commit
	tree   string
	id     int64 // a checkpoint that has it
}

// place is a worktree that tasks run in. Which content it ought to have follows
// from the versions; the directory gets it when a task is to run there.
type place struct {
	id     string // the scope that made it; "" for the run's own worktree
	base   *version
	newest *version

	mu       sync.Mutex // around the directory
	recorder *checkpoint.Recorder
	worktree int64         // the ledger's row
	known    files         // what the directory was last seen to hold
	switched *switchedNote // a change to it that was begun and not seen to end
	moved    bool          // it was put to another content, and not captured since
	cut      bool          // an attempt that ran here since known has died with its process
}

// version is a place between two writers.
type version struct {
	place   *place
	prev    *version // nil for the first
	writer  *task    // nil for the first
	from    *version // of the first of a branch's place: the version it began with
	readers []*task
	start   files  // of the first of the run's own place
	over    *files // what it became without a writer: by hand, or by a reader that wrote
}

func (e *engine) newPlace(b *branch) *place {
	p := &place{id: b.scope}
	p.base = &version{place: p, from: b.place.newest}
	p.newest = p.base
	e.places = append(e.places, p)
	return p
}

func (p *place) write(t *task) *version {
	p.newest = &version{place: p, prev: p.newest, writer: t}
	return p.newest
}

// before is the last writer before a task.
func (v *version) before(t *task) *task {
	if v.writer == t {
		return v.prev.lastWriter()
	}
	return v.lastWriter()
}

func (v *version) lastWriter() *task {
	for v != nil && v.writer == nil {
		v = v.from
	}
	if v == nil {
		return nil
	}
	return v.writer
}

// reached tells that nothing has to happen any more for a directory to have
// this version.
func (v *version) reached() bool {
	switch {
	case v.writer != nil:
		return v.writer.out != nil
	case v.from != nil:
		return v.from.reached()
	}
	return true
}

// free tells that a task finds its place as it was declared to: its version is
// reached, and a writer disturbs nobody.
func (t *task) free() bool {
	v := t.ver
	if v == nil {
		return true
	}
	if v.writer != t {
		return v.reached()
	}
	if !v.prev.reached() {
		return false
	}
	for _, r := range v.prev.readers {
		if r.out == nil {
			return false
		}
	}
	for _, side := range t.sides {
		if !side.quiet() {
			return false
		}
	}
	return true
}

// quiet tells that all that was declared in a place has ended.
func (p *place) quiet() bool {
	for v := p.newest; v != nil; v = v.prev {
		if !v.reached() {
			return false
		}
		for _, r := range v.readers {
			if r.out == nil {
				return false
			}
		}
	}
	return true
}

// content is what the place holds at a version that was reached.
func (v *version) content() files {
	if v.over != nil {
		return *v.over
	}
	return v.made()
}

// made is what its writer made of the place, without what others did to it
// afterwards.
func (v *version) made() files {
	for {
		switch {
		case v.writer != nil && v.writer.left.tree != "":
			return v.writer.left
		case v.prev != nil:
			v = v.prev
		case v.from != nil:
			v = v.from
		default:
			return v.start
		}
		if v.over != nil {
			return *v.over
		}
	}
}

// entry is the content that a task is to begin with.
func (t *task) entry() files {
	if t.ver.writer == t {
		return t.ver.prev.content()
	}
	return t.ver.content()
}

// entries are the contents that a task can have begun with: of two that read
// side by side, one may have begun before somebody changed a file.
func (t *task) entries() []files {
	if t.ver.writer != t && t.ver.over != nil {
		return []files{t.ver.content(), t.ver.made()}
	}
	return []files{t.entry()}
}

// tree is what a writer left, as a frame has it.
func (t *task) tree() string {
	if t.decl.Fx.reads() {
		return t.left.tree
	}
	return ""
}

// settledContent is what the place holds as far as its writers have ended.
func (p *place) settledContent() files {
	v := p.newest
	for v.prev != nil && !v.reached() {
		v = v.prev
	}
	return v.content()
}
