package exchange

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/wire"
)

// Replicas are vertices of other workers that this one computes too, so that their rows
// need not travel. One of depth d has its output of the first d layers computed here, from
// its features on; of depth 0 only the features are here.
//
// Rows are in one order for all layers: the worker's own vertices, then replicas, the
// deepest first. So layer l (from 0) takes a prefix of the rows, own ones and replicas of
// depth l and more, and makes a shorter prefix, own ones and replicas of depth l+1 and
// more: a layer is masked by how many rows it has, and no row is ever moved.
type Replicas struct {
	*Setup
	Owners *Lookup    // of vertices that are not here; nil: nothing is looked up
	IDs    []uint32   // by number in the partition; within a depth ascending
	Depth  []int      // falling
	In     *graph.CSR // in-edges of own vertices and of replicas with a depth, by number in the partition
	Share  []float64  // of its in-edges that In has of each row; nil: all
	Known  *Vertices  // that are not in the part; nil: none
	// Workers First to Last-1 are a server, and relay to each other what comes from other
	// servers; Last 0: rows come directly from their holders.
	First, Last int

	all      []uint32  // own vertices, replicas, then the others that In names
	others   Numbering // of those that are not own: their places in all after own ones
	vertices []Vertex  // by place in all
	from     []uint32  // In's indices as places in all
}

// number gives every vertex that occurs its place in one list.
func (c *Replicas) number() {
	core := uint32(c.W.Part.Core())
	for _, v := range c.IDs {
		c.others.Put(v)
	}
	c.from = make([]uint32, len(c.In.Indices))
	for e, v := range c.In.Indices {
		own, ok := c.W.Own(v)
		if !ok {
			own, _ = c.others.Put(v)
			own += core
		}
		c.from[e] = own
	}
	c.all = make([]uint32, core, int(core)+len(c.others.IDs))
	for v := range core {
		c.all[v] = c.W.Global(v)
	}
	c.all = append(c.all, c.others.IDs...)
}

// describeAll finds what is known of all vertices that occur, and looks up the vertices of which nothing is.
func (c *Replicas) describeAll() error {
	part := c.W.Part
	core, seen := part.Core(), make([]bool, len(c.all))
	c.vertices = make([]Vertex, len(c.all))
	for v := range core {
		c.vertices[v], seen[v] = c.W.Vertex(uint32(v)), true
	}
	for i, v := range part.Halo {
		if at, ok := c.others.At(v); ok {
			c.vertices[core+int(at)], seen[core+int(at)] = c.W.Vertex(uint32(core+i)), true
		}
	}
	var ask []uint32
	for i := core; i < len(c.all); i++ {
		if m, ok := c.Known.Of(c.all[i]); ok {
			c.vertices[i] = m
		} else if !seen[i] {
			ask = append(ask, c.all[i])
		}
	}
	if len(ask) == 0 {
		return nil
	}
	slices.Sort(ask)
	got, err := c.Owners.Vertices(ask)
	for i, m := range got {
		at, _ := c.others.At(ask[i])
		c.vertices[core+int(at)] = m
	}
	return err
}

// at is a vertex's place in all, if it has one.
func (c *Replicas) at(v uint32) (uint32, bool) {
	if own, ok := c.W.Own(v); ok {
		return own, true
	}
	at, ok := c.others.At(v)
	return at + uint32(c.W.Part.Core()), ok
}

// rows is how many rows have a depth of at least d.
func (c *Replicas) rows(d int) int {
	n, _ := slices.BinarySearchFunc(c.Depth, d, func(depth, d int) int { return cmp.Compare(d, depth+1) })
	return c.W.Part.Core() + n
}

// Halos are the halos of the first layers. holder says which worker computes a vertex's input
// of a layer, where this one does not.
func (c *Replicas) Halos(layers int, holder func(layer int, v uint32) int) ([]*Halo, error) {
	c.number()
	if err := c.describeAll(); err != nil {
		return nil, err
	}
	if err := c.checkTypes(); err != nil {
		return nil, err
	}
	out := make([]*Halo, layers)
	var before *HaloPlan
	for layer := range layers {
		p, direct, err := c.plan(layer, func(v uint32) int { return holder(layer, v) })
		if err != nil {
			return nil, err
		}
		if err := c.askFor(p, direct, layer); err != nil {
			return nil, err
		}
		if layer > 0 && p.same(before) { // hops no longer grow, or there are no replicas
			out[layer] = out[layer-1]
			continue
		}
		out[layer], before = NewHalo(c.W.Dev, p), p
	}
	return out, nil
}

