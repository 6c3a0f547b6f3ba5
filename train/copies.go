package train

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/wire"
)

// copies are vertices of other workers that this one computes too, so that their
// rows need not travel. One of depth d has its output of the first d layers computed
// here, from its features on; of depth 0 only the features are here.
//
// Rows are in one order for all layers: the worker's own vertices, then copies, the
// deepest first. So layer l (from 0) takes a prefix of the rows, own ones and copies
// of depth l and more, and makes a shorter prefix, own ones and copies of depth l+1
// and more: a layer is masked by how many rows it has, and no row is ever moved.
type copies struct {
	*lookup
	ids   []uint32        // of copies, by number in the partition; within a depth ascending
	depth []int           // falling
	in    *graph.CSR      // in-edges of own vertices and of copies with a depth, by number in the partition
	kept  []float64       // the share of its in-edges that in has of each row; nil: all
	marks map[uint32]mark // of vertices that are not in the part, as far as they are known
	// Workers first to last-1 are a server, and pass on to each other what comes from
	// beyond it; last 0: rows come straight from their holders.
	first, last int

	all   []uint32          // own vertices, copies, then the others that in names
	place map[uint32]uint32 // where those that are not own stand in all
	from  []uint32          // in's indices as places in all
}

// number gives every vertex that occurs its place in one list.
func (c *copies) number() {
	c.place = make(map[uint32]uint32, len(c.ids))
	for v := range uint32(c.part.Core()) {
		c.all = append(c.all, c.global(v))
	}
	put := func(v uint32) uint32 {
		at, ok := c.at(v)
		if !ok {
			at = uint32(len(c.all))
			c.place[v], c.all = at, append(c.all, v)
		}
		return at
	}
	for _, v := range c.ids {
		put(v)
	}
	c.from = make([]uint32, len(c.in.Indices))
	for e, v := range c.in.Indices {
		c.from[e] = put(v)
	}
}

// markAll looks up the marks that are missing.
func (c *copies) markAll() error {
	var ask []uint32
	for _, v := range c.all[c.part.Core():] {
		if _, ok := c.known(v); !ok {
			ask = append(ask, v)
		}
	}
	slices.Sort(ask)
	got, err := c.lookup.marks(ask)
	for i, m := range got {
		c.marks[ask[i]] = m
	}
	return err
}

// at is a vertex's place in all, if it has one.
func (c *copies) at(v uint32) (uint32, bool) {
	if own, ok := c.own(v); ok {
		return own, true
	}
	at, ok := c.place[v]
	return at, ok
}

// rows is how many rows have a depth of at least d.
func (c *copies) rows(d int) int {
	n, _ := slices.BinarySearchFunc(c.depth, d, func(depth, d int) int { return cmp.Compare(d, depth+1) })
	return c.part.Core() + n
}

// borders are those of the first layers. holder says which worker computes a vertex's
// input of a layer, where this one does not.
func (c *copies) borders(layers int, holder func(layer int, v uint32) int) ([]*border, error) {
	c.number()
	if err := c.markAll(); err != nil {
		return nil, err
	}
	out := make([]*border, layers)
	var before lists
	for layer := range layers {
		l, far, err := c.lists(layer, func(v uint32) int { return holder(layer, v) })
		if err != nil {
			return nil, err
		}
		if err := c.askFor(&l, far, layer); err != nil {
			return nil, err
		}
		if layer > 0 && l.same(&before) { // hops no longer grow, or there are no copies
			out[layer] = out[layer-1]
			continue
		}
		out[layer], before = newBorder(c.dev, l), l
	}
	return out, nil
}

// same tells whether two layers have the same rows here and need the same elsewhere.
func (l *lists) same(o *lists) bool {
	return l.src == o.src && l.in.Nodes() == o.in.Nodes() && slices.Equal(l.ids, o.ids) && slices.Equal(l.farPtr, o.farPtr) &&
		slices.Equal(l.sendPtr, o.sendPtr) && slices.Equal(l.send, o.send) && slices.Equal(l.in.Indices, o.in.Indices) &&
		slices.Equal(l.relay.send, o.relay.send) && slices.Equal(l.relay.sendPtr, o.relay.sendPtr) && slices.Equal(l.relay.farPtr, o.relay.farPtr)
}

