package graph

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"starling/event"
)

// BuildOptions says what FromEdges and FromSource do beyond sorting.
type BuildOptions struct {
	Symmetrize     bool // add the reverse of every edge (a self-loop counts once)
	DropDuplicates bool // keep the first of equal edges, and its weight
	DropSelfLoops  bool
}

// EdgeSource fills src and dst (and weights, if not nil) with edges
// [lo, lo+len(src)). It is called twice for every range, from several goroutines
// at once, and must give the same edges both times. Only the builder's own
// arrays are held in memory: the edges of a generator exist only as a function.
type EdgeSource func(lo int64, src, dst []uint32, weights []float32)

// sourceChunk is how many edges are requested at a time: few enough for the L1 cache.
const sourceChunk = 2048

// FromEdges builds the graph of the edges src[i] → dst[i] over n vertices. Every
// list of neighbours is in ascending order.
func FromEdges(n int, src, dst []uint32, weights []float32, opt BuildOptions) (*CSR, error) {
	if len(src) != len(dst) || (weights != nil && len(weights) != len(src)) {
		return nil, &InputError{Field: "edges",
			Found: fmt.Sprintf("%s, %s, %s", event.Tally(len(src), "source"), event.Tally(len(dst), "target"),
				event.Tally(len(weights), "weight")),
			Want: "as many of each", Fix: "give every edge both ends"}
	}
	source := func(lo int64, s, d []uint32, w []float32) {
		copy(s, src[lo:])
		copy(d, dst[lo:])
		if w != nil {
			copy(w, weights[lo:])
		}
	}
	return FromSource(n, int64(len(src)), weights != nil, source, opt)
}

// FromSource builds the graph of m edges that source describes.
//
// It is a stable counting sort by target. Each of several blocks of edges counts
// and places its own edges, so no two cores write the same counter and the result
// equals one core's. Rows are then sorted separately, in cache.
func FromSource(n int, m int64, weighted bool, source EdgeSource, opt BuildOptions) (*CSR, error) {
	stored := m
	if opt.Symmetrize {
		stored = 2 * m
	}
	if n < 0 || int64(n) > MaxNodes || m < 0 || m > MaxLocalEdges || stored > MaxLocalEdges {
		return nil, &InputError{Field: "edges", Found: fmt.Sprintf("%s and %s to store", event.Tally(n, "vertex"),
			event.Tally(stored, "edge")),
			Want: "fewer than 2^32 of each in memory", Fix: "write it to a folder by windows or through a sorter"}
	}
	b := builder{n: n, m: m, weighted: weighted, source: source, opt: opt}
	if err := b.count(); err != nil {
		return nil, err
	}
	b.place()
	g := &b.g
	g.sortRows()
	if opt.DropDuplicates {
		g.dropDuplicates()
	}
	return g, nil
}

type builder struct {
	n        int
	m        int64
	weighted bool
	source   EdgeSource
	opt      BuildOptions
	next     [][]uint32 // per block and vertex: first a count, then where the next edge goes
	g        CSR
}

// blocks is into how many blocks the edges are divided: one per core, but not so
// many that their counters need more memory than the graph.
func (b *builder) blocks() int64 {
	byMemory := b.m / int64(max(b.n, 1))
	return max(1, min(int64(runtime.GOMAXPROCS(0)), byMemory, b.m/grain))
}

// eachChunk calls f with the edges of one block, a chunk at a time, in order.
func (b *builder) eachChunk(block, blocks int64, f func(lo int64, src, dst []uint32, w []float32) error) error {
	lo, hi := b.m*block/blocks, b.m*(block+1)/blocks
	src, dst := make([]uint32, sourceChunk), make([]uint32, sourceChunk)
	var w []float32
	if b.weighted {
		w = make([]float32, sourceChunk)
	}
	for ; lo < hi; lo += sourceChunk {
		k := min(sourceChunk, hi-lo)
		if w != nil {
			w = w[:k]
		}
		b.source(lo, src[:k], dst[:k], w)
		if err := f(lo, src[:k], dst[:k], w); err != nil {
			return err
		}
	}
	return nil
}

