// Package neutrontp is NeutronTP: columns are divided over workers, not the graph.
package neutrontp

import (
	"fmt"
	"strconv"
	"strings"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
	"starling/wire"
)

// Strategy is GNN tensor parallelism (Ai et al., "NeutronTP: Load-Balanced Distributed
// Full-Graph GNN Training with Tensor Parallelism", PVLDB 18(2), 2024). Every
// worker has all edges. With P workers, w columns and z the rows of a layer, worker k sums
// its slice of columns for all vertices:
//
//	split    z[own, w]      ─ all-to-all ─▶  z[all, w/P]
//	sum      y[all, w/P] = A·z[all, w/P]     the same work on every worker
//	gather   y[all, w/P]    ─ all-to-all ─▶  y[own, w]
//
// and what needs whole rows (products with weights, norms, the loss) is computed for own
// rows with whole weights. Backward the same happens with Aᵀ. A sum is made in chunks of
// rows: a chunk leaves for its owner while the next is summed, and its memory is used again
// (chunk-based scheduling, inter-chunk pipelining).
//
// Exact. Per layer and direction a worker sends its own rows but for its slice, and its
// slice of all others' rows, whatever the graph's edges are: about 2·N·w/P numbers. Edges
// travel once, before.
//
// The paper's decoupled training is neutrontp:decoupled: all products come before all sums,
// which is another model (nn.Config.Decoupled), and rows are split once, summed as often as
// there are layers, and gathered once.
var Strategy = train.Describe(train.Descriptor{
	Name: "neutrontp", Mode: train.FullGraph,
	Untyped: "each relation has weights of its own, and a worker sums a slice of columns of all relations at once",
	Paper: &train.Paper{Title: "NeutronTP, Ai et al., PVLDB 2024",
		Claim: "1.29x to 8.72x over DistDGL, NeutronStar and Sancus on 16 nodes",
		Why: "those are other systems, and decoupled training is another model, by its own name; without it " +
			"every layer has its two all-to-alls, forward and backward", Own: "neutrontp:decoupled"},
	Baseline: "neutronstar",
	Exact:    "yes",
	Sends:    "own rows by column slices to all, and the slices of sums back",
	UseWhen:  "the cut is bad or uneven, and the graph fits every worker",
	Check:    check,
	Overlap:  train.Overlap{Rows: 0.1, Gradients: 0.3},
}, options{Chunks: 4}, build)

type options struct {
	Chunks    int  `json:"chunks" main:"" resume:"free" help:"chunks that the rows of each worker are summed in: one travels while the next is summed (1 to 64)"`
	Decoupled bool `json:"decoupled" flag:"-" main:"" omit:"default" help:"gcn with all products first and all sums after them, as in the paper, which is another model"`
}

// Parse reads decoupled, a number of chunks, or both, as in neutrontp:decoupled:8.
func (o *options) Parse(text string) (err error) {
	chunks, cut := strings.CutPrefix(text, "decoupled")
	o.Decoupled = cut
	if cut && chunks == "" {
		return nil
	}
	if cut {
		chunks, cut = strings.CutPrefix(chunks, ":")
	}
	if o.Chunks, err = strconv.Atoi(chunks); err != nil || o.Decoupled && !cut {
		return fmt.Errorf("setting %q makes no sense; it is one as in neutrontp:8, neutrontp:decoupled or "+
			"neutrontp:decoupled:8", text)
	}
	return nil
}

// Setting writes what Parse reads.
func (o *options) Setting() string {
	if o.Decoupled {
		return fmt.Sprintf("decoupled:%d", o.Chunks)
	}
	return fmt.Sprint(o.Chunks)
}

// Reshape has all sums come last.
func (o *options) Reshape(m *nn.Config) { m.Decoupled = m.Decoupled || o.Decoupled }

// Validate bounds the number of chunks, which messages are numbered by.
func (o *options) Validate() error {
	if o.Chunks < 1 || o.Chunks > 64 {
		return fmt.Errorf("neutrontp sums in 1 to 64 chunks per worker, not %d", o.Chunks)
	}
	return nil
}

// Messages is a slice of rows one way, and one per chunk the other.
func (o *options) Messages(*partition.Book, int) float64 { return float64(1 + o.Chunks) }

// check refuses what cannot be computed for a slice of columns.
func check(o *train.Options, _ train.Facts) error {
	const name, other = "--strategy neutrontp", "use gcn, sage, gin, resgcn+ or ressage+, or another --strategy"
	m := &o.Model
	switch _, sums := m.Sums(); {
	case m.Decoupled && m.Model != "gcn":
		return graph.Apart(name+":decoupled", "--model "+m.Model, "only gcn has a decoupled form",
			"use --model gcn, or "+name)
	case m.EdgeDim > 0:
		return graph.Apart(name, "--edge-features", "messages are made per edge from whole rows, and a worker sums a "+
			"slice of their columns", "leave them out, or use another --strategy")
	case sums || m.Model == "gin" || m.Model == "mlp":
		return nil
	case m.Attends():
		return graph.Apart(name, "--model "+m.Model, "attention weighs an edge by whole rows of both its ends, and a "+
			"worker has a slice of their columns", other)
	}
	return graph.Apart(name, "--model "+m.Model, "it computes something per edge from whole rows, and a worker has a "+
		"slice of their columns", other)
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
	x := &slices{w: w, chunks: o.Chunks, me: w.End.Rank(), workers: w.End.Size(), offsets: w.Part.Book.Offsets}
	x.moved = exchange.NewRows(w)
	on := exchange.NewSummed(x.moved, x)
	if w.Model.GraphLayers() == 0 {
		return on, nil
	}
	mine := inEdges(w)
	for _, q := range w.Peers() {
		on.Prepare.Add(w.Class(wire.Topology, -1, q), int64(sizeBytes+len(mine)))
	}
	if s.Alone && !s.MemoryOnly {
		return on, nil
	}
	g, err := wholeGraph(w, mine)
	if err != nil {
		return nil, err
	}
	x.graph = nn.NewTopology(w.Dev, g)
	x.graph.SetSymmetric(w.Part.Book.Symmetric)
	return on, nil
}

