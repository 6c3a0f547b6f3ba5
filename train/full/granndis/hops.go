package granndis

import (
	"encoding/binary"
	"fmt"
	"slices"

	"starling/exchange"
	"starling/graph"
	"starling/train/site"
)

// neighbourhood is the k-hop in-neighbourhood of a server, hop by hop: hop 1 are the
// in-neighbours, on other servers, of the server's own vertices, hop 2 those of hop 1, and
// so on. Every vertex is given to one worker of the server, which will compute it for all
// of them.
type neighbourhood struct {
	*exchange.Lookup
	w           *exchange.Worker
	costs       *site.Costs
	first, last int // workers of this server: first to last-1
	hops        []hop
	placed      []place           // where vertices of other servers are, as known numbers them
	known       exchange.Vertices // those vertices
	size        []size            // of the workers of the server
	works       []work            // of layers
	k           int               // layers that will be preloaded; -1: not known yet
	// by worker of the server, the share of its hop 1 that is received all the same
	received []float64
	share    float64          // of hop 1 that is received by all of them
	links    map[uint32]int64 // edges into the server that were seen, for sampling
	pick     *sampling        // nil: everything
	grown    growth
	needed   exchange.Numbering // rows of other workers of the server
}

// place is the worker of this server that has a vertex, and the hop that it is of.
type place struct{ worker, hop int32 }

// hop is this worker's share of one; hop 0 are its own vertices.
type hop struct {
	ids  []uint32   // ascending
	in   *graph.CSR // in-edges by number in the partition, once they are known
	kept []float64  // the share of them that sampling left, of each vertex; nil: all
}

// size is how many vertices and in-edges a worker has of its own.
type size struct{ vertices, edges int64 }

// newNeighbourhood knows of nothing beyond the server yet. k layers will be preloaded; -1:
// that is to be found out.
func newNeighbourhood(l *exchange.Setup, costs *site.Costs, k int, pick *sampling) (*neighbourhood, error) {
	owners, err := exchange.NewLookup(l, "granndis")
	if err != nil {
		return nil, err
	}
	first, last := l.W.Server()
	n := &neighbourhood{Lookup: owners, w: l.W, costs: costs, first: first, last: last, links: map[uint32]int64{}, k: k,
		works: works(l.W), pick: pick}
	own := hop{in: l.W.Edges()}
	for v := range uint32(l.W.Part.Core()) {
		own.ids = append(own.ids, l.W.Global(v))
	}
	n.hops = []hop{own}
	if err := n.grown.begin(n); err != nil {
		return nil, err
	}
	all, err := l.Share(float64(len(own.ids)), float64(own.in.Edges()))
	for q := n.first; q < n.last && err == nil; q++ {
		n.size = append(n.size, size{int64(all[q][0]), int64(all[q][1])})
	}
	return n, err
}

// remote reports whether another server owns a vertex.
func (n *neighbourhood) remote(v uint32) bool {
	at := n.w.Part.Book.Offsets
	return int64(v) < at[n.first] || int64(v) >= at[n.last]
}

// holder is the worker that computes a vertex for this server.
func (n *neighbourhood) holder(v uint32) int {
	if at, ok := n.at(v); ok {
		return int(at.worker)
	}
	return n.w.Part.Book.Owner(v)
}

// at is where a vertex of other servers is, if this server has it.
func (n *neighbourhood) at(v uint32) (place, bool) {
	if i, ok := n.known.At(v); ok {
		return n.placed[i], true
	}
	return place{}, false
}

// next finds one more hop. It reports whether any server has grown by it.
func (n *neighbourhood) next() (bool, error) {
	if err := n.edgesOf(len(n.hops) - 1); err != nil {
		return false, err
	}
	last := &n.hops[len(n.hops)-1]
	fresh, err := n.described(n.fresh(last))
	if err != nil {
		return false, err
	}
	fresh = slices.DeleteFunc(fresh, func(f finding) bool { return n.w.Learnt(f.ID) }) // received from their owners
	news, err := n.tell(fresh)
	if err != nil {
		return false, err
	}
	if n.pick != nil {
		if news, err = n.sample(last, news); err != nil {
			return false, err
		}
	}
	n.hops = append(n.hops, hop{ids: n.place(news)})
	n.grown.add(n)
	found, err := n.Share(float64(len(news)))
	any := slices.ContainsFunc(found, func(n []float64) bool { return n[0] > 0 })
	if err == nil && !any {
		n.hops = n.hops[:len(n.hops)-1]
	}
	return any, err
}

// edgesOf looks up the in-edges of a hop, if they are not known.
func (n *neighbourhood) edgesOf(i int) (err error) {
	if n.hops[i].in == nil {
		n.hops[i].in, err = n.InEdges(n.hops[i].ids)
	}
	return err
}

// finding is a vertex of another server and how many edges of a worker's hop it is the
// source of.
type finding struct {
	v      uint32
	need   uint32
	worker int // of the server
	exchange.Vertex
}

