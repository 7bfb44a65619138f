package vcs

import (
	"bytes"
	"slices"
)

// hunk is a stretch of a base and of two texts made from it. The stretches of
// all hunks in order are the three texts.
type hunk struct {
	base, ours, theirs [][]byte
	kind               hunkKind
}

type hunkKind uint8

const (
	hunkSame   hunkKind = iota // nobody changed it, or both alike
	hunkOurs                   // changed in ours
	hunkTheirs                 // changed in theirs
	hunkBoth                   // changed in both, differently
)

// diff3 compares two texts with what they were made from. As in git, changes
// that touch are one: nothing that is true of a line says so of its neighbour.
func diff3(base, ours, theirs [][]byte) []hunk {
	a, b := gitEdits(base, ours), gitEdits(base, theirs)
	var out []hunk
	at, ourAt, theirAt := 0, 0, 0
	// upTo ends the stretch that began at at: everything before has been told.
	upTo := func(baseTo, ourTo, theirTo int, kind hunkKind) {
		if baseTo > at || ourTo > ourAt || theirTo > theirAt {
			out = append(out, hunk{base[at:baseTo], ours[ourAt:ourTo], theirs[theirAt:theirTo], kind})
		}
		at, ourAt, theirAt = baseTo, ourTo, theirTo
	}
	for len(a) > 0 || len(b) > 0 {
		from, to := len(base)+1, -1
		if len(a) > 0 {
			from, to = a[0].oldFrom, a[0].oldTo
		}
		if len(b) > 0 && b[0].oldFrom < from {
			from, to = b[0].oldFrom, b[0].oldTo
		}
		n, m := 0, 0
		for {
			switch {
			case n < len(a) && a[n].oldFrom <= to:
				to = max(to, a[n].oldTo)
				n++
				continue
			case m < len(b) && b[m].oldFrom <= to:
				to = max(to, b[m].oldTo)
				m++
				continue
			}
			break
		}
		upTo(from, ourAt+from-at, theirAt+from-at, hunkSame)
		ourTo, theirTo := ourAt+to-from+grown(a[:n]), theirAt+to-from+grown(b[:m])
		kind := hunkBoth
		switch {
		case m == 0:
			kind = hunkOurs
		case n == 0:
			kind = hunkTheirs
		case slices.EqualFunc(ours[ourAt:ourTo], theirs[theirAt:theirTo], bytes.Equal):
			kind = hunkSame
		}
		upTo(to, ourTo, theirTo, kind)
		a, b = a[n:], b[m:]
	}
	upTo(len(base), len(ours), len(theirs), hunkSame)
	return out
}

// grown is by how many lines edits make a text longer.
func grown(edits []edit) (n int) {
	for _, e := range edits {
		n += e.newTo - e.newFrom - (e.oldTo - e.oldFrom)
	}
	return n
}

// mergeText merges three texts. clean is false when both sides changed the same
// place differently: then labels, of ours and theirs, stand in the text around
// what each of them has there.
func mergeText(base, ours, theirs []byte, labels [2]string) (text []byte, clean bool) {
	return mergeHunks(base, ours, theirs, func(out *bytes.Buffer, h hunk) {
		write := func(ls [][]byte) {
			for _, l := range ls {
				out.Write(l)
			}
		}
		head, tail := alike(h.ours, h.theirs)
		write(h.ours[:head])
		mark(out, '<', labels[0])
		write(h.ours[head : len(h.ours)-tail])
		mark(out, '=', "")
		write(h.theirs[head : len(h.theirs)-tail])
		mark(out, '>', labels[1])
		write(h.ours[len(h.ours)-tail:])
	})
}

// mergeOurs merges three texts, and takes what ours has where both sides changed
// the same place differently.
func mergeOurs(base, ours, theirs []byte) []byte {
	text, _ := mergeHunks(base, ours, theirs, func(out *bytes.Buffer, h hunk) {
		for _, l := range h.ours {
			out.Write(l)
		}
	})
	return text
}

// mergeHunks merges three texts, and has both write what stands in a place that
// both sides changed differently.
func mergeHunks(base, ours, theirs []byte, both func(*bytes.Buffer, hunk)) (text []byte, clean bool) {
	clean = true
	var out bytes.Buffer
	write := func(ls [][]byte) {
		for _, l := range ls {
			out.Write(l)
		}
	}
	for _, h := range diff3(lines(base), lines(ours), lines(theirs)) {
		switch h.kind {
		case hunkSame, hunkOurs:
			write(h.ours)
		case hunkTheirs:
			write(h.theirs)
		case hunkBoth:
			clean = false
			both(&out, h)
		}
	}
	return out.Bytes(), clean
}

// alike counts the lines that two stretches begin and end with in common.
func alike(a, b [][]byte) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && bytes.Equal(a[head], b[head]) {
		head++
	}
	for tail < n-head && bytes.Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	return head, tail
}

// mark writes a line of seven signs, on a line of its own whatever stood before.
func mark(out *bytes.Buffer, sign byte, label string) {
	if b := out.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		out.WriteByte('\n')
	}
	for range 7 {
		out.WriteByte(sign)
	}
	if label != "" {
		out.WriteString(" " + label)
	}
	out.WriteByte('\n')
}
