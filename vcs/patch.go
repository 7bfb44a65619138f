package vcs

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// DefaultContext is how many unchanged lines stand around a change.
const DefaultContext = 3

// maxText is the size from which a file is not compared by lines.
const maxText = 1 << 20

// PatchOptions say how a patch looks.
type PatchOptions struct {
	Context int // unchanged lines around a change; DefaultContext when 0, none when negative
}

// Patch writes changes as git diff would, so that git apply makes Old into New.
//
// A file that is not text, or larger than 1 MiB, is named and not shown; so is
// what a patch cannot say: a special file, content that was not captured. Those
// lines begin with '#' and git skips them. Directories and permission bits
// other than the executable one are left out, as git leaves them out.
//
// The same changes are always the same bytes. The time a pathological pair of
// files takes is bounded: past the bound the whole stretch is replaced.
func (w *Worktree) Patch(out io.Writer, changes []FileChange, opt PatchOptions) error {
	switch {
	case opt.Context == 0:
		opt.Context = DefaultContext
	case opt.Context < 0:
		opt.Context = 0
	}
	for _, c := range changes {
		old, err := w.side(c.Old)
		if err != nil {
			return fmt.Errorf("patch of %s: %w", c.Path, err)
		}
		new, err := w.side(c.New)
		if err != nil {
			return fmt.Errorf("patch of %s: %w", c.Path, err)
		}
		var b bytes.Buffer
		patchOf(&b, c.Path, old, new, opt.Context)
		if _, err := out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// FileStat counts what a change did to the lines of a file. Added and Removed
// are 0 where Binary is set, and for what has no lines.
type FileStat struct {
	Path             string
	Added, Removed   int
	Binary           bool
	OldSize, NewSize int64 // bytes; 0 for what is absent or has no content, -1 when not known
}

// LineStats returns one FileStat for each change, in the same order.
func (w *Worktree) LineStats(changes []FileChange) ([]FileStat, error) {
	stats := make([]FileStat, 0, len(changes))
	for _, c := range changes {
		old, err := w.side(c.Old)
		if err != nil {
			return nil, fmt.Errorf("lines of %s: %w", c.Path, err)
		}
		new, err := w.side(c.New)
		if err != nil {
			return nil, fmt.Errorf("lines of %s: %w", c.Path, err)
		}
		st := FileStat{Path: c.Path, OldSize: old.size, NewSize: new.size, Binary: old.binary || new.binary}
		if !st.Binary {
			for _, e := range diffLines(lines(old.data), lines(new.data)) {
				st.Removed += e.oldTo - e.oldFrom
				st.Added += e.newTo - e.newFrom
			}
		}
		stats = append(stats, st)
	}
	return stats, nil
}

// side is one state as a patch sees it.
type side struct {
	mode   uint32 // git's; 0 when a patch has nothing to say about it
	id     string
	data   []byte
	size   int64
	binary bool
	note   string // why there is nothing to say
}

const nullID = "0000000000000000000000000000000000000000"

func (w *Worktree) side(s State) (side, error) {
	v := side{id: nullID}
	switch s.Kind {
	case KindFile:
		v.mode = object.ModeFile
		if s.Mode&0o100 != 0 {
			v.mode = object.ModeExec
		}
	case KindLink:
		v.mode = object.ModeSymlink
	case KindGitlink:
		v.mode, v.id = object.ModeGitlink, s.ID
		v.data = []byte("Subproject commit " + s.ID + "\n")
		return v, nil
	case KindSpecial:
		v.note = specialName(s.Mode)
		return v, nil
	case KindUnknown, KindIgnored:
		v.size, v.note = s.Size, "not captured"
		if s.Reason != "" {
			v.note += " (" + s.Reason + ")"
		}
		return v, nil
	default:
		return v, nil
	}
	id, err := object.ParseID(s.ID)
	if err != nil {
		return v, err
	}
	v.id = s.ID
	if _, v.size, err = w.store.Header(id); err != nil {
		return v, err
	}
	if v.size > maxText {
		v.binary = true
		return v, nil
	}
	if _, v.data, err = w.store.ReadVerified(id, nil); err != nil {
		return v, err
	}
	v.binary = s.Kind == KindFile && bytes.IndexByte(v.data, 0) >= 0
	return v, nil
}

func specialName(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

// patchOf appends the patch of one path. What becomes something of another kind
// goes and comes, in two patches.
func patchOf(b *bytes.Buffer, path string, old, new side, context int) {
	if old.note != new.note || old.note != "" {
		fmt.Fprintf(b, "# %s: %s\n", quotePath("", path), note(old, new))
	}
	switch {
	case old.mode == 0 && new.mode == 0:
	case old.mode != 0 && new.mode != 0 && old.mode&unix.S_IFMT != new.mode&unix.S_IFMT:
		patchPair(b, path, old, side{id: nullID}, context)
		patchPair(b, path, side{id: nullID}, new, context)
	default:
		patchPair(b, path, old, new, context)
	}
}

func note(old, new side) string {
	says := func(s side) string {
		switch {
		case s.note != "":
			return s.note
		case s.mode != 0:
			return "in the patch"
		}
		return "none"
	}
	if o, n := says(old), says(new); o != n {
		return o + " before, " + n + " after"
	}
	return old.note
}

func patchPair(b *bytes.Buffer, path string, old, new side, context int) {
	if old.mode == new.mode && old.id == new.id {
		return
	}
	fmt.Fprintf(b, "diff --git %s %s\n", quotePath("a/", path), quotePath("b/", path))
	index := fmt.Sprintf("index %.7s..%.7s", old.id, new.id)
	from, to := quotePath("a/", path), quotePath("b/", path)
	switch {
	case old.mode == 0:
		fmt.Fprintf(b, "new file mode %o\n", new.mode)
		from = "/dev/null"
	case new.mode == 0:
		fmt.Fprintf(b, "deleted file mode %o\n", old.mode)
		to = "/dev/null"
	case old.mode != new.mode:
		fmt.Fprintf(b, "old mode %o\nnew mode %o\n", old.mode, new.mode)
	default:
		index += fmt.Sprintf(" %o", old.mode)
	}
	if old.id == new.id {
		return
	}
	fmt.Fprintln(b, index)
	if old.binary || new.binary {
		fmt.Fprintf(b, "Binary files %s and %s differ\n", from, to)
		return
	}
	a, z := lines(old.data), lines(new.data)
	edits := diffLines(a, z)
	if len(edits) == 0 {
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", endName(from), endName(to))
	writeHunks(b, a, z, edits, context)
}

// endName ends a name with blanks in a tab, as git does for tools that would
// take what follows a blank for a time.
func endName(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// writeHunks groups edits that are close and writes them with their context.
func writeHunks(b *bytes.Buffer, a, z [][]byte, edits []edit, context int) {
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].oldFrom-edits[n-1].oldTo <= 2*context {
			n++
		}
		group := edits[:n]
		edits = edits[n:]
		before := min(context, group[0].oldFrom)
		last := group[n-1]
		after := min(context, len(a)-last.oldTo)
		oldFrom, newFrom := group[0].oldFrom-before, group[0].newFrom-before
		fmt.Fprintf(b, "@@ -%s +%s @@\n", span(oldFrom, last.oldTo+after), span(newFrom, last.newTo+after))
		at := oldFrom
		for _, e := range group {
			writeLines(b, ' ', a[at:e.oldFrom])
			writeLines(b, '-', a[e.oldFrom:e.oldTo])
			writeLines(b, '+', z[e.newFrom:e.newTo])
			at = e.oldTo
		}
		writeLines(b, ' ', a[at:last.oldTo+after])
	}
}

// span is a range of lines, counted from 1; of an empty one, the line before.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(b *bytes.Buffer, sign byte, ls [][]byte) {
	for _, l := range ls {
		b.WriteByte(sign)
		b.Write(l)
		if l[len(l)-1] != '\n' {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// lines splits data after each line end.
func lines(data []byte) [][]byte {
	if len(data) == 0 {
		return nil
	}
	ls := bytes.SplitAfter(data, []byte{'\n'})
	if len(ls[len(ls)-1]) == 0 {
		ls = ls[:len(ls)-1]
	}
	return ls
}

// quotePath writes a path as git does: in quotes, with C's escapes, when it
// holds a control character, a quote, a backslash or a byte beyond ASCII.
func quotePath(prefix, path string) string {
	plain := true
	for i := range len(path) {
		if c := path[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return prefix + path
	}
	var b strings.Builder
	b.WriteByte('"')
	b.WriteString(prefix)
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 7 && c <= 13:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-7])
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