// same reports whether two layers have the same rows here and need the same elsewhere.
func (p *HaloPlan) same(o *HaloPlan) bool {
	return p.Src == o.Src && p.In.Nodes() == o.In.Nodes() && slices.Equal(p.IDs, o.IDs) &&
		slices.Equal(p.HaloPtr, o.HaloPtr) &&
		slices.Equal(p.SendPtr, o.SendPtr) && slices.Equal(p.Send, o.Send) &&
		slices.Equal(p.In.Indices, o.In.Indices) &&
		slices.Equal(p.Relay.Send, o.Relay.Send) && slices.Equal(p.Relay.SendPtr, o.Relay.SendPtr) &&
		slices.Equal(p.Relay.HaloPtr, o.Relay.HaloPtr)
}

// plan is the plan of a layer, but for what others need directly from here, and the vertices
// that come directly from others.
func (c *Replicas) plan(layer int, holder func(v uint32) int) (*HaloPlan, []uint32, error) {
	dst, src := c.rows(layer+1), c.rows(layer)
	edges := c.In.Indptr[dst]
	halo := c.needed(edges, src, holder)
	relay, err := c.relayTo(c.First, c.Last, halo)
	if err != nil {
		return nil, nil, err
	}
	halo = bySender(halo, c.W.End.Size())
	p := &HaloPlan{Src: src, In: &graph.CSR{Indptr: c.In.Indptr[:dst+1], Indices: make([]uint32, edges)}}
	if c.In.Weights != nil {
		p.In.Weights = c.In.Weights[:edges]
	}
	if p.Schema = c.W.Part.Book.Schema; p.Schema != nil {
		p.In.Relations = c.In.Relations[:edges]
	}
	p.In.EdgeDim, p.In.EdgeFeatures = c.In.EdgeDim, c.In.EdgeRows(0, edges)
	at, direct := c.order(p, halo, relay)
	for e, place := range c.from[:edges] {
		if int(place) >= src {
			place = uint32(src) + at[int(place)-src]
		}
		p.In.Indices[e] = place
	}
	c.describe(p, halo, dst)
	return p, direct, nil
}

// describe adds ids and degrees of rows.
func (c *Replicas) describe(p *HaloPlan, halo []haloRow, dst int) {
	n := p.Src + len(halo)
	p.Degrees = &nn.Degrees{All: make([]float64, n), NoLoops: make([]float64, n)}
	p.IDs, p.Halo = make([]uint32, n), make([]uint32, len(halo))
	put := func(i int, m *Vertex) {
		p.IDs[i], p.Degrees.All[i], p.Degrees.NoLoops[i] = m.ID, float64(m.Degree), m.GCNDegree
	}
	for i := range p.Src {
		put(i, &c.vertices[i])
	}
	for i := range halo {
		p.Halo[i] = halo[i].v
		put(p.Src+i, &c.vertices[p.Src+int(halo[i].place)])
	}
	if c.Share != nil {
		p.Scales = keptDegrees(p.Degrees.Slice(0, dst), c.Share)
	}
}

// order lists where the senders of halo rows begin, which are by sender, and what is relayed. It returns where
// each row, by its place, stands, and the vertices that come directly.
func (c *Replicas) order(p *HaloPlan, halo []haloRow, relay [][]uint32) (at, direct []uint32) {
	n := c.W.End.Size()
	at = make([]uint32, len(c.all)-p.Src)
	p.HaloPtr, p.Relay = make([]int64, n+1), &RelayPlan{SendPtr: make([]int64, n+1), HaloPtr: make([]int64, n+1)}
	for i := range halo {
		r := &halo[i]
		at[r.place] = uint32(i)
		if r.relay >= 0 {
			p.Relay.HaloPtr[r.relay+1]++
			p.Relay.haloHolders = append(p.Relay.haloHolders, r.holder)
			continue
		}
		p.HaloPtr[r.holder+1]++
		direct = append(direct, r.v)
	}
	for q := range n {
		for _, v := range relay[q] {
			place, _ := c.at(v)
			row := at[int(place)-p.Src]
			p.Relay.Send = append(p.Relay.Send, row)
			p.Relay.sendHolders = append(p.Relay.sendHolders, halo[row].holder)
		}
		p.HaloPtr[q+1] += p.HaloPtr[q]
		p.Relay.HaloPtr[q+1] += p.Relay.HaloPtr[q]
		p.Relay.SendPtr[q+1] = int64(len(p.Relay.Send))
	}
	return at, direct
}

