// Package cagnet is CAGNET's algorithms: products of a graph's blocks with blocks of rows.
package cagnet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/exchange"
	"starling/graph"
	"starling/partition"
	"starling/train"
	"starling/train/site"
)

// Strategy is CAGNET's algorithms (Tripathy, Yelick and Buluç, "Reducing Communication in
// Graph Neural Network Training", SC 2020, §IV). In one dimension (§IV-A) rows of all
// matrices are in blocks, one per worker, and a layer's sums are a product of block rows:
//
//	y_i = Σ_j A_ij·z_j        z_j [core of j, w], y_i [core of i, w]
//
// for which every worker's whole block goes to every other worker, needed or not: the
// partition's cut is never looked at. Backward the gradients of a block return from all
// workers to its owner, which adds them in rank order (a reduce-scatter). Exact.
//
// Per layer a worker sends (workers-1) x its core rows, and backward receives as many.
// The 1.5D and 2D algorithms (§IV-B and IV-C) are in grid.go.
var Strategy = train.Describe(train.Descriptor{
	Name: "cagnet", Mode: train.FullGraph,
	Paper: &train.Paper{Title: "CAGNET, Tripathy et al., SC 2020",
		Claim: "bounds on communication; no single figure (1D is the baseline of SANCUS)",
		Why: "1D broadcasts all rows of a block to everybody, needed or not, so it is slower than halo wherever the " +
			"cut is good"},
	Exact:   "yes",
	Sends:   "every row of every worker to every other, or along rows and columns of a grid",
	UseWhen: "as a baseline",
	Check:   check,
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
}, options{Grid: "1d", RowOptions: exchange.DefaultRows}, build)

type options struct {
	Grid     string `json:"grid" values:"1d,1.5d,2d" main:"" try:"1.5d,2d" resume:"free" omit:"default" help:"workers as a line, as a grid in which those of a row share the product of a block row (1.5d), or in which they share its columns of features (2d)"`
	Replicas int    `json:"replicas" main:"" resume:"free" omit:"default" help:"workers in a row of --grid 1.5d, each with a copy of the row's block; 0: 2"`
	exchange.RowOptions
}

// FeaturesAnew: where --cache-first is not given, sums over features are made in every epoch, as in the paper.
func (o *options) FeaturesAnew() bool { return true }

// Parse reads 1d, 1.5d, 1.5d:REPLICAS or 2d.
func (o *options) Parse(text string) (err error) {
	grid, replicas, given := strings.Cut(text, ":")
	if o.Grid = grid; given {
		if o.Replicas, err = strconv.Atoi(replicas); err != nil {
			return fmt.Errorf("setting %q makes no sense; it is one as in cagnet:1.5d, cagnet:1.5d:4 or cagnet:2d",
				text)
		}
	}
	return nil
}

// Setting writes what Parse reads.
func (o *options) Setting() string {
	if o.Replicas != 0 {
		return fmt.Sprintf("%s:%d", o.Grid, o.Replicas)
	}
	return o.Grid
}

// Validate refuses settings of other grids.
func (o *options) Validate() error {
	switch {
	case !slices.Contains([]string{"1d", "1.5d", "2d"}, o.Grid):
		return train.Mistake("--grid is %q; it must be 1d, 1.5d or 2d", o.Grid)
	case o.Replicas != 0 && o.Grid != "1.5d":
		return train.Mistake("--replicas %d has no effect with --grid %s; use --grid 1.5d, or leave it out", o.Replicas,
			o.Grid)
	case o.Replicas != 0 && o.Replicas < 2:
		return train.Mistake("--replicas is %d; it must be at least 2, or 0 for 2", o.Replicas)
	case o.Grid != "1d" && o.RowOptions != exchange.DefaultRows:
		return graph.Apart("--grid "+o.Grid, "--wire-dtype or --sparse-rows", "partial sums travel in it as they are",
			"leave them out, or use --grid 1d")
	}
	return o.RowOptions.Validate()
}

// Messages is what a worker of a grid sends a peer of its row, where rows are put together and sums return.
func (o *options) Messages(*partition.Book, int) float64 {
	if o.Grid == "1d" {
		return 1
	}
	return 2
}

// row is the number of workers in a row of a grid.
func (o *options) row(workers int) int {
	switch {
	case o.Grid == "2d":
		return int(math.Round(math.Sqrt(float64(workers))))
	case o.Replicas != 0:
		return o.Replicas
	}
	return 2
}

// check refuses workers that make no grid, and layers that are more than sums.
func check(o *train.Options, f train.Facts) error {
	c, _ := train.OptionOf[options](o.Strategy)
	if c.Grid == "1d" {
		return nil
	}
	name, n := "--grid "+c.Grid, f.Workers
	each := c.row(n)
	switch {
	case c.Grid == "2d" && each*each != n:
		return graph.Apart(name, fmt.Sprintf("%d workers", n), "its grid is a square", "use 4, 9 or 16 workers, or "+
			"--grid 1.5d")
	case c.Grid == "1.5d" && (n%each != 0 || each*each > n):
		return graph.Apart(name, fmt.Sprintf("%d replicas of %d workers", each, n), "its grid has as many columns "+
			"as replicas, and at least as many rows", "give a number of workers that --replicas divides, and whose "+
			"square root is not below it")
	case o.Model.Typed != nil:
		return graph.Apart(name, "a typed graph", "rows of a relation have weights of their own", "use --grid 1d")
	case o.Model.EdgeDim > 0:
		return graph.Apart(name, "--edge-features", "messages are made per edge, and products of blocks are sums",
			"leave them out, or use --grid 1d")
	}
	if _, sums := o.Model.Sums(); !sums && o.Model.Model != "gin" && o.Model.Model != "mlp" {
		return graph.Apart(name, "--model "+o.Model.Model, "it computes something per edge, and products of blocks "+
			"are sums", "use gcn, sage, gin, resgcn+ or ressage+, or --grid 1d")
	}
	return nil
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, exchange.RelayOption{})
	if o.Grid != "1d" {
		return newGrid(s, w, o)
	}
	return exchange.NewAggregator(w, exchange.NewBlocks(w), exchange.NewHalo(w.Dev, exchange.PartBlocks(w.Part))), nil
}
