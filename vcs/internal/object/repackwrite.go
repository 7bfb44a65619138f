package object

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// pack writes these nodes into a new pack and publishes it, synced.
//
// The versions of one path form a chain, newest first and whole, older ones
// as deltas of newer ones. The newest of all paths come first and are
// compared with those that have a similar name and size.
func (r *repacker) pack(ctx context.Context, todo []int32) error {
	if len(todo) == 0 {
		return nil
	}
	if err := r.checkSpace(todo); err != nil {
		return err
	}
	p := &packer{r: r, nodes: r.mark.nodes, out: newPackOut(r.s.packDir()), total: len(todo)}
	defer p.out.abort()
	if err := p.all(ctx, todo); err != nil {
		return err
	}
	r.opt.Crash("written")
	base, err := p.out.publish(true)
	if err != nil {
		return err
	}
	r.s.adopt(base)
	r.made = append(r.made, base)
	r.stats.Packed += len(todo)
	r.stats.Deltas += int(p.deltas.Load())
	r.stats.Bytes += p.out.size
	return nil
}

// checkSpace estimates by what the objects take now.
func (r *repacker) checkSpace(todo []int32) error {
	if r.opt.FreeSpace == nil {
		return nil
	}
	need := int64(1 << 20)
	for _, p := range r.packs {
		if !p.keep {
			need += p.bytes
		}
	}
	for _, i := range todo {
		n := &r.mark.nodes[i]
		need += 32 // index
		if l, ok := r.loose[n.id]; ok {
			need += l.size
		}
	}
	if free := r.opt.FreeSpace(); free < need {
		return &NoSpaceError{Need: need, Free: free}
	}
	return nil
}

// A packer compresses nodes in several goroutines and appends them to one
// pack.
type packer struct {
	r      *repacker
	nodes  []node
	total  int
	done   atomic.Int64
	deltas atomic.Int64

	mu  sync.Mutex
	out *packOut
}

