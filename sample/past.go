package sample

import (
	"cmp"
	"slices"
	"sort"

	"starling/graph"
	"starling/rng"
)

// Past has the in-edges of every vertex in the order of their times, those of equal times in the dataset's order.
// What
// a vertex may see at a time is then the first of them:
//
//	in-edges of v, by time    [ 3 │ 5 │ 5 │ 8 │ 9 ]
//	seen at time 8              3   5   5              strictly before
type Past struct {
	graph *graph.CSR
	times []int64  // of entries of the graph
	place []uint32 // of the k-th earliest in-edge of a vertex: its place in the row
}

// NewPast orders the in-edges of a graph whose entries have times. order is the dataset's order of its entries
// where the
// graph is a part; nil: it is the dataset's.
func NewPast(g *graph.CSR, times []int64, order *graph.RowOrder) *Past {
	p := &Past{graph: g, times: times, place: make([]uint32, g.Edges())}
	for v := range g.Nodes() {
		first, end := g.Indptr[v], g.Indptr[v+1]
		row, at := p.place[first:end], times[first:end]
		for i := range row {
			row[i] = uint32(i)
			if order != nil {
				row[i] = order.At(first + int64(i))
			}
		}
		slices.SortStableFunc(row, func(a, b uint32) int { return cmp.Compare(at[a], at[b]) })
	}
	return p
}

// Times are the times of the graph's entries.
func (p *Past) Times() []int64 { return p.times }

// Before is how many in-edges of v are from before a time.
func (p *Past) Before(v uint32, time int64) int {
	first, end := p.graph.Indptr[v], p.graph.Indptr[v+1]
	return sort.Search(int(end-first),
		func(k int) bool { return p.times[first+int64(p.place[first+int64(k)])] >= time })
}

// entry is the k-th earliest in-edge of the vertex whose first entry this is.
func (p *Past) entry(first int64, k int64) int64 { return first + int64(p.place[first+k]) }

// PastDrawer draws in-edges of vertices, each as of a time of its own. It is used by one goroutine.
type PastDrawer struct {
	Past *Past
	// IDs are the dataset's ids of the graph's rows; nil: they are the same.
	IDs []uint32
	// Recent takes the latest edges instead of any.
	Recent bool

	choose chooser
	picked []int64
}

// Draw fills x with the edges that rows draw, from sources as the graph numbers them, each of those from before its
// time. degrees are the rows' degrees at their times, by weight. What a row draws is a function of the key, its id
// and
// its time.
func (d *PastDrawer) Draw(x *Block, degrees []float64, rows []uint32, times []int64, fanout int,
	key rng.Key) []float64 {
	g := d.Past.graph
	*x = Block{Dst: len(rows), ByID: true, Indptr: append(x.Indptr[:0], 0), Indices: x.Indices[:0],
		Weights: x.Weights[:0], RowWeights: x.RowWeights[:0], Places: x.Places[:0], Relations: x.Relations[:0]}
	degrees = degrees[:0]
	for i, v := range rows {
		first, seen := g.Indptr[v], d.Past.Before(v, times[i])
		id := v
		if d.IDs != nil {
			id = d.IDs[v]
		}
		d.pick(key.Fold(uint64(id)).Fold(uint64(times[i])), seen, fanout)
		for _, k := range d.picked {
			d.take(x, d.Past.entry(first, k))
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
		if fanout != All {
			x.RowWeights = append(x.RowWeights, float32(max(seen, 1))/float32(max(len(d.picked), 1)))
		}
		degrees = append(degrees, d.degree(first, seen))
	}
	return degrees
}

// pick draws some of the first edges of a row.
func (d *PastDrawer) pick(key rng.Key, seen, fanout int) {
	d.picked = d.picked[:0]
	switch {
	case fanout == All || seen <= fanout:
		d.picked = d.choose.all(d.picked, 0, seen)
	case d.Recent:
		d.picked = d.choose.all(d.picked, int64(seen-fanout), fanout)
	default:
		d.picked = d.choose.distinct(d.picked, key, 0, seen, fanout)
	}
}

func (d *PastDrawer) take(x *Block, e int64) {
	g := d.Past.graph
	x.Indices = append(x.Indices, g.Indices[e])
	if g.Weights != nil {
		x.Weights = append(x.Weights, g.Weights[e])
	}
	if g.EdgeDim > 0 {
		x.Places = append(x.Places, e)
	}
}

// degree sums the weights of a row's first edges.
func (d *PastDrawer) degree(first int64, seen int) (sum float64) {
	g := d.Past.graph
	if g.Weights == nil {
		return float64(seen)
	}
	for k := range int64(seen) {
		sum += float64(g.Weights[d.Past.entry(first, k)])
	}
	return sum
}
