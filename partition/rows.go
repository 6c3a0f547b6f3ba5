package partition

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"starling/graph"
)

// checkNumbers checks ids, degrees and GCN degrees as far as a part alone can: those of the halo are compared with
// their owners by Verify.
func (p *Part) checkNumbers(bool) error {
	seen := newBits(int(p.Book.Nodes))
	for _, id := range p.IDs {
		if int64(id) >= p.Book.Nodes || !seen.set(id) {
			return badBook("ids", id, fmt.Sprintf("vertices of the dataset, below %d, each once", p.Book.Nodes))
		}
	}
	for i, d := range p.Degrees {
		if i < p.Core() && int64(d) != int64(p.In.Degree(uint32(i))) || int64(d) > p.Book.Edges {
			return badBook("degrees", fmt.Sprintf("%d for vertex %d", d, i), "the lengths of rows")
		}
	}
	for i, d := range p.GCNDegrees {
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return badBook("gcn_degrees", fmt.Sprintf("%v for vertex %d", d, i), "finite numbers")
		}
	}
	return nil
}

// checkRows checks every row, on all cores. Each number that a reader would use to access memory is in range,
// whatever the size; if the part is small or all is set, what rows say is compared with the rest of the part too.
func (p *Part) checkRows(all bool) error {
	all = all || 4*p.Meta.Edges <= graph.SmallArray
	if all {
		if err := graph.CheckEdgeValues(p.In); err != nil {
			return err
		}
	}
	c := rowCheck{p: p, all: all, used: newBits(int(p.Meta.Halo))}
	graph.Parallel(p.Meta.Core, 1<<12, c.rows)
	if c.mu.first != nil || !all {
		return c.mu.first
	}
	if n := len(c.used.list(nil)); int64(n) != p.Meta.Halo {
		return badBook("halo", p.Meta.Halo, fmt.Sprintf("%d, the remote vertices that rows name", n))
	}
	if n := c.remote.Load(); n != p.Meta.Remote {
		return badBook("remote_edges", p.Meta.Remote, fmt.Sprint(n))
	}
	return nil
}

// rowCheck is a pass over the rows of a part.
type rowCheck struct {
	p      *Part
	all    bool
	used   bitset // the halo, as rows name it
	remote atomic.Int64
	mu     struct {
		sync.Mutex
		first error // of the first row that has one
		row   int64
	}
}

// rows checks a range of rows up to its first mistake.
func (c *rowCheck) rows(lo, hi int64) {
	var seen bitset
	for i := lo; i < hi; i++ {
		if n := (c.p.In.Degree(uint32(i)) + 63) / 64; n > len(seen) {
			seen = make(bitset, 2*n)
		}
		if err := c.row(uint32(i), seen); err != nil {
			c.found(i, err)
			return
		}
	}
}

func (c *rowCheck) found(row int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.first == nil || row < c.mu.row {
		c.mu.first, c.mu.row = err, row
	}
}

// row checks one row; seen has a bit per entry.
func (c *rowCheck) row(i uint32, seen bitset) error {
	p, first := c.p, c.p.In.Indptr[i]
	for k, u := range p.In.Neighbors(i) {
		if int64(u) >= p.Meta.Core+p.Meta.Halo {
			return badBook("indices", fmt.Sprintf("%d at position %d", u, first+int64(k)),
				fmt.Sprintf("local numbers below %d", p.Meta.Core+p.Meta.Halo))
		}
		if k > 0 && u < p.In.Indices[first+int64(k)-1] && p.Book.Schema == nil { // else checkTypes has it
			return badBook("indices", fmt.Sprintf("the row of vertex %d out of order", i), "ascending neighbours")
		}
		if c.all && int64(u) >= p.Meta.Core {
			c.remote.Add(1)
			at := u - uint32(p.Meta.Core)
			atomic.OrUint64(&c.used[at/64], 1<<(at%64))
		}
	}
	if err := p.checkOrder(i, seen); err != nil || !c.all {
		return err
	}
	return p.checkGCNDegree(i)
}

// checkOrder checks that a row's dataset order names each of its entries once.
func (p *Part) checkOrder(i uint32, seen bitset) error {
	if p.DatasetOrder == nil {
		return nil
	}
	first, n := p.In.Indptr[i], p.In.Degree(i)
	clear(seen[:(n+63)/64])
	for e := first; e < first+int64(n); e++ {
		if at := p.DatasetOrder.At(e); int64(at) >= int64(n) || !seen.set(at) {
			return badBook(orderFile, fmt.Sprintf("entry %d of vertex %d", at, i), fmt.Sprintf("each of its %d once", n))
		}
	}
	return nil
}

// checkGCNDegree adds a row up again, in the order of the dataset, as the writer did.
func (p *Part) checkGCNDegree(i uint32) error {
	if p.DatasetOrder == nil { // the folder is of a version that did not keep the order, so sums may differ
		return nil
	}
	var sum float64
	first, loops := p.In.Indptr[i], false
	for e := first; e < p.In.Indptr[i+1]; e++ {
		at := first + int64(p.DatasetOrder.At(e))
		switch {
		case p.In.Indices[at] == i:
			loops = true
		case p.In.Weights != nil:
			sum += float64(p.In.Weights[at])
		default:
			sum++
		}
	}
	if p.GCNDegrees == nil && !loops && p.In.Weights == nil || p.GCNDegrees != nil && p.GCNDegrees[i] == sum {
		return nil
	}
	return badBook("gcn_degrees", fmt.Sprintf("%v for vertex %d", p.GCNDegree(i), i), fmt.Sprint(sum))
}