func (p *packer) all(ctx context.Context, todo []int32) error {
	chains, large := p.plan(todo)
	heads := make([]headOf, len(chains))
	for i, c := range chains {
		heads[i] = headOf{c[0], maxDepth}
		if len(c) > 1 {
			heads[i].depth = headDepth
		}
	}
	slices.SortStableFunc(heads, func(a, b headOf) int {
		x, y := &p.nodes[a.node], &p.nodes[b.node]
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name), cmp.Compare(y.size, x.size))
	})

	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	const run = 2048 // heads that share a window
	for part := range slices.Chunk(heads, run) {
		g.Go(func() error { return p.heads(gctx, part) })
	}
	if err := g.Wait(); err != nil {
		return err
	}

	g, gctx = errgroup.WithContext(ctx)
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for _, c := range chains {
		if len(c) > 1 {
			g.Go(func() error { return p.chain(gctx, c) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, i := range large {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.large(&p.nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

type headOf struct {
	node  int32
	depth int
}

// plan groups nodes into chains of versions, and sets apart what is too large
// for deltas.
func (p *packer) plan(todo []int32) (chains [][]int32, large []int32) {
	var order []int32
	for _, i := range todo {
		if p.nodes[i].size > maxDelta {
			large = append(large, i)
		} else {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &p.nodes[a], &p.nodes[b]
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.path, y.path), cmp.Compare(a, b))
	})
	for len(order) > 0 {
		n := 1
		for n < len(order) && p.nodes[order[n]].kind == p.nodes[order[0]].kind && p.nodes[order[n]].path == p.nodes[order[0]].path {
			n++
		}
		chains = append(chains, order[:n:n])
		order = order[n:]
	}
	return chains, large
}

func (p *packer) heads(ctx context.Context, heads []headOf) error {
	w := &window{}
	var buf []byte
	for i, h := range heads {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := &p.nodes[h.node]
		if i > 0 && n.kind != p.nodes[heads[i-1].node].kind {
			w = &window{}
		}
		var err error
		if buf, err = p.one(w, n, buf, h.depth); err != nil {
			return err
		}
		w.add(buf, n.off, int(n.deep))
	}
	return nil
}

// chain writes all versions but the newest, which is written.
func (p *packer) chain(ctx context.Context, c []int32) error {
	head := &p.nodes[c[0]]
	_, buf, err := p.r.s.ReadVerified(head.id, nil)
	if err != nil {
		return err
	}
	w := &window{}
	w.add(buf, head.off, int(head.deep))
	for k, i := range c[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := &p.nodes[i]
		if buf, err = p.one(w, n, buf, maxDepth); err != nil {
			return err
		}
		if k+2 < len(c) {
			w.add(buf, n.off, int(n.deep))
		}
	}
	return nil
}

// one writes one node, as the best delta the window offers or whole, and
// returns its content, in buf when it fits.
func (p *packer) one(w *window, n *node, buf []byte, depth int) ([]byte, error) {
	_, data, err := p.r.s.ReadVerified(n.id, buf)
	if err != nil {
		return nil, err
	}
	out := buffers.Get().(*bytes.Buffer)
	defer putBuffer(out)
	out.Reset()
	delta, of := w.best(data, depth)
	if of != nil && len(delta) > len(data)/8 && !p.pays(data, delta) {
		of = nil
	}
	body := data
	if of != nil {
		body = delta
		n.deep = uint8(of.deep + 1)
		p.deltas.Add(1)
	}
	deflate(out, body, levelRepack)

	p.mu.Lock()
	defer p.mu.Unlock()
	n.off = p.out.size
	kind, back := n.kind, int64(0)
	if of != nil {
		kind, back = ofsDelta, n.off-of.off
	}
	head := appendHeader(nil, kind, int64(len(body)), back)
	crc := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, out.Bytes())
	if err := p.out.add(n.id, head, crc); err != nil {
		return nil, err
	}
	if _, err := p.out.Write(out.Bytes()); err != nil {
		return nil, err
	}
	p.tell()
	return data, nil
}

// pays compares a delta that is not small with the whole, compressed.
func (p *packer) pays(data, delta []byte) bool {
	a := buffers.Get().(*bytes.Buffer)
	defer putBuffer(a)
	a.Reset()
	deflate(a, data, levelCapture)
	whole := a.Len()
	a.Reset()
	deflate(a, delta, levelCapture)
	return a.Len() < whole
}

// tell reports progress; mu is held.
func (p *packer) tell() {
	if done := int(p.done.Add(1)); p.r.opt.Progress != nil && (done%256 == 0 || done == p.total) {
		p.r.opt.Progress("pack", done, p.total)
	}
}

// large copies an object in bounded memory.
func (p *packer) large(n *node) error {
	kind, size, rd, err := p.r.s.Stream(n.id)
	if err != nil {
		return err
	}
	defer rd.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.out.size
	sum := crc32.NewIEEE()
	dst := io.MultiWriter(p.out, sum)
	if _, err := dst.Write(appendHeader(nil, kind, size, 0)); err != nil {
		return err
	}
	chunk := make([]byte, 128<<10)
	m, err := io.ReadFull(rd, chunk)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	level := levelFor(chunk[:m], levelRepack)
	z := getDeflater(dst, level)
	defer putDeflater(z, level)
	h := NewHasher()
	h.Reset(kind, size)
	both := io.MultiWriter(h, z)
	if _, err := both.Write(chunk[:m]); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(both, rd, chunk); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if got := h.Sum(); got != n.id {
		return &CorruptError{ID: n.id, Where: p.r.s.where(n.id), Err: fmt.Errorf("content hashes to %s", got)}
	}
	n.off = at
	p.out.entries = append(p.out.entries, indexEntry{id: n.id, crc: sum.Sum32(), offset: at})
	p.tell()
	return nil
}
