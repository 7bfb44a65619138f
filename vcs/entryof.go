package vcs

import "github.com/retcon-dev/retcon/vcs/internal/object"

// entryOf is the entry of a stat cache that would be captured as n. It has no
// stamps, and no child where it is a directory.
func entryOf(n *node) entry {
	e := entry{child: -1, id: n.id, mode: n.Mode, size: n.Size}
	switch {
	case n.Sparse:
		e.class, e.mode = classSparse, n.git
	case n.Kind == KindFile && n.Ignored:
		e.class = classIgnoredFile
	case n.Kind == KindFile:
		e.class = classFile
		if n.git == object.ModeExec {
			e.flags |= flagExec
		}
		if n.Reason != "" {
			e.flags |= flagTorn
		}
	case n.Kind == KindLink:
		e.class = classLink
	case n.Kind == KindGitlink:
		e.class = classGitlink
	case n.isDir():
		e.class, e.mode, e.id = classDir, 0, object.ID{}
		if n.Kind == KindRepo && n.git == object.ModeGitlink { // where its HEAD is
			e.id = n.id
		}
	case n.Kind == KindSpecial:
		e.class = classSpecial
	case n.Kind == KindUnknown:
		e.class, e.reason = classSkipped, reasonOf(n.Reason)
	default:
		e.class, e.id = classIgnored, object.ID{}
	}
	return e
}

// reasonOf is the Reason that has this text.
func reasonOf(text string) Reason {
	for r := TooLarge; r < Reserved; r++ {
		if r.String() == text {
			return r
		}
	}
	return Reserved
}

// onlySparse tells that nothing in a directory is on disk.
func onlySparse(dirs []*dirRec, d *dirRec) bool {
	if len(d.entries) == 0 || d.flags&(dirFresh|dirNested) != 0 {
		return false
	}
	for i := range d.entries {
		e := &d.entries[i]
		if e.class != classSparse && (e.class != classDir || dirs[e.child].flags&dirVirtual == 0) {
			return false
		}
	}
	return true
}

func nestedFlag(n *node) uint32 {
	if n.Kind == KindRepo {
		return dirNested
	}
	return 0
}