// bySender are rows with the direct ones first, each by who sends them, of n workers; rows of one sender stay in
// their order.
func bySender(rows []haloRow, n int) []haloRow {
	group := func(r *haloRow) int {
		if r.relay >= 0 {
			return n + r.relay
		}
		return r.holder
	}
	next := make([]int, 2*n+1)
	for i := range rows {
		next[group(&rows[i])+1]++
	}
	for i := range 2 * n {
		next[i+1] += next[i]
	}
	out := make([]haloRow, len(rows))
	for i := range rows {
		at := &next[group(&rows[i])]
		out[*at] = rows[i]
		*at++
	}
	return out
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

// needed lists what edges need beyond the first src rows, by vertex.
func (c *Replicas) needed(edges int64, src int, holder func(v uint32) int) (rows []haloRow) {
	seen, count := make([]bool, len(c.all)-src), 0
	for _, p := range c.from[:edges] {
		if p := int(p) - src; p >= 0 && !seen[p] {
			seen[p] = true
			count++
		}
	}
	rows = make([]haloRow, 0, count)
	for v, at := range c.others.Ascending() {
		if p := c.W.Part.Core() + int(at) - src; p >= 0 && seen[p] {
			rows = append(rows, haloRow{v: v, place: uint32(p), holder: holder(v), relay: -1})
		}
	}
	return rows
}

// askFor sends holders the rows that this worker needs, and receives which rows they need.
func (c *Replicas) askFor(p *HaloPlan, direct []uint32, layer int) error {
	out := make([][]byte, c.W.End.Size())
	for q := range out {
		out[q], _ = binary.Append(nil, binary.LittleEndian, direct[p.HaloPtr[q]:p.HaloPtr[q+1]])
	}
	in, err := c.Swap(wire.Topology, out)
	if err != nil {
		return err
	}
	p.SendPtr = make([]int64, len(in)+1)
	for q, b := range in {
		for _, v := range Numbers(b) {
			i, ok := c.at(v)
			if !ok || int(i) >= p.Src {
				return fmt.Errorf("worker %d expects vertex %d of layer %d from this one, which does not compute it", q,
					v, layer)
			}
			p.Send = append(p.Send, i)
		}
		p.SendPtr[q+1] = int64(len(p.Send))
	}
	return nil
}

// asked are the replicas in the order in which owners are asked for them, and where each one's row arrives.
func (c *Replicas) asked() (ids []uint32, at []int) {
	order := make([]uint32, len(c.IDs)) // replicas by number
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(c.IDs[a], c.IDs[b]) })
	ids, at = make([]uint32, len(order)), make([]int, len(order))
	for i, j := range order {
		ids[i], at[j] = c.IDs[j], i
	}
	return ids, at
}

// joined are the features of own vertices and replicas.
func (c *Replicas) joined() (*graph.Features, error) {
	f, core := c.W.Part.Features, c.W.Part.Core()
	switch {
	case !c.W.MemoryOnly || f.Kind() == graph.Sparse:
	case len(c.IDs) == 0:
		return f, nil
	default:
		return unread(f, core+len(c.IDs)), nil
	}
	ids, at := c.asked()
	got, err := c.Owners.Features(ids)
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
			out.Indices = append(out.Indices, got.Indices[lo:hi]...)
			out.Values = append(out.Values, got.Values[lo:hi]...)
			out.Indptr = append(out.Indptr, int64(len(out.Indices)))
		}
	}
	return out, nil
}

// unread are as many rows of the same kind, in memory that is never touched. (Rows of all
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

// datasetIDs are the dataset ids of own vertices and replicas.
func (c *Replicas) datasetIDs() []uint32 {
	ids := slices.Clone(c.W.Part.IDs[:c.W.Part.Core()])
	for i := range c.IDs {
		ids = append(ids, c.vertices[c.W.Part.Core()+i].ID)
	}
	return ids
}

// Replicating is an aggregator of workers with replicas: rows that are not computed here
// are received, all of them in every pass.
type Replicating struct {
	*Aggregator
	ids      []uint32
	features *graph.Features
	byType   []*graph.Features
}

// Aggregator fetches the features of replicas, the last that is asked of owners.
func (c *Replicas) Aggregator(halos []*Halo) (*Replicating, error) {
	var features *graph.Features
	var byType []*graph.Features
	var err error
	if c.W.Part.Book.Schema != nil {
		byType, err = c.joinedTypes()
	} else {
		features, err = c.joined()
	}
	if err != nil {
		return nil, err
	}
	if err := c.Owners.Close(); err != nil {
		return nil, err
	}
	a := NewAggregator(c.W, NewRows(c.W), halos...)
	a.Prepare = c.Sent
	return &Replicating{Aggregator: a, ids: c.datasetIDs(), features: features, byType: byType}, nil
}

// Replicas are own vertices and replicas, with their features, in a typed graph by type.
func (r *Replicating) Replicas() ([]uint32, *graph.Features, []*graph.Features) {
	return r.ids, r.features, r.byType
}
