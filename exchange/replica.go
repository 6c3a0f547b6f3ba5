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
	Owners *Lookup           // of vertices that are not here; nil: nothing is looked up
	IDs    []uint32          // by number in the partition; within a depth ascending
	Depth  []int             // falling
	In     *graph.CSR        // in-edges of own vertices and of replicas with a depth, by number in the partition
	Share  []float64         // of its in-edges that In has of each row; nil: all
	Known  map[uint32]Vertex // that are not in the part
	// Workers First to Last-1 are a server, and relay to each other what comes from other
	// servers; Last 0: rows come directly from their holders.
	First, Last int

	all   []uint32          // own vertices, replicas, then the others that In names
	place map[uint32]uint32 // where those that are not own stand in all
	from  []uint32          // In's indices as places in all
}

// number gives every vertex that occurs its place in one list.
func (c *Replicas) number() {
	c.place = make(map[uint32]uint32, len(c.IDs))
	for v := range uint32(c.W.Part.Core()) {
		c.all = append(c.all, c.W.Global(v))
	}
	put := func(v uint32) uint32 {
		at, ok := c.at(v)
		if !ok {
			at = uint32(len(c.all))
			c.place[v], c.all = at, append(c.all, v)
		}
		return at
	}
	for _, v := range c.IDs {
		put(v)
	}
	c.from = make([]uint32, len(c.In.Indices))
	for e, v := range c.In.Indices {
		c.from[e] = put(v)
	}
}

// lookUpAll looks up the vertices that are not known.
func (c *Replicas) lookUpAll() error {
	var ask []uint32
	for _, v := range c.all[c.W.Part.Core():] {
		if _, ok := c.vertex(v); !ok {
			ask = append(ask, v)
		}
	}
	slices.Sort(ask)
	got, err := c.Owners.Vertices(ask)
	for i, m := range got {
		c.Known[ask[i]] = m
	}
	return err
}

// at is a vertex's place in all, if it has one.
func (c *Replicas) at(v uint32) (uint32, bool) {
	if own, ok := c.W.Own(v); ok {
		return own, true
	}
	at, ok := c.place[v]
	return at, ok
}

// rows is how many rows have a depth of at least d.
func (c *Replicas) rows(d int) int {
	n, _ := slices.BinarySearchFunc(c.Depth, d, func(depth, d int) int { return cmp.Compare(d, depth+1) })
	return c.W.Part.Core() + n
}

