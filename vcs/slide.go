package vcs

// Where a run of changed lines could as well stand higher or lower, because the
// line that it would give up equals the one it would take, a diff has a choice.
// Two diffs against one base must choose alike, or changes that do not meet
// would seem to. The rule is git's: a run that can be made to face a run of the
// other text does so, any other goes as low as it can, and runs that meet
// become one.

// slideEdits moves the changed lines of two texts to where the rule wants them,
// and returns what makes the one into the other.
func slideEdits(x, y *runs) []edit {
	x.slide(y)
	y.slide(x)
	var out []edit
	for i, j := 0, 0; i < len(x.line) || j < len(y.line); {
		e := edit{i, i, j, j}
		for ; i < len(x.line) && x.changed[i]; i++ {
			e.oldTo++
		}
		for ; j < len(y.line) && y.changed[j]; j++ {
			e.newTo++
		}
		if e.oldFrom == e.oldTo && e.newFrom == e.newTo {
			i, j = i+1, j+1
			continue
		}
		out = append(out, e)
	}
	return out
}

// runs are the changed lines of one text. Between two unchanged lines, before
// the first and after the last, there is a run, which may be empty: so the runs
// of two texts are as many.
type runs struct {
	line    []int32
	changed []bool
}

func newRuns(line []int32) *runs { return &runs{line, make([]bool, len(line))} }

// run is one of them: lines [from, to).
type run struct{ from, to int }

func (r *runs) first() run { return r.grow(run{}) }

// grow takes in the changed lines below.
func (r *runs) grow(g run) run {
	for g.to < len(r.changed) && r.changed[g.to] {
		g.to++
	}
	return g
}

func (r *runs) next(g run) (run, bool) {
	if g.to == len(r.line) {
		return g, false
	}
	return r.grow(run{g.to + 1, g.to + 1}), true
}

func (r *runs) previous(g run) run {
	g.to = g.from - 1
	for g.from = g.to; g.from > 0 && r.changed[g.from-1]; {
		g.from--
	}
	return g
}

// up moves a run a line up, if it may go there, and takes in what it meets.
func (r *runs) up(g *run) bool {
	if g.from == 0 || r.line[g.from-1] != r.line[g.to-1] {
		return false
	}
	g.from, g.to = g.from-1, g.to-1
	r.changed[g.from], r.changed[g.to] = true, false
	for g.from > 0 && r.changed[g.from-1] {
		g.from--
	}
	return true
}

func (r *runs) down(g *run) bool {
	if g.to == len(r.line) || r.line[g.from] != r.line[g.to] {
		return false
	}
	r.changed[g.from], r.changed[g.to] = false, true
	*g = r.grow(run{g.from + 1, g.to + 1})
	return true
}

// slide moves every run of r. other stays as it is.
func (r *runs) slide(other *runs) {
	g, facing := r.first(), other.first()
	for more := true; more; {
		if g.from < g.to {
			r.settle(&g, other, &facing)
		}
		if g, more = r.next(g); more {
			facing, _ = other.next(facing)
		}
	}
}

func (r *runs) settle(g *run, other *runs, facing *run) {
	highest, met := 0, false
	for size := -1; size != g.to-g.from; { // again when it has taken in another
		size, met = g.to-g.from, false
		for r.up(g) {
			*facing = other.previous(*facing)
		}
		highest, met = g.to, facing.from < facing.to
		for r.down(g) {
			*facing, _ = other.next(*facing)
			met = met || facing.from < facing.to
		}
	}
	if g.to == highest || !met {
		return
	}
	for facing.from == facing.to {
		r.up(g)
		*facing = other.previous(*facing)
	}
}
