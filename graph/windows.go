package graph

import (
	"fmt"
	"math"
	"sync"
)

// windowEdges is how many edges Source holds at a time: 4 GiB.
const windowEdges = 1 << 30

// Windows is about how many windows Source makes of this number of edges.
func Windows(edges int64) int64 { return max(1, (edges+windowEdges-1)/windowEdges) }

// Source writes the graph of m edges that source describes, and never holds it: rows are made in windows of a bounded
// number of edges, one after the other. All edges are drawn once to be counted and once per window, of which those into
// the window's rows are kept, so that no scratch file is needed. It gives the same bytes as FromSource and Graph.
func (w *Writer) Source(n int, m int64, source EdgeSource, opt BuildOptions) error {
	return w.windows(n, m, source, opt, windowEdges)
}

func (w *Writer) windows(n int, m int64, source EdgeSource, opt BuildOptions, most int64) error {
	if n < 0 || int64(n) > MaxNodes || m < 0 || m > MaxEdges/2 {
		return tooLarge("edges", int64(n), m)
	}
	b := windowBuilder{builder: builder{n: n, m: m, source: source, opt: opt}}
	if err := b.builder.count(); err != nil {
		return err
	}
	out, err := w.startRows(int64(n), "")
	if err != nil {
		return err
	}
	for b.hi < n && err == nil {
		if err = b.nextWindow(most); err == nil {
			b.fill()
			err = out.rows(&b.sorted)
		}
	}
	if failed := out.close(); err == nil {
		err = failed
	}
	return err
}

// windowBuilder builds the rows lo to hi of a graph.
type windowBuilder struct {
	builder builder
	lo, hi  int
	sorted  unitSort
}

// nextWindow moves on to the next rows, of at most this number of edges, and turns their counts into places.
func (b *windowBuilder) nextWindow(most int64) error {
	g := &b.sorted.g
	b.lo = b.hi
	g.Indptr = append(g.Indptr[:0], 0)
	var at int64
	for b.hi < b.builder.n {
		degree := b.degree(b.hi)
		if degree > math.MaxUint32 {
			return fmt.Errorf("vertex %d has %d in-edges: at most 2^32-1 are possible", b.hi, degree)
		}
		if b.hi > b.lo && at+degree > most {
			break
		}
		for _, next := range b.builder.next {
			count := next[b.hi]
			next[b.hi] = uint32(at)
			at += int64(count)
		}
		g.Indptr = append(g.Indptr, at)
		b.hi++
	}
	if int64(cap(g.Indices)) < at {
		g.Indices = newArray[uint32](max(at, min(most, b.edgesLeft())))
	}
	g.Indices = g.Indices[:at]
	return nil
}

// degree is how many edges were counted for a vertex.
func (b *windowBuilder) degree(v int) (sum int64) {
	for _, next := range b.builder.next {
		sum += int64(next[v])
	}
	return sum
}

// edgesLeft bounds the edges of all windows to come.
func (b *windowBuilder) edgesLeft() int64 {
	if b.builder.opt.Symmetrize {
		return 2 * b.builder.m
	}
	return b.builder.m
}

// fill draws all edges, keeps those of the window, and sorts its rows.
func (b *windowBuilder) fill() {
	g, blocks := &b.sorted.g, int64(len(b.builder.next))
	var wg sync.WaitGroup
	for k, next := range b.builder.next {
		wg.Go(func() {
			b.builder.eachChunk(int64(k), blocks, func(_ int64, src, dst []uint32, _ []float32) error {
				b.placeChunk(next, src, dst)
				return nil
			})
		})
	}
	wg.Wait()
	g.sortRows()
	if b.builder.opt.DropDuplicates {
		g.dropDuplicates()
	}
	b.sorted.asymmetry = b.asymmetry()
}

func (b *windowBuilder) placeChunk(next, src, dst []uint32) {
	lo, rows := uint32(b.lo), uint32(b.hi-b.lo)
	indices := b.sorted.g.Indices
	for i, u := range src {
		v := dst[i]
		if v-lo < rows && (u != v || !b.builder.opt.DropSelfLoops) {
			indices[next[v]] = u
			next[v]++
		}
		if b.builder.opt.Symmetrize && u != v && u-lo < rows {
			indices[next[u]] = v
			next[u]++
		}
	}
}

// asymmetry is the sum of signed hashes of the window's edges.
func (b *windowBuilder) asymmetry() (sum uint64) {
	g := &b.sorted.g
	var mu sync.Mutex
	Parallel(int64(g.Nodes()), grain/4, func(lo, hi int64) {
		var part uint64
		for v := lo; v < hi; v++ {
			for _, u := range g.Neighbors(uint32(v)) {
				part += SignedHash(uint64(u), uint64(b.lo)+uint64(v), 0)
			}
		}
		mu.Lock()
		sum += part
		mu.Unlock()
	})
	return sum
}