// Halos are those of the first layers. holder says which worker computes a vertex's input
// of a layer, where this one does not.
func (c *Replicas) Halos(layers int, holder func(layer int, v uint32) int) ([]*Halo, error) {
	c.number()
	if err := c.lookUpAll(); err != nil {
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

// plan is that of a layer, but for what others need directly from here, and the vertices
// that come directly from others.
func (c *Replicas) plan(layer int, holder func(v uint32) int) (*HaloPlan, []uint32, error) {
	dst, src := c.rows(layer+1), c.rows(layer)
	edges := c.In.Indptr[dst]
	halo := c.needed(edges, src, holder)
	relay, err := c.relayTo(c.First, c.Last, halo)
	if err != nil {
		return nil, nil, err
	}
	p := &HaloPlan{Src: src, In: &graph.CSR{Indptr: c.In.Indptr[:dst+1], Indices: make([]uint32, edges)}}
	if c.In.Weights != nil {
		p.In.Weights = c.In.Weights[:edges]
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
	p.IDs = make([]uint32, n)
	rows := slices.Clone(c.all[:p.Src])
	for i := range halo {
		rows = append(rows, halo[i].v)
	}
	for i, v := range rows {
		m, _ := c.vertex(v)
		p.IDs[i], p.Degrees.All[i], p.Degrees.NoLoops[i] = m.ID, float64(m.Degree), m.GCNDegree
	}
	p.Halo = rows[p.Src:]
	if c.Share != nil {
		p.Scales = keptDegrees(p.Degrees.Slice(0, dst), c.Share)
	}
}

// order sorts halo rows, direct ones first, each by who sends them, and lists where
// senders begin and what is relayed. It returns where each row, by its place, stands, and
// the vertices that come directly.
func (c *Replicas) order(p *HaloPlan, halo []haloRow, relay [][]uint32) (at, direct []uint32) {
	slices.SortFunc(halo, func(a, b haloRow) int {
		return cmp.Or(cmp.Compare(min(a.relay, 0), min(b.relay, 0)), cmp.Compare(a.from(), b.from()),
			cmp.Compare(a.v, b.v))
	})
	n := c.W.End.Size()
	at = make([]uint32, len(c.all)-p.Src)
	p.HaloPtr, p.Relay = make([]int64, n+1), &RelayPlan{SendPtr: make([]int64, n+1), HaloPtr: make([]int64, n+1)}
	place := map[uint32]uint32{} // of direct rows
	for i := range halo {
		r := &halo[i]
		at[r.place] = uint32(i)
		if r.relay >= 0 {
			p.Relay.HaloPtr[r.relay+1]++
			p.Relay.haloHolders = append(p.Relay.haloHolders, r.holder)
			continue
		}
		p.HaloPtr[r.holder+1]++
		place[r.v], direct = uint32(i), append(direct, r.v)
	}
	for q := range n {
		for _, v := range relay[q] {
			p.Relay.Send = append(p.Relay.Send, place[v])
			p.Relay.sendHolders = append(p.Relay.sendHolders, halo[place[v]].holder)
		}
		p.HaloPtr[q+1] += p.HaloPtr[q]
		p.Relay.HaloPtr[q+1] += p.Relay.HaloPtr[q]
		p.Relay.SendPtr[q+1] = int64(len(p.Relay.Send))
	}
	return at, direct
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

// needed lists what edges need beyond the first src rows, by holder and vertex.
func (c *Replicas) needed(edges int64, src int, holder func(v uint32) int) (rows []haloRow) {
	seen := make([]bool, len(c.all)-src)
	for _, p := range c.from[:edges] {
		if p := int(p) - src; p >= 0 && !seen[p] {
			seen[p] = true
			v := c.all[src+p]
			rows = append(rows, haloRow{v: v, place: uint32(p), holder: holder(v), relay: -1})
		}
	}
	slices.SortFunc(rows, func(a, b haloRow) int {
		return cmp.Or(cmp.Compare(a.holder, b.holder),
			cmp.Compare(a.v, b.v))
	})
	return rows
}

// vertex is what is known of a vertex, if anything is.
func (c *Replicas) vertex(v uint32) (Vertex, bool) {
	if own, ok := c.W.Own(v); ok {
		return c.W.Vertex(own), true
	}
	if m, ok := c.Known[v]; ok {
		return m, true
	}
	at, ok := slices.BinarySearch(c.W.Part.Halo, v)
	if !ok {
		return Vertex{}, false
	}
	return c.W.Vertex(uint32(c.W.Part.Core() + at)), true
}

// askFor tells holders which rows this worker needs, and learns which they need.
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
	order := make([]uint32, len(c.IDs)) // replicas by number
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(c.IDs[a], c.IDs[b]) })
	ids := make([]uint32, len(order))
	at := make([]int, len(order)) // where a replica's row arrives
	for i, j := range order {
		ids[i], at[j] = c.IDs[j], i
	}
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

// datasetIDs are those of own vertices and replicas.
func (c *Replicas) datasetIDs() []uint32 {
	ids := slices.Clone(c.W.Part.IDs[:c.W.Part.Core()])
	for _, v := range c.IDs {
		m, _ := c.vertex(v)
		ids = append(ids, m.ID)
	}
	return ids
}

// Replicating is an aggregator of workers with replicas: rows that are not computed here
// are received, all of them in every pass.
type Replicating struct {
	*Aggregator
	ids      []uint32
	features *graph.Features
}

// Aggregator fetches the features of replicas, the last that is asked of owners.
func (c *Replicas) Aggregator(halos []*Halo) (*Replicating, error) {
	features, err := c.joined()
	if err != nil {
		return nil, err
	}
	if err := c.Owners.Close(); err != nil {
		return nil, err
	}
	a := NewAggregator(c.W, NewRows(c.W), halos...)
	a.Prepare = c.Sent
	return &Replicating{Aggregator: a, ids: c.datasetIDs(), features: features}, nil
}

// Replicas are own vertices and replicas.
func (r *Replicating) Replicas() ([]uint32, *graph.Features) { return r.ids, r.features }