// count fills b.next with each block's in-degrees and checks every end.
func (b *builder) count() error {
	blocks := b.blocks()
	b.next = make([][]uint32, blocks)
	return parallelErr(blocks, 1, func(lo, hi int64) error {
		for k := lo; k < hi; k++ {
			deg := newArray[uint32](int64(b.n))
			b.next[k] = deg
			if err := b.eachChunk(k, blocks, func(at int64, src, dst []uint32, _ []float32) error {
				return b.countChunk(deg, at, src, dst)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *builder) countChunk(deg []uint32, at int64, src, dst []uint32) error {
	for i, u := range src {
		v := dst[i]
		if int64(max(u, v)) >= int64(b.n) {
			return &InputError{Field: fmt.Sprintf("edge %d", at+int64(i)), Found: fmt.Sprintf("%d → %d", u, v),
				Want: fmt.Sprintf("vertices from 0 to %d", b.n-1),
				Fix:  "an edge names an absent vertex: correct the source or the number of vertices"}
		}
		if u == v {
			if !b.opt.DropSelfLoops {
				deg[v]++
			}
			continue
		}
		deg[v]++
		if b.opt.Symmetrize {
			deg[u]++
		}
	}
	return nil
}

// place turns counts into offsets and writes every edge to its row.
func (b *builder) place() {
	indptr := make([]int64, b.n+1)
	var at int64
	for v := range b.n {
		for _, deg := range b.next {
			c := deg[v]
			deg[v] = uint32(at)
			at += int64(c)
		}
		indptr[v+1] = at
	}
	b.g.Indptr, b.g.Indices = indptr, newArray[uint32](at)
	if b.weighted {
		b.g.Weights = newArray[float32](at)
	}
	blocks := int64(len(b.next))
	var wg sync.WaitGroup
	for k, next := range b.next {
		wg.Go(func() {
			b.eachChunk(int64(k), blocks, func(_ int64, src, dst []uint32, w []float32) error {
				b.placeChunk(next, src, dst, w)
				return nil
			})
		})
	}
	wg.Wait()
	b.next = nil
}

func (b *builder) placeChunk(next []uint32, src, dst []uint32, w []float32) {
	put := func(u, v uint32, i int) {
		e := next[v]
		next[v]++
		b.g.Indices[e] = u
		if w != nil {
			b.g.Weights[e] = w[i]
		}
	}
	for i, u := range src {
		v := dst[i]
		if u == v {
			if !b.opt.DropSelfLoops {
				put(u, v, i)
			}
			continue
		}
		put(u, v, i)
		if b.opt.Symmetrize {
			put(v, u, i)
		}
	}
}

// sortRows puts every list of neighbours in ascending order; equal neighbours
// keep their order, so that weights stay with the edge that came first.
func (g *CSR) sortRows() {
	Parallel(int64(g.Nodes()), 1024, func(lo, hi int64) { g.sortRange(lo, hi, nil) })
}

// sortRange sorts rows lo to hi and returns tmp, grown if it had to.
func (g *CSR) sortRange(lo, hi int64, tmp []uint32) []uint32 {
	var keys []uint64
	var old []float32
	for v := lo; v < hi; v++ {
		row := g.Indices[g.Indptr[v]:g.Indptr[v+1]]
		if g.Weights == nil {
			tmp = sortRow(row, tmp)
			continue
		}
		w := g.Weights[g.Indptr[v]:g.Indptr[v+1]]
		keys, old = keys[:0], append(old[:0], w...)
		for i, u := range row {
			keys = append(keys, uint64(u)<<32|uint64(i))
		}
		slices.Sort(keys)
		for i, k := range keys {
			row[i], w[i] = uint32(k>>32), old[k&math.MaxUint32]
		}
	}
	return tmp
}

// dropDuplicates keeps the first of equal neighbours in every sorted row and
// closes the gaps in place.
func (g *CSR) dropDuplicates() {
	var to int64
	start := g.Indptr[0]
	for v := range g.Nodes() {
		end := g.Indptr[v+1]
		first := to
		for e := start; e < end; e++ {
			u := g.Indices[e]
			if to > first && g.Indices[to-1] == u {
				continue
			}
			g.Indices[to] = u
			if g.Weights != nil {
				g.Weights[to] = g.Weights[e]
			}
			to++
		}
		start, g.Indptr[v+1] = end, to
	}
	g.Indices = g.Indices[:to]
	if g.Weights != nil {
		g.Weights = g.Weights[:to]
	}
}
