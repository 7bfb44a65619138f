package vcs

import (
	"slices"
	"sort"
)

// edit replaces the lines [oldFrom, oldTo) of one text by [newFrom, newTo) of
// another. Between two edits the texts are equal.
type edit struct{ oldFrom, oldTo, newFrom, newTo int }

// maxEdits bounds the search for the shortest script: time and memory go with
// its square. Longer scripts are found piecewise.
const maxEdits = 1000

// diffLines returns what makes a into b, in order, never touching each other.
// The script is the shortest when it is not too long; otherwise the texts are
// cut at lines that stand exactly once in both, and a piece that is still too
// different is replaced as a whole.
func diffLines(a, b [][]byte) []edit {
	d := lineDiffer{}
	d.a, d.b = number(a, b)
	d.between(0, len(d.a), 0, len(d.b), true)
	return d.out
}

// number gives equal lines equal numbers.
func number(a, b [][]byte) (x, y []int32) {
	known := make(map[string]int32, len(a))
	of := func(ls [][]byte) []int32 {
		out := make([]int32, len(ls))
		for i, l := range ls {
			n, ok := known[string(l)]
			if !ok {
				n = int32(len(known))
				known[string(l)] = n
			}
			out[i] = n
		}
		return out
	}
	return of(a), of(b)
}

type lineDiffer struct {
	a, b []int32
	out  []edit
}

// between compares a[al:ah] with b[bl:bh].
func (d *lineDiffer) between(al, ah, bl, bh int, split bool) {
	for al < ah && bl < bh && d.a[al] == d.b[bl] {
		al, bl = al+1, bl+1
	}
	for al < ah && bl < bh && d.a[ah-1] == d.b[bh-1] {
		ah, bh = ah-1, bh-1
	}
	if al == ah || bl == bh {
		d.emit(edit{al, ah, bl, bh})
		return
	}
	if d.shortest(al, ah, bl, bh) {
		return
	}
	if split {
		if anchors := d.anchors(al, ah, bl, bh); len(anchors) > 0 {
			for _, p := range anchors {
				d.between(al, p[0], bl, p[1], false)
				al, bl = p[0], p[1]
			}
			d.between(al, ah, bl, bh, false)
			return
		}
	}
	d.emit(edit{al, ah, bl, bh})
}

func (d *lineDiffer) emit(e edit) {
	if e.oldFrom == e.oldTo && e.newFrom == e.newTo {
		return
	}
	if n := len(d.out); n > 0 && d.out[n-1].oldTo == e.oldFrom && d.out[n-1].newTo == e.newFrom {
		d.out[n-1].oldTo, d.out[n-1].newTo = e.oldTo, e.newTo
		return
	}
	d.out = append(d.out, e)
}

// shortest is Myers' greedy search ("An O(ND) difference algorithm", 1986). It
// gives up, having emitted nothing, past maxEdits.
func (d *lineDiffer) shortest(al, ah, bl, bh int) bool {
	n, m := ah-al, bh-bl
	limit := min(n+m, maxEdits)
	far := make([]int32, 2*limit+3) // diagonal k at k+limit+1: how far along a
	mid := limit + 1
	var trace [][]int32
	for step := 0; step <= limit; step++ {
		for k := -step; k <= step; k += 2 {
			var x int
			if k == -step || k != step && far[mid+k-1] < far[mid+k+1] {
				x = int(far[mid+k+1])
			} else {
				x = int(far[mid+k-1]) + 1
			}
			y := x - k
			for x < n && y < m && d.a[al+x] == d.b[bl+y] {
				x, y = x+1, y+1
			}
			far[mid+k] = int32(x)
			if x >= n && y >= m {
				d.retrace(al, bl, n, m, trace)
				return true
			}
		}
		trace = append(trace, slices.Clone(far[mid-step:mid+step+1]))
	}
	return false
}

// retrace walks the search back and emits what it finds, first to last.
func (d *lineDiffer) retrace(al, bl, x, y int, trace [][]int32) {
	var back []edit
	for step := len(trace); step > 0; step-- {
		at := func(k int) int32 { // the state before this step
			if i := k + step - 1; i >= 0 && i < len(trace[step-1]) {
				return trace[step-1][i]
			}
			return -1
		}
		k := x - y
		if k == -step || k != step && at(k-1) < at(k+1) {
			x = int(at(k + 1))
			y = x - (k + 1)
			back = append(back, edit{al + x, al + x, bl + y, bl + y + 1})
		} else {
			x = int(at(k - 1))
			y = x - (k - 1)
			back = append(back, edit{al + x, al + x + 1, bl + y, bl + y})
		}
	}
	for _, e := range slices.Backward(back) {
		d.emit(e)
	}
}

// anchors are positions, rising on both sides, of lines that stand exactly once
// in each text.
func (d *lineDiffer) anchors(al, ah, bl, bh int) [][2]int {
	type count struct{ inA, inB, atA, atB int }
	seen := make(map[int32]*count)
	for i := al; i < ah; i++ {
		c := seen[d.a[i]]
		if c == nil {
			c = &count{}
			seen[d.a[i]] = c
		}
		c.inA, c.atA = c.inA+1, i
	}
	for i := bl; i < bh; i++ {
		if c := seen[d.b[i]]; c != nil {
			c.inB, c.atB = c.inB+1, i
		}
	}
	var pairs [][2]int
	for i := al; i < ah; i++ {
		if c := seen[d.a[i]]; c.inA == 1 && c.inB == 1 {
			pairs = append(pairs, [2]int{i, c.atB})
		}
	}
	return rising(pairs)
}

// rising is the longest subsequence whose second numbers rise.
func rising(pairs [][2]int) [][2]int {
	tails := make([]int, 0, len(pairs)) // the pair that ends the best run of each length
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n := sort.Search(len(tails), func(j int) bool { return pairs[tails[j]][1] >= p[1] })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		tails = append(tails[:n], append([]int{i}, tails[min(n+1, len(tails)):]...)...)
	}
	if len(tails) == 0 {
		return nil
	}
	out := make([][2]int, len(tails))
	for i, at := len(tails)-1, tails[len(tails)-1]; i >= 0; i-- {
		out[i], at = pairs[at], before[at]
	}
	return out
}
