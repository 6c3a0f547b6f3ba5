package partition

import (
	"sync/atomic"

	"starling/graph"
)

// The vertices of a part are numbered border first, then the interior, each in the
// order a breadth-first search of the part's own edges meets them (Wan et al.,
// "Scalable and Efficient Full-Graph GNN Training for Large Graphs", SIGMOD 2023: the
// first step of G3's scheduling). So what other parts wait for is computed first and
// in few ranges, and neighbours lie near each other in memory.

// orderly is the bytes of features from which on border and interior keep the
// dataset's order: rows are then copied in two sweeps through the file, which no
// longer fits into memory.
const orderly = 16 << 30

// order lists the vertices of each part: part k has list[start[k]:start[k+1]].
func order(d *graph.Dataset, parts []uint32, k int) (start []int64, list []uint32) {
	start, list = group(parts, k)
	border := borderOf(d.Graph, parts)
	if f := d.Features; f != nil && 4*int64(len(f.F32))+2*int64(len(f.BF16))+8*int64(len(f.Indices)) > orderly {
		eachPart(k, 0, func() func(int) {
			return func(k int) { bordersFirst(list[start[k]:start[k+1]], border) }
		})
		return start, list
	}
	seen := make([]bool, len(parts)) // bytes, so that parts do not share words
	eachPart(k, 0, func() func(int) {
		return func(k int) {
			core := list[start[k]:start[k+1]]
			breadthFirst(d.Graph, parts, core, seen)
			bordersFirst(core, border)
		}
	})
	return start, list
}

// borderOf are the vertices with an edge from or to another part.
func borderOf(g *graph.CSR, parts []uint32) bitset {
	border := newBits(len(parts))
	mark := func(v uint32) {
		word, bit := &border[v/64], uint64(1)<<(v%64)
		if atomic.LoadUint64(word)&bit == 0 {
			atomic.OrUint64(word, bit)
		}
	}
	graph.Parallel(int64(len(parts)), 1<<14, func(lo, hi int64) {
		for v := uint32(lo); v < uint32(hi); v++ {
			for _, u := range g.Neighbors(v) {
				if parts[u] != parts[v] {
					mark(u)
					mark(v)
				}
			}
		}
	})
	return border
}

// breadthFirst orders a part's vertices as a search over its own in-edges meets
// them; it starts anew at the first vertex not yet met.
func breadthFirst(g *graph.CSR, parts, core []uint32, seen []bool) {
	met := make([]uint32, 0, len(core))
	next := 0
	for _, v := range core {
		if !seen[v] {
			seen[v] = true
			met = append(met, v)
		}
		for ; next < len(met); next++ {
			for _, u := range g.Neighbors(met[next]) {
				if parts[u] == parts[v] && !seen[u] {
					seen[u] = true
					met = append(met, u)
				}
			}
		}
	}
	copy(core, met)
}

// bordersFirst moves border vertices to the front; both groups keep their order.
func bordersFirst(core []uint32, border bitset) {
	var interior []uint32
	n := 0
	for _, v := range core {
		if border.has(v) {
			core[n] = v
			n++
			continue
		}
		interior = append(interior, v)
	}
	copy(core[n:], interior)
}
