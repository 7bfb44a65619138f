package vcs

// A merge depends on which of several shortest diffs is taken: changes that
// meet in one do not in another. So that a merge comes out as git's would, the
// diffs of a merge are found in git's way: lines that the other text does not
// have, and most of those it has too often to mean anything, are set aside; the
// rest is split at the middle of a shortest path (Myers, "An O(ND) difference
// algorithm", 1986, section 4b), with ties decided alike.

// gitEdits returns what makes base into text, in order, never touching each
// other.
func gitEdits(base, text [][]byte) []edit {
	a, b := number(base, text)
	m := matcher{x: newRuns(a), y: newRuns(b)}
	head, tail := m.ends()
	often := func(ls []int32) map[int32]int {
		n := make(map[int32]int, len(ls))
		for _, l := range ls {
			n[l]++
		}
		return n
	}
	m.a = m.x.worth(head, len(a)-tail, often(b))
	m.b = m.y.worth(head, len(b)-tail, often(a))
	m.mid = len(m.b) + 1
	m.down = make([]int, len(m.a)+len(m.b)+3)
	m.up = make([]int, len(m.a)+len(m.b)+3)
	m.box(0, len(m.a), 0, len(m.b))
	return slideEdits(m.x, m.y)
}

// matcher finds which lines of two texts are changed.
type matcher struct {
	x, y     *runs
	a, b     []int // the lines that take part
	down, up []int // by diagonal: how far a path from the start, or the end, has come along a
	mid      int   // where diagonal 0 is in them
}

// ends counts the lines that both texts begin and end with.
func (m *matcher) ends() (head, tail int) {
	a, b := m.x.line, m.y.line
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// How a line of one text fares in the other.
const (
	absent = iota
	present
	frequent
)

// worth returns which of the lines [from, to) take part, and notes the others
// as changed: those that the other text does not have, and frequent ones in the
// midst of such.
func (r *runs) worth(from, to int, other map[int32]int) (part []int) {
	limit := min(roughRoot(len(r.line)), 1024)
	fares := make([]uint8, to-from)
	for i := range fares {
		switch n := other[r.line[from+i]]; {
		case n == 0:
		case n < limit:
			fares[i] = present
		default:
			fares[i] = frequent
		}
	}
	for i, f := range fares {
		if f == present || f == frequent && !lost(fares, i) {
			part = append(part, from+i)
		} else {
			r.changed[from+i] = true
		}
	}
	return part
}

// roughRoot is a power of two near the square root.
func roughRoot(n int) int {
	root := 1
	for ; n > 0; n >>= 2 {
		root <<= 1
	}
	return root
}

// lost tells that a frequent line stands among absent ones, on both sides and
// with few others of its kind.
func lost(fares []uint8, at int) bool {
	const window, ratio = 100, 4
	gone, often := 0, 0
	for _, step := range []int{-1, 1} {
		before := gone
		often++
		for i := at + step; i >= 0 && i < len(fares) && i >= at-window && i <= at+window && fares[i] != present; i += step {
			if fares[i] == absent {
				gone++
			} else {
				often++
			}
		}
		if gone == before {
			return false
		}
	}
	return often*ratio < often+gone
}

func (m *matcher) same(i, j int) bool { return m.x.line[m.a[i]] == m.y.line[m.b[j]] }

// box compares the lines [al, ah) that take part in one text with [bl, bh) of
// the other.
func (m *matcher) box(al, ah, bl, bh int) {
	for al < ah && bl < bh && m.same(al, bl) {
		al, bl = al+1, bl+1
	}
	for al < ah && bl < bh && m.same(ah-1, bh-1) {
		ah, bh = ah-1, bh-1
	}
	if al < ah && bl < bh {
		if i, j, ok := m.middle(al, ah, bl, bh); ok {
			m.box(al, i, bl, j)
			m.box(i, ah, j, bh)
			return
		}
	}
	for _, i := range m.a[al:ah] {
		m.x.changed[i] = true
	}
	for _, j := range m.b[bl:bh] {
		m.y.changed[j] = true
	}
}

// maxPath bounds the search for the middle of a path: its time goes with the
// square. Where a path is longer, the whole box is a change.
const maxPath = 8192

// middle is a point that a shortest path goes through. It gives up past maxPath.
func (m *matcher) middle(al, ah, bl, bh int) (i, j int, ok bool) {
	lo, hi := al-bh, ah-bl // diagonals: how much further along a than along b
	start, end := al-bl, ah-bh
	odd := (start-end)&1 != 0
	dlo, dhi, ulo, uhi := start, start, end, end
	m.down[m.mid+start], m.up[m.mid+end] = al, ah
	for range maxPath / 2 {
		if dlo > lo {
			dlo--
			m.down[m.mid+dlo-1] = -1
		} else {
			dlo++
		}
		if dhi < hi {
			dhi++
			m.down[m.mid+dhi+1] = -1
		} else {
			dhi--
		}
		for k := dhi; k >= dlo; k -= 2 {
			i := m.down[m.mid+k+1]
			if left := m.down[m.mid+k-1]; left >= i {
				i = left + 1
			}
			for i < ah && i-k < bh && m.same(i, i-k) {
				i++
			}
			m.down[m.mid+k] = i
			if odd && ulo <= k && k <= uhi && m.up[m.mid+k] <= i {
				return i, i - k, true
			}
		}
		if ulo > lo {
			ulo--
			m.up[m.mid+ulo-1] = len(m.a) + 1
		} else {
			ulo++
		}
		if uhi < hi {
			uhi++
			m.up[m.mid+uhi+1] = len(m.a) + 1
		} else {
			uhi--
		}
		for k := uhi; k >= ulo; k -= 2 {
			i := m.up[m.mid+k+1] - 1
			if left := m.up[m.mid+k-1]; left <= i {
				i = left
			}
			for i > al && i-k > bl && m.same(i-1, i-k-1) {
				i--
			}
			m.up[m.mid+k] = i
			if !odd && dlo <= k && k <= dhi && i <= m.down[m.mid+k] {
				return i, i - k, true
			}
		}
	}
	return 0, 0, false
}