// lists are those of a layer, but for what others need straight from here, and the
// vertices that come straight from others.
func (c *copies) lists(layer int, holder func(v uint32) int) (lists, []uint32, error) {
	dst, src := c.rows(layer+1), c.rows(layer)
	edges := c.in.Indptr[dst]
	far := c.far(edges, src, holder)
	pass, err := c.passOn(c.first, c.last, far)
	if err != nil {
		return lists{}, nil, err
	}
	l := lists{src: src, in: &graph.CSR{Indptr: c.in.Indptr[:dst+1], Indices: make([]uint32, edges)}}
	if c.in.Weights != nil {
		l.in.Weights = c.in.Weights[:edges]
	}
	l.in.EdgeDim, l.in.EdgeFeatures = c.in.EdgeDim, c.in.EdgeRows(0, edges)
	at, straight := c.order(&l, far, pass)
	for e, p := range c.from[:edges] {
		if int(p) >= src {
			p = uint32(src) + at[int(p)-src]
		}
		l.in.Indices[e] = p
	}
	l.degrees = &nn.Degrees{All: make([]float64, src+len(far)), NoLoops: make([]float64, src+len(far))}
	l.ids = make([]uint32, src+len(far))
	rows := slices.Clone(c.all[:src])
	for i := range far {
		rows = append(rows, far[i].v)
	}
	for i, v := range rows {
		m, _ := c.known(v)
		l.ids[i], l.degrees.All[i], l.degrees.NoLoops[i] = m.id, float64(m.degree), m.gcn
	}
	l.far = rows[src:]
	if c.kept != nil {
		l.rows = keptDegrees(l.degrees.Slice(0, dst), c.kept)
	}
	return l, straight, nil
}

// order sorts far rows, straight ones first, each by who sends them, and lists where
// senders begin and what is passed on. It returns where each row, by its place, stands,
// and the vertices that come straight.
func (c *copies) order(l *lists, far []farRow, pass [][]uint32) (at, straight []uint32) {
	slices.SortFunc(far, func(a, b farRow) int {
		return cmp.Or(cmp.Compare(min(a.via, 0), min(b.via, 0)), cmp.Compare(a.from(), b.from()), cmp.Compare(a.v, b.v))
	})
	n := c.end.Size()
	at = make([]uint32, len(c.all)-l.src)
	l.farPtr, l.relay = make([]int64, n+1), &relayLists{sendPtr: make([]int64, n+1), farPtr: make([]int64, n+1)}
	place := map[uint32]uint32{} // of straight rows
	for i := range far {
		r := &far[i]
		at[r.place] = uint32(i)
		if r.via >= 0 {
			l.relay.farPtr[r.via+1]++
			l.relay.farHolders = append(l.relay.farHolders, r.holder)
			continue
		}
		l.farPtr[r.holder+1]++
		place[r.v], straight = uint32(i), append(straight, r.v)
	}
	for q := range n {
		for _, v := range pass[q] {
			l.relay.send = append(l.relay.send, place[v])
			l.relay.sendHolders = append(l.relay.sendHolders, far[place[v]].holder)
		}
		l.farPtr[q+1] += l.farPtr[q]
		l.relay.farPtr[q+1] += l.relay.farPtr[q]
		l.relay.sendPtr[q+1] = int64(len(l.relay.send))
	}
	return at, straight
}

// keptDegrees are the degrees that make kept edges count for those left out: means are over
// the kept ones, and GCN's sum over neighbours and the vertex itself grows by what it had
// over what it has.
func keptDegrees(d *nn.Degrees, kept []float64) *nn.Degrees {
	out := &nn.Degrees{All: make([]float64, len(d.All)), NoLoops: make([]float64, len(d.All))}
	for v, all := range d.All {
		out.All[v] = all * kept[v]
		share := (out.All[v] + 1) / (all + 1)
		out.NoLoops[v] = share*share*(d.NoLoops[v]+1) - 1 // GCN divides by the root of this and 1
	}
	return out
}

// far lists what edges need beyond the first src rows, by holder and vertex.
func (c *copies) far(edges int64, src int, holder func(v uint32) int) (rows []farRow) {
	seen := make([]bool, len(c.all)-src)
	for _, p := range c.from[:edges] {
		if p := int(p) - src; p >= 0 && !seen[p] {
			seen[p] = true
			v := c.all[src+p]
			rows = append(rows, farRow{v: v, place: uint32(p), holder: holder(v), via: -1})
		}
	}
	slices.SortFunc(rows, func(a, b farRow) int { return cmp.Or(cmp.Compare(a.holder, b.holder), cmp.Compare(a.v, b.v)) })
	return rows
}

