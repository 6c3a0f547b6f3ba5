package partition

import (
	"slices"
	"sync/atomic"

	"starling/graph"
)

// The vertices of a part are numbered with the boundary first, then the interior, each in the
// order in which a breadth-first search of the part's own edges visits them (Wan et al.,
// "Scalable and Efficient Full-Graph GNN Training for Large Graphs", SIGMOD 2023: the
// first step of G3's scheduling). So the rows that other parts need are computed first and
// in few ranges, and neighbours are close in memory.

// sequentialBytes is the size of features from which on boundary and interior keep the
// dataset's order: rows are then copied in two sweeps through the file, which no
// longer fits into memory.
const sequentialBytes = 16 << 30

// order lists the vertices of each part: part k has list[start[k]:start[k+1]].
func order(d *graph.Dataset, parts []uint32, k int) (start []int64, list []uint32) {
	start, list = group(parts, k)
	boundary := boundaryOf(d.Graph, parts)
	if f := d.Features; f != nil && 4*int64(len(f.F32))+2*int64(len(f.BF16))+8*int64(len(f.Indices)) > sequentialBytes {
		eachPart(k, 0, func() func(int) {
			return func(k int) { boundaryFirst(list[start[k]:start[k+1]], boundary) }
		})
		return start, list
	}
	seen := make([]bool, len(parts)) // bytes, so that parts do not share words
	eachPart(k, 0, func() func(int) {
		return func(k int) {
			core := list[start[k]:start[k+1]]
			breadthFirst(d.Graph, parts, core, seen)
			n := boundaryFirst(core, boundary)
			if s := d.Meta.Schema; s != nil {
				byType(s, core[:n])
				byType(s, core[n:])
			}
		}
	})
	return start, list
}

// boundaryOf are the vertices with an edge from or to another part.
func boundaryOf(g *graph.CSR, parts []uint32) bitset {
	boundary := newBits(len(parts))
	mark := func(v uint32) {
		word, bit := &boundary[v/64], uint64(1)<<(v%64)
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
	return boundary
}

// breadthFirst orders a part's vertices as a search over its own in-edges visits
// them; it restarts at the first vertex not yet visited.
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

// byType orders vertices by type, so that a part has few runs of one type; within a type they keep their order.
func byType(s *graph.Schema, list []uint32) {
	slices.SortStableFunc(list, func(a, b uint32) int { return s.TypeOf(a) - s.TypeOf(b) })
}

// boundaryFirst moves boundary vertices, of which there are n, to the front; both groups keep their order.
func boundaryFirst(core []uint32, boundary bitset) (n int) {
	var interior []uint32
	for _, v := range core {
		if boundary.has(v) {
			core[n] = v
			n++
			continue
		}
		interior = append(interior, v)
	}
	copy(core[n:], interior)
	return n
}
