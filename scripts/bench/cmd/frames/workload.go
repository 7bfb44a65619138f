package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/retcon-dev/retcon/snapshot"
)

// graph is a graph of tasks that is being carried out, as an engine would: up
// to eight run at a time, one attempt in ten fails and is tried again, and what
// is done lets up to two others become ready. When all are done it begins anew.
//
// Every task has an outcome from the start: the hashes do not compress, and a
// state is as large at the first step as at the last.
type graph struct {
	rng     *rand.Rand
	rows    []snapshot.Row
	ready   []int
	running []int
	next    int // the first task that is not ready yet
}

const parallel = 8

func newGraph(n int, seed uint64) *graph {
	g := &graph{rng: rand.New(rand.NewPCG(seed, uint64(n)))}
	for i := range n {
		g.rows = append(g.rows, snapshot.Row{Key: fmt.Sprintf("build/module-%05d", i), Kind: "sh",
			Decl: digest("decl", uint64(i)), Input: digest("input", uint64(i)), Out: digest("out", uint64(i))})
	}
	return g
}

func digest(what string, n uint64) snapshot.Hash {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte(what), n))
}

// all returns every row, for the first frame.
func (g *graph) all() []snapshot.Row { return append([]snapshot.Row(nil), g.rows...) }

// step does the next thing and returns the rows that changed by it: one to
// three.
func (g *graph) step() []snapshot.Row {
	if len(g.ready) == 0 && len(g.running) == 0 {
		if g.next >= len(g.rows) {
			g.next = 0
		}
		return g.enable(1)
	}
	if len(g.ready) > 0 && len(g.running) < parallel && g.rng.IntN(2) == 0 || len(g.running) == 0 {
		return g.dispatch()
	}
	return g.finish()
}

func (g *graph) dispatch() []snapshot.Row {
	i := g.take(&g.ready)
	r := &g.rows[i]
	r.State, r.Attempt, r.Input = snapshot.Running, r.Attempt+1, digest("input", g.rng.Uint64())
	g.running = append(g.running, i)
	return []snapshot.Row{*r}
}

func (g *graph) finish() []snapshot.Row {
	i := g.take(&g.running)
	r := &g.rows[i]
	if g.rng.IntN(10) == 0 {
		r.State = snapshot.Waiting
		g.ready = append(g.ready, i)
		return []snapshot.Row{*r}
	}
	r.State, r.Out = snapshot.Done, digest("out", g.rng.Uint64())
	return append([]snapshot.Row{*r}, g.enable(g.rng.IntN(3))...)
}

// enable makes up to n tasks ready.
func (g *graph) enable(n int) (changed []snapshot.Row) {
	for ; n > 0 && g.next < len(g.rows) && len(g.ready) < parallel; n-- {
		r := &g.rows[g.next]
		r.State = snapshot.Waiting
		g.ready = append(g.ready, g.next)
		changed = append(changed, *r)
		g.next++
	}
	return changed
}

// take removes one of a list, by chance, and returns it.
func (g *graph) take(list *[]int) int {
	at := g.rng.IntN(len(*list))
	i := (*list)[at]
	(*list)[at] = (*list)[len(*list)-1]
	*list = (*list)[:len(*list)-1]
	return i
}