// slices is a worker that sums its slice of columns for all vertices.
type slices struct {
	w           *exchange.Worker
	moved       *exchange.Rows
	graph       *nn.Topology
	chunks      int
	me, workers int
	offsets     []int64 // where each worker's vertices begin
}

// Numbers are the split's and the gather's: rows of this worker in the peer's slice, and the
// peer's rows in this worker's.
func (s *slices) Numbers(width int, _ bool, peer int) int64 {
	return s.rows(s.me)*int64(s.width(width, peer)) + s.rows(peer)*int64(s.width(width, s.me))
}

func (s *slices) rows(q int) int64 { return s.offsets[q+1] - s.offsets[q] }

// width is how many of some columns a worker has.
func (s *slices) width(width, q int) int {
	return exchange.Cut(width, q+1, s.workers) - exchange.Cut(width, q, s.workers)
}

// columns is a worker's slice of some rows.
func (s *slices) columns(m tensor.Matrix, q int) tensor.Matrix {
	return m.Columns(exchange.Cut(m.Cols, q, s.workers), exchange.Cut(m.Cols, q+1, s.workers))
}

func (s *slices) Sum(t exchange.Tag, r nn.Reduction, dst, src tensor.Matrix) {
	s.Chain(t, 1, r, dst, src)
}

func (s *slices) SumGrad(t exchange.Tag, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	s.ChainGrad(t, 1, r, dsrc, ddst)
}

// Chain sums n times between one split and one gather.
func (s *slices) Chain(t exchange.Tag, n int, r nn.Reduction, dst, src tensor.Matrix) {
	s.regroup(t, n, dst, src, func(y, z tensor.Matrix, lo int) { s.graph.SumOf(r, y, z, lo, false) })
}

func (s *slices) ChainGrad(t exchange.Tag, n int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	s.regroup(t, n, dsrc, ddst, func(y, z tensor.Matrix, lo int) { s.graph.SumGradOf(r, y, z, lo) })
}

// inFlight is how many chunks of sums may be leaving while the next is summed.
const inFlight = 4

// regroup splits src, has sum make the rows from lo on of this worker's slice, the last of n
// times chunk after chunk, and gathers dst. It begins with the chunks of the next worker, so
// that not all send to the first.
func (s *slices) regroup(t exchange.Tag, n int, dst, src tensor.Matrix, sum func(y, z tensor.Matrix, lo int)) {
	dev, x := s.w.Dev, s.moved.Regroup(t)
	z := dev.Scratch(src.Type(), int(s.offsets[s.workers]), s.width(src.Cols, s.me))
	for _, q := range s.w.Peers() {
		x.Receive(q, 0, z.Slice(int(s.offsets[q]), int(s.offsets[q+1])))
	}
	for _, q := range s.w.Peers() {
		x.Send(q, 0, s.columns(src, q))
	}
	s.copy(z.Slice(int(s.offsets[s.me]), int(s.offsets[s.me+1])), s.columns(src, s.me))
	x.Wait()
	x.Reap(0) // peers have posted what they receive: their slices are here
	for _, q := range s.w.Peers() {
		for c := range s.chunks {
			x.Receive(q, 1+c, s.columns(dst.Slice(s.chunk(s.me, c)), q))
		}
	}
	for ; n > 1 && z.Cols > 0; n-- {
		y := dev.Scratch(z.Type(), z.Rows, z.Cols)
		sum(y, z, 0)
		dev.Free(z)
		z = y
	}
	for _, q := range append(s.w.Peers(), s.me) {
		for c := range s.chunks {
			s.sumChunk(x, q, c, dst, z, sum)
		}
	}
	x.Wait()
	x.Done()
	dev.Free(z)
}

// chunk is the rows of a chunk among those of its owner.
func (s *slices) chunk(owner, c int) (lo, hi int) {
	n := int(s.rows(owner))
	return exchange.Cut(n, c, s.chunks), exchange.Cut(n, c+1, s.chunks)
}

// sumChunk makes a chunk of sums and lets it go to its owner.
func (s *slices) sumChunk(x *exchange.Regrouping, owner, c int, dst, z tensor.Matrix,
	sum func(y, z tensor.Matrix, lo int)) {
	lo, hi := s.chunk(owner, c)
	y := s.w.Dev.Scratch(z.Type(), hi-lo, z.Cols)
	if lo < hi && z.Cols > 0 {
		sum(y, z, int(s.offsets[owner])+lo)
	}
	if owner != s.me {
		x.Give(owner, 1+c, y)
		x.Reap(inFlight)
		return
	}
	s.copy(s.columns(dst.Slice(lo, hi), s.me), y)
	s.w.Dev.Free(y)
}

func (s *slices) copy(dst, src tensor.Matrix) {
	if dst.Rows*dst.Cols > 0 {
		s.w.Dev.Copy(dst, src)
	}
}
