// Package plexus is Plexus: sparse and dense products over a grid of workers in three dimensions.
package plexus

import (
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/train"
	"starling/train/site"
)

// Strategy is Plexus (Ranjan et al., "Plexus: Taming Billion-edge Graphs with 3D Parallel
// Full-graph GNN Training", SC 2025). Workers are a grid of X·Y·Z. Vertices are in
// Z blocks as rows of the adjacency A and in X blocks as its columns; columns of a layer's input
// F are in Y blocks, those of its output Q in X blocks. A worker (x, y, z) has the block A_zx:
//
//	F_xy  all-gathered along z
//	H_zy = Σ_x A_zx·F_xy      all-reduced along x
//	Q_zx = Σ_y H_zy·W_yx      reduce-scattered along y
//
// and backward, where weight gradients of blocks are summed with all others:
//
//	dW_yx = Σ_z H_zyᵀ·dQ_zx
//	dH_zy = Σ_x dQ_zx·W_yxᵀ   all-reduced along x
//	dF_xy = Σ_z A_zxᵀ·dH_zy   reduce-scattered along z
//
// Between layers a vertex's row is whole, on its owner: it gets there along x and leaves along
// y, so that norms, activations, root weights and the loss are the owners', and every layer has
// the same block of A. The worker's own vertices are in row block z and column block x of its
// rank, so that the two orders of vertices are two permutations: a block of A has as many of the
// partition's diagonal blocks as any other.
//
// Exact. What is sent does not depend on the edges. With --products rows the owners multiply:
// H is reduce-scattered along x and goes back to them along y, which is less to send, and ours.
var Strategy = train.Describe(train.Descriptor{
	Name: "plexus", Mode: train.FullGraph,
	Untyped: "each relation has weights of its own, and blocks of edges are of all relations at once",
	Paper: &train.Paper{Title: "Plexus, Ranjan et al., SC 2025",
		Claim: "2.3x to 12.5x over earlier full-graph systems, on up to 2,048 GPUs",
		Why: "with few workers, or a good cut, the blocks of a grid are more than a halo; the gain begins where rows " +
			"go nearly everywhere"},
	Exact:   "yes",
	Sends:   "blocks of rows and columns along three axes of a grid",
	UseWhen: "hundreds of workers, or a cut in which most rows go everywhere",
	Check:   check,
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
}, options{Grid: "auto", Products: "grid"}, build)

type options struct {
	Grid     string `json:"axes" main:"" resume:"free" help:"workers along the three axes, such as 2x2x1, or auto: the least predicted time"`
	Products string `json:"products" values:"grid,rows" suffix:"*" try:"rows" resume:"free" omit:"default" help:"who multiplies by weights: the grid, or rows: every worker its own rows by whole weights, which sends less"`
}

func (o *options) Validate() error {
	_, _, err := parseGrid(o.Grid)
	return err
}

// check refuses models that do more than sum, and grids of another number of workers.
func check(o *train.Options, f train.Facts) error {
	const name, other = "--strategy plexus", "use gcn, sage, resgcn+ or ressage+, or another --strategy"
	m := &o.Model
	if _, sums := m.Sums(); !sums && m.Model != "mlp" {
		what := "--model " + m.Model
		if m.EdgeDim > 0 {
			what = "--edge-features"
		}
		return graph.Apart(name, what, "a block of the adjacency is multiplied with blocks of columns, and no worker "+
			"has both ends of an edge whole", other)
	}
	own, _ := train.OptionOf[options](o.Strategy)
	if g, given, _ := parseGrid(own.Grid); given && f.Workers > 0 && g.workers() != f.Workers {
		return train.Mistake("--axes %v is of %d workers, and there are %d; give axes whose product that is, or auto",
			g, g.workers(), f.Workers)
	}
	return nil
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
	rows := exchange.NewRows(w)
	x := &blocks{w: w, moved: rows, rows: o.Products == "rows", kept: map[int]kept{}, constant: map[nn.Reduction]kept{}}
	on := exchange.NewSummed(rows, x)
	if w.Model.GraphLayers() == 0 {
		return on, nil
	}
	x.kind, _ = w.Model.Sums()
	x.settle(o)
	out := x.edges()
	on.Prepare.AddAll(x.prepared(out), 1)
	switch {
	case s.Alone && s.MemoryOnly:
		return nil, train.Unplanned("the block of edges of a worker")
	case !s.Alone:
		if err := x.receiveEdges(out); err != nil {
			return nil, err
		}
	}
	if x.rows {
		return on, nil
	}
	return &multiplying{on, &products{x}}, nil
}

// settle places the worker in its grid.
func (b *blocks) settle(o options) {
	g, given, _ := parseGrid(o.Grid)
	if !given {
		g = modelOf(b.w, b.rows).best(b.w.End.Size())
		b.w.Note("plexus: a grid of %v, by its model the fastest of %d", g, len(grids(b.w.End.Size())))
	}
	b.grid, b.me = g, g.at(b.w.End.Rank())
	b.rank = b.w.End.Rank()
	b.layout()
}