const findingBytes = 8 + exchange.VertexBytes

// fresh are the vertices that a hop's edges lead to for the first time, ascending.
func (n *neighbourhood) fresh(h *hop) (out []finding) {
	var found exchange.Numbering
	var need []uint32
	for _, u := range h.in.Indices {
		if !n.remote(u) {
			continue
		}
		i, fresh := found.Put(u)
		if fresh {
			need = append(need, 0)
		}
		need[i]++
	}
	ids := slices.DeleteFunc(slices.Clone(found.IDs), func(v uint32) bool {
		_, ok := n.at(v)
		return ok
	})
	slices.Sort(ids)
	out = make([]finding, 0, len(ids))
	for _, v := range ids {
		i, _ := found.At(v)
		out = append(out, finding{v: v, need: need[i]})
	}
	return out
}

// described adds what is known of vertices, from the part where it has them.
func (n *neighbourhood) described(f []finding) ([]finding, error) {
	var ask []uint32
	var to []int
	for i := range f {
		if at, ok := slices.BinarySearch(n.w.Part.Halo, f[i].v); ok {
			f[i].Vertex = n.w.Vertex(uint32(n.w.Part.Core() + at))
		} else {
			ask, to = append(ask, f[i].v), append(to, i)
		}
	}
	got, err := n.Vertices(ask)
	for i := range got {
		f[to[i]].Vertex = got[i]
	}
	return f, err
}

// tell tells the other workers of the server what this one found, and returns what
// all of them found, by vertex and worker.
func (n *neighbourhood) tell(mine []finding) (all []finding, err error) {
	b := make([]byte, 0, findingBytes*len(mine))
	for _, f := range mine {
		b = binary.LittleEndian.AppendUint32(b, f.v)
		b = f.Vertex.Append(binary.LittleEndian.AppendUint32(b, f.need))
	}
	in, err := n.TellServer(n.first, n.last, b)
	if err != nil {
		return nil, err
	}
	for q, b := range in {
		r, theirs := exchange.NewReader(b), make([]finding, len(b)/findingBytes)
		for i := range theirs {
			theirs[i] = finding{v: r.Number(), need: r.Number(), worker: q - n.first, Vertex: r.Vertex()}
			r.Below("vertex", n.W.Part.Book.Nodes, theirs[i].v, theirs[i].ID)
		}
		if err := r.Err(); err != nil {
			return nil, fmt.Errorf("worker %d finds %w", q, err)
		}
		all = merged(all, theirs)
	}
	return all, nil
}

// merged are two lists by vertex as one; of equal vertices those of a are first.
func merged(a, b []finding) []finding {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	out := make([]finding, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].v <= b[0].v {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// replicas are the vertices that this worker replicates if k layers are preloaded.
func (n *neighbourhood) replicas(k int) *exchange.Replicas {
	c := &exchange.Replicas{Setup: n.Setup, Owners: n.Lookup, Known: &n.known, First: n.first, Last: n.last,
		In: &graph.CSR{Indptr: []int64{0}, EdgeDim: n.w.Part.In.EdgeDim}}
	own := &n.hops[0]
	edges := len(own.in.Indices)
	for _, h := range n.hops[1:min(max(k, 1), len(n.hops))] {
		if h.in != nil {
			edges += len(h.in.Indices)
		}
	}
	c.In.Indices = make([]uint32, 0, edges)
	for i := range own.ids {
		addEdges(c, own, i)
	}
	for depth := k - 1; depth >= 0; depth-- {
		for j := 1; j <= min(k, len(n.hops)-1); j++ {
			h := &n.hops[j]
			for i, v := range h.ids {
				if n.depth(k, j, v) != depth {
					continue
				}
				c.IDs, c.Depth = append(c.IDs, v), append(c.Depth, depth)
				if depth > 0 { // else only the features are here
					addEdges(c, h, i)
				}
			}
		}
	}
	return c
}

// depth is how many layers of a vertex of hop j are computed here if k are preloaded.
func (n *neighbourhood) depth(k, j int, v uint32) int {
	if j == 1 && k > 1 && n.receives(v) {
		return k - 2
	}
	return k - j
}

// addEdges adds the in-edges of row i of a hop.
func addEdges(c *exchange.Replicas, h *hop, i int) {
	lo, hi := h.in.Indptr[i], h.in.Indptr[i+1]
	c.In.Indices = append(c.In.Indices, h.in.Indices[lo:hi]...)
	if h.in.Weights != nil {
		c.In.Weights = append(c.In.Weights, h.in.Weights[lo:hi]...)
	}
	c.In.EdgeFeatures = append(c.In.EdgeFeatures, h.in.EdgeRows(lo, hi)...)
	if h.in.Relations != nil {
		c.In.Relations = append(c.In.Relations, h.in.Relations[lo:hi]...)
	}
	if h.kept != nil {
		c.Share = append(c.Share, h.kept[i])
	}
	c.In.Indptr = append(c.In.Indptr, int64(len(c.In.Indices)))
}
