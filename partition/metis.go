package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"starling/event"
	"starling/graph"
)

// Metis partitions a graph with the system's METIS library (METIS_PartGraphKway), which
// is opened at run time, for comparison. Several
// constraints use METIS's multi-constraint mode. METIS has no
// threads and no cancellation, and may miss a tolerance: then the error is an
// Unbalanced one beside the partition it found.
//
// G. Karypis, V. Kumar: Multilevel k-way partitioning scheme for irregular graphs, 1998.
func Metis(ctx context.Context, p *Problem) ([]uint32, error) {
	parts := make([]uint32, p.Graph.Nodes())
	if len(parts) == 0 {
		return parts, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	lib, err := metisOnce()
	if err != nil {
		return nil, err
	}
	if p.Parts == 1 {
		return parts, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if lib.wide {
		err = metisCut[int64](lib, p, parts)
	} else {
		err = metisCut[int32](lib, p, parts)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	return parts, newLoads(p).of(parts).unbalanced(parts)
}

// ErrNoMetis is what errors.Is finds when there is no METIS library.
var ErrNoMetis = errors.New("the METIS library is not installed")

// metisLib is the opened library and how it was compiled.
type metisLib struct {
	kway func(nvtxs, ncon, xadj, adjncy, vwgt, vsize, adjwgt, nparts, tpwgts, ubvec, options, edgecut,
		part unsafe.Pointer) int32
	options func(options unsafe.Pointer) int32
	wide    bool // idx_t has 64 bits
	double  bool // real_t has 64 bits
	mu      sync.Mutex
}

// metisOnce opens the library, or returns the first error again.
var metisOnce = sync.OnceValues(func() (*metisLib, error) {
	lib := &metisLib{}
	if err := lib.open(); err != nil {
		return nil, fmt.Errorf("%w (on Debian and Ubuntu: apt-get install libmetis5): %w", ErrNoMetis, err)
	}
	if err := lib.measure(); err != nil {
		return nil, err
	}
	return lib, nil
})

// Places in METIS's array of options, and their values, from its manual.
const (
	metisOptions   = 40
	metisObjective = 1
	metisSeed      = 8
	metisVolume    = 1
	metisOK        = 1
)

// measure finds the widths of METIS's two types, which depend on how it was compiled. The
// default options are 40 times -1: the number of bytes set is the width of idx_t.
// Target weights must sum to one: whether they do in single precision tells
// that of real_t.
func (l *metisLib) measure() error {
	var options [metisOptions]int64
	l.options(unsafe.Pointer(&options))
	l.wide = options[metisOptions-1] == -1
	run := func(target unsafe.Pointer) bool {
		if l.wide {
			return metisTrial[int64](l, target)
		}
		return metisTrial[int32](l, target)
	}
	single := [4]float32{0.25, 0.75}
	double := [2]float64{0.25, 0.75}
	switch {
	case run(unsafe.Pointer(&single)):
	case run(unsafe.Pointer(&double)):
		l.double = true
	default:
		return fmt.Errorf("the METIS library found is not one this program understands: version 5 is wanted")
	}
	return nil
}

// metisTrial partitions a path of four vertices.
func metisTrial[I int32 | int64](l *metisLib, target unsafe.Pointer) bool {
	off, adj := []I{0, 1, 3, 5, 6}, []I{1, 0, 2, 1, 3, 2}
	n, con, k, cut := I(4), I(1), I(2), I(0)
	part := make([]I, 4)
	options := make([]I, metisOptions)
	l.options(unsafe.Pointer(&options[0]))
	return l.kway(unsafe.Pointer(&n), unsafe.Pointer(&con), unsafe.Pointer(&off[0]), unsafe.Pointer(&adj[0]), nil,
		nil, nil,
		unsafe.Pointer(&k), target, nil, unsafe.Pointer(&options[0]), unsafe.Pointer(&cut),
		unsafe.Pointer(&part[0])) == metisOK
}

// metisCut runs METIS with one width of integers.
func metisCut[I int32 | int64](l *metisLib, p *Problem, parts []uint32) error {
	off, adj, w, err := metisGraph[I](p.Graph, p.Symmetric || p.Graph.Symmetric())
	if err != nil {
		return err
	}
	constraints := p.constraints()
	n, con, k, cut := I(len(parts)), I(len(constraints)), I(p.Parts), I(0)
	load := metisLoads[I](constraints, len(parts))
	slack := l.tolerances(constraints)
	part := make([]I, len(parts))
	options := make([]I, metisOptions)

	l.mu.Lock() // METIS's random numbers are global state
	defer l.mu.Unlock()
	l.options(unsafe.Pointer(&options[0]))
	options[metisSeed] = I(p.Seed & math.MaxInt32)
	if p.Objective == Volume {
		options[metisObjective] = metisVolume
	}
	code := l.kway(unsafe.Pointer(&n), unsafe.Pointer(&con), unsafe.Pointer(&off[0]),
		unsafe.Pointer(unsafe.SliceData(adj)),
		unsafe.Pointer(&load[0]), nil, unsafe.Pointer(unsafe.SliceData(w)), unsafe.Pointer(&k), nil, slack,
		unsafe.Pointer(&options[0]), unsafe.Pointer(&cut), unsafe.Pointer(&part[0]))
	runtime.KeepAlive(slack)
	if code != metisOK {
		return fmt.Errorf("METIS failed on %s, %s and %s: %s", event.Tally(len(parts), "vertex"),
			event.Tally(p.Parts, "part"),
			event.Tally(len(constraints), "constraint"), metisError(code))
	}
	for v := range parts {
		parts[v] = uint32(part[v])
	}
	return nil
}

func metisError(code int32) string {
	switch code {
	case -2:
		return "it rejects the input"
	case -3:
		return "not enough memory"
	}
	return fmt.Sprintf("error %d", code)
}

// tolerances is METIS's ubvec, in the precision it wants. It must be above one.
func (l *metisLib) tolerances(constraints []Constraint) unsafe.Pointer {
	double := make([]float64, len(constraints))
	single := make([]float32, len(constraints))
	for i, c := range constraints {
		double[i] = max(1+c.Tolerance, 1.0001)
		single[i] = float32(double[i])
	}
	if l.double {
		return unsafe.Pointer(&double[0])
	}
	return unsafe.Pointer(&single[0])
}

// metisLoads is METIS's vwgt. Weights whose sum its integers cannot hold are halved
// until they fit.
func metisLoads[I int32 | int64](constraints []Constraint, n int) []I {
	con := len(constraints)
	load := make([]I, n*con)
	for c := range constraints {
		shift := 0
		for constraints[c].Total(n)>>shift > math.MaxInt32/2 {
			shift++
		}
		for v := range n {
			load[v*con+c] = I(constraints[c].Of(v) >> shift)
		}
	}
	return load
}

// metisGraph is the graph as METIS wants it: both directions of every edge, no
// self-loops, repeated edges as one that weighs more. w is nil if all weigh one.
func metisGraph[I int32 | int64](g *graph.CSR, symmetric bool) (off, adj, w []I, err error) {
	n := g.Nodes()
	directions := int64(1)
	out := &graph.CSR{Indptr: make([]int64, n+1)}
	if !symmetric {
		directions = 2
		out, _ = g.Transpose()
	}
	if m := directions * g.Edges(); unsafe.Sizeof(I(0)) == 4 && m > math.MaxInt32 {
		return nil, nil, nil, &graph.InputError{Field: "graph", Found: event.Tally(m, "edge"),
			Want: "fewer than 2^31, as this METIS library counts in 32 bits",
			Fix:  "use the method multilevel, or a METIS library with 64-bit integers"}
	}
	off = make([]I, n+1)
	adj = make([]I, 0, directions*g.Edges())
	w = make([]I, 0, cap(adj))
	same := true
	var row []uint32
	for v := range uint32(n) {
		row = append(append(row[:0], g.Neighbors(v)...), out.Neighbors(v)...)
		slices.Sort(row)
		for i, u := range row {
			switch {
			case u == v:
			case i > 0 && row[i-1] == u:
				w[len(w)-1]++
			default:
				adj, w = append(adj, I(u)), append(w, 1)
			}
		}
		off[v+1] = I(len(adj))
		for _, x := range w[off[v]:] {
			same = same && x == 1
		}
	}
	if same {
		w = nil
	}
	return off, adj, w, nil
}
