package graph

import (
	"fmt"
	"math"

	"starling/event"
)

// MaxEdges bounds the edges of one graph. Positions of edges are 64 bits wide; this far from their limit, no
// size in bytes that is computed of them overflows.
const MaxEdges = 1 << 42

// MaxLocalEdges bounds the edges that are transposed or built in memory at once, as those of a worker's part are: their
// positions fit a uint32.
const MaxLocalEdges = math.MaxUint32

// MaxNodes bounds the vertices of one graph.
const MaxNodes = math.MaxUint32

// MaxClasses bounds the classes of vertices. Unlike the other sizes, no array's length
// gives their number, and memory is allocated for each.
const MaxClasses = 1 << 24

// grain is the number of vertices or edges a core takes at a time: enough to
// hide the scheduling cost, few enough to balance a power law.
const grain = 1 << 14

// CSR is a graph by in-edges: the vertices that send to v are
// Indices[Indptr[v]:Indptr[v+1]]. Weights is nil or has one weight per edge,
// EdgeFeatures nil or EdgeDim numbers per edge, EdgeTimes nil or a time per edge. Relations is nil, or has the relation
// of each edge (see Schema).
type CSR struct {
	Indptr       []int64
	Indices      []uint32
	Weights      []float32
	Relations    []uint16
	EdgeFeatures []float32
	EdgeDim      int
	EdgeTimes    []int64
}

// Nodes is the number of vertices.
func (g *CSR) Nodes() int { return max(len(g.Indptr)-1, 0) }

// Edges is the number of stored, directed edges.
func (g *CSR) Edges() int64 { return int64(len(g.Indices)) }

// Neighbors lists the in-neighbours of v. The slice belongs to the graph.
func (g *CSR) Neighbors(v uint32) []uint32 { return g.Indices[g.Indptr[v]:g.Indptr[v+1]] }

// Degree is the in-degree of v.
func (g *CSR) Degree(v uint32) int { return int(g.Indptr[v+1] - g.Indptr[v]) }

// Validate checks that the arrays describe a graph: lengths agree, indptr
// starts at 0, never falls and ends at the number of edges, every neighbour
// exists, every weight is finite.
func (g *CSR) Validate() error {
	if err := g.checkIndptr(); err != nil {
		return err
	}
	if err := checkIndices("indices", g.Indices, g.Nodes(),
		"an edge names an absent vertex: import the dataset again or correct its source"); err != nil {
		return err
	}
	return CheckEdgeValues(g)
}

// CheckEdgeValues refuses weights and features of edges that are not finite.
func CheckEdgeValues(g *CSR) error {
	if err := checkFinite("weights", g.Weights, 1); err != nil {
		return err
	}
	return checkFinite("edge_features", g.EdgeFeatures, g.EdgeDim)
}

// checkIndptr checks everything that costs a pass over vertices, not edges.
func (g *CSR) checkIndptr() error {
	if err := checkIndptr("indptr", g.Indptr, g.Edges(), "indices"); err != nil {
		return err
	}
	if g.Edges() > MaxEdges || int64(g.Nodes()) > MaxNodes {
		return tooLarge("indices", int64(g.Nodes()), g.Edges())
	}
	if g.Weights != nil && len(g.Weights) != len(g.Indices) {
		return &InputError{Field: "weights", Found: event.Tally(len(g.Weights), "value"),
			Want: fmt.Sprintf("one per edge (%d)", len(g.Indices)), Fix: "write the file again from its source"}
	}
	if len(g.EdgeFeatures) != g.EdgeDim*len(g.Indices) {
		return &InputError{Field: "edge_features", Found: event.Tally(len(g.EdgeFeatures), "value"),
			Want: fmt.Sprintf("%d per edge (%s)", g.EdgeDim, event.Tally(len(g.Indices), "edge")),
			Fix:  "write the file again from its source"}
	}
	return g.checkEdgeTimes()
}

// tooLarge is the error of a graph that no folder can hold.
func tooLarge(field string, nodes, edges int64) error {
	return &InputError{Field: field, Found: fmt.Sprintf("%s and %s to store", event.Tally(nodes, "vertex"),
		event.Tally(edges, "edge")),
		Want: "fewer than 2^32 vertices and at most 2^42 edges", Fix: "split the graph"}
}