// known is the mark of a vertex, if it is known.
func (c *copies) known(v uint32) (mark, bool) {
	if own, ok := c.own(v); ok {
		return c.markOf(own), true
	}
	if m, ok := c.marks[v]; ok {
		return m, true
	}
	at, ok := slices.BinarySearch(c.part.Halo, v)
	if !ok {
		return mark{}, false
	}
	return c.markOf(uint32(c.part.Core() + at)), true
}

// askFor tells holders which rows this worker needs, and learns which they need.
func (c *copies) askFor(l *lists, far []uint32, layer int) error {
	out := make([][]byte, c.end.Size())
	for q := range out {
		out[q], _ = binary.Append(nil, binary.LittleEndian, far[l.farPtr[q]:l.farPtr[q+1]])
	}
	in, _, err := c.swap(wire.Topology, out, false)
	if err != nil {
		return err
	}
	l.sendPtr = make([]int64, len(in)+1)
	for q, b := range in {
		for _, v := range take[uint32](&reader{b: b}, len(b)/4) {
			i, ok := c.at(v)
			if !ok || int(i) >= l.src {
				return fmt.Errorf("worker %d expects vertex %d of layer %d from this one, which does not compute it", q, v, layer)
			}
			l.send = append(l.send, i)
		}
		l.sendPtr[q+1] = int64(len(l.send))
	}
	return nil
}

// joined are the features of own vertices and copies.
func (c *copies) joined() (*graph.Features, error) {
	f, core := c.part.Features, c.part.Core()
	switch {
	case !c.rehearsed || f.Kind() == graph.Sparse:
	case len(c.ids) == 0:
		return f, nil
	default:
		return unread(f, core+len(c.ids)), nil
	}
	order := make([]uint32, len(c.ids)) // copies by number
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(c.ids[a], c.ids[b]) })
	ids := make([]uint32, len(order))
	at := make([]int, len(order)) // where a copy's row arrives
	for i, j := range order {
		ids[i], at[j] = c.ids[j], i
	}
	got, err := c.features(ids)
	if err != nil || len(ids) == 0 {
		return f, err
	}
	out := &graph.Features{Rows: core + len(ids), Cols: f.Cols}
	switch f.Kind() {
	case graph.Dense:
		out.F32 = appendRows(slices.Grow(slices.Clip(f.F32), len(got.F32)), got.F32, at, f.Cols)
	case graph.BFloat16:
		out.BF16 = appendRows(slices.Grow(slices.Clip(f.BF16), len(got.BF16)), got.BF16, at, f.Cols)
	case graph.Sparse:
		out.Indptr, out.Indices, out.Values = slices.Clone(f.Indptr), slices.Clone(f.Indices), slices.Clone(f.Values)
		for _, i := range at {
			lo, hi := got.Indptr[i], got.Indptr[i+1]
			out.Indices, out.Values = append(out.Indices, got.Indices[lo:hi]...), append(out.Values, got.Values[lo:hi]...)
			out.Indptr = append(out.Indptr, int64(len(out.Indices)))
		}
	}
	return out, nil
}

// unread are as many rows of the same kind, in memory that nobody touches. (Rows of all
// workers would fill the memory of the host that plans for them.)
func unread(f *graph.Features, rows int) *graph.Features {
	out := &graph.Features{Rows: rows, Cols: f.Cols}
	if f.Kind() == graph.BFloat16 {
		out.BF16 = make([]uint16, rows*f.Cols)
	} else {
		out.F32 = make([]float32, rows*f.Cols)
	}
	return out
}

// appendRows adds rows of src to dst, in the order of at.
func appendRows[T any](dst, src []T, at []int, cols int) []T {
	for _, i := range at {
		dst = append(dst, src[i*cols:(i+1)*cols]...)
	}
	return dst
}

// datasetIDs are those of own vertices and copies.
func (c *copies) datasetIDs() []uint32 {
	ids := slices.Clone(c.part.IDs[:c.part.Core()])
	for _, v := range c.ids {
		m, _ := c.known(v)
		ids = append(ids, m.id)
	}
	return ids
}

// recomputing is the strategy of workers with copies: rows that are not computed here
// are received, all of them in every pass.
type recomputing struct {
	*exchanging
	ids      []uint32
	features *graph.Features
}

// strategy fetches the features of copies.
func (c *copies) strategy(borders []*border) (*recomputing, error) {
	features, err := c.joined()
	if err != nil {
		return nil, err
	}
	x := newExchanging(c.site, &exact{site: c.site}, borders...)
	x.prepare = c.sent
	return &recomputing{exchanging: x, ids: c.datasetIDs(), features: features}, nil
}

// Copies are own vertices and copies.
func (r *recomputing) Copies() ([]uint32, *graph.Features) { return r.ids, r.features }