// CheckLocal refuses more edges than one worker can train on.
func (g *CSR) CheckLocal() error {
	if g.Edges() <= MaxLocalEdges {
		return nil
	}
	return &InputError{Field: "indices", Found: event.Tally(g.Edges(), "edge"), Want: "fewer than 2^32 per worker",
		Fix: "partition the graph and train with more workers"}
}

// checkIndptr checks row offsets into an array of total elements.
func checkIndptr(field string, indptr []int64, total int64, of string) error {
	bad := func(found, want string) error {
		return &InputError{Field: field, Found: found, Want: want, Fix: "import or generate the dataset again"}
	}
	if len(indptr) == 0 {
		return bad("no elements", "one more than the vertices")
	}
	if indptr[0] != 0 {
		return bad(fmt.Sprintf("first offset %d", indptr[0]), "0")
	}
	if last := indptr[len(indptr)-1]; last != total {
		return bad(fmt.Sprintf("last offset %d", last), fmt.Sprintf("%d, the length of %s", total, of))
	}
	return parallelErr(int64(len(indptr)-1), grain, func(lo, hi int64) error {
		for v := lo; v < hi; v++ {
			if indptr[v] > indptr[v+1] {
				return bad(fmt.Sprintf("offset %d of vertex %d after offset %d", indptr[v+1], v+1, indptr[v]),
					"offsets that never fall")
			}
		}
		return nil
	})
}

// checkIndices checks that every id is below limit.
func checkIndices(field string, ids []uint32, limit int, fix string) error {
	return parallelErr(int64(len(ids)), 1<<18, func(lo, hi int64) error {
		for i, u := range ids[lo:hi] {
			if int64(u) >= int64(limit) {
				return &InputError{Field: field, Found: fmt.Sprintf("%d at position %d", u, lo+int64(i)),
					Want: fmt.Sprintf("ids from 0 to %d", limit-1), Fix: fix}
			}
		}
		return nil
	})
}

// checkFinite reports the first NaN or infinity; cols turns a position into a row.
func checkFinite(field string, values []float32, cols int) error {
	return parallelErr(int64(len(values)), 1<<18, func(lo, hi int64) error {
		for i, x := range values[lo:hi] {
			// The exponent of NaN and infinity is all ones.
			if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
				return notFinite(field, x, lo+int64(i), cols)
			}
		}
		return nil
	})
}

func notFinite(field string, x float32, pos int64, cols int) error {
	at := fmt.Sprintf("%v at position %d", x, pos)
	if cols > 1 {
		at = fmt.Sprintf("%v in row %d, column %d", x, pos/int64(cols), pos%int64(cols))
	}
	return &InputError{Field: field, Found: at, Want: "finite numbers",
		Fix: "replace missing values in the source before importing"}
}

// Symmetric reports whether every edge has its reverse, as often and with the
// same weight. It sums a hash of every edge minus that of its reverse,
// so it needs no memory; it errs with probability 2^-64.
func (g *CSR) Symmetric() bool {
	const rows = grain / 4 // of several edges each
	sums := make(chan uint64, g.Nodes()/rows+1)
	Parallel(int64(g.Nodes()), rows, func(lo, hi int64) { sums <- g.asymmetry(lo, hi) })
	close(sums)
	var total uint64
	for s := range sums {
		total += s
	}
	return total == 0
}

// asymmetry is the sum of signed hashes over rows lo to hi.
func (g *CSR) asymmetry(lo, hi int64) (sum uint64) {
	for v := lo; v < hi; v++ {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			var w float32
			if g.Weights != nil {
				w = g.Weights[e]
			}
			sum += SignedHash(uint64(g.Indices[e]), uint64(v), w)
		}
	}
	return sum
}

// SignedHash is a hash of an edge that is negated for its reverse, and zero for
// a self-loop.
func SignedHash(u, v uint64, w float32) uint64 {
	z := min(u, v)<<32 + max(u, v) + uint64(math.Float32bits(w)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>32) * 0xd6e8feb86659fd93
	z = (z ^ z>>29) * 0xbf58476d1ce4e5b9
	z ^= z >> 32
	// One of the two is all ones, of a self-loop none: both ends are below 2^32.
	forth, back := uint64(int64(u-v)>>63), uint64(int64(v-u)>>63)
	return z&forth - z&back
}
