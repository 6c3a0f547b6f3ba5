package granndis

import (
	"starling/exchange"
	"starling/nn"
)

// work is about what a layer takes in an epoch for a row and for an edge, in
// multiplications with a weight.
type work struct{ row, edge int64 }

// edgeWork is how many multiplications take as long as adding one number of a
// neighbour's row, which has to be fetched.
const edgeWork = 4

// works is the work of all layers. It comes from the model alone, not from a clock, so that
// every run places replicas alike.
func works(w *exchange.Worker) (out []work) {
	model := nn.New(w.Dev, w.Model, w.Seed)
	defer model.Free(w.Dev)
	c, layers := &w.Model, model.Traffic(w.SparseFeatures(), w.FirstSum(), true)
	var all int64
	in := c.In
	if c.Typed != nil {
		in = c.Hidden // an encoder for every type is before the first layer
	}
	for i, t := range layers {
		width := c.Hidden
		if i == len(layers)-1 {
			width = c.Out
		}
		out = append(out, work{int64(in * width), edgeWork * int64(t.Forward.Rows+t.Backward.Rows) / 2})
		all, in = all+out[i].row, width
	}
	for i := range out { // layers may have several matrices
		out[i].row = out[i].row * int64(model.Size()) / max(all, 1)
	}
	return out
}

// workOf is the work of vertices with some in-edges in the first layers.
func (n *neighbourhood) workOf(layers int, vertices, edges int64) (sum int64) {
	for _, w := range n.works[:max(0, min(layers, len(n.works)))] {
		sum += w.row*vertices + w.edge*edges
	}
	return sum
}

// loads are what the workers of the server have to do if k layers are preloaded and
// nothing more is found; -1: a worker without own vertices, which stays without.
func (n *neighbourhood) loads(k int) []int64 {
	out := make([]int64, len(n.size))
	for w, z := range n.size {
		out[w] = n.workOf(len(n.works), z.vertices, z.edges)
	}
	for i, at := range n.placed {
		m, _ := n.known.Of(n.known.IDs[i])
		out[int(at.worker)-n.first] += n.workOf(k-int(at.hop), 1, int64(m.Degree))
	}
	for w, z := range n.size {
		if z.vertices == 0 {
			out[w] = -1
		}
	}
	return out
}

// place shares vertices of the next hop out over the workers and returns this worker's.
// Findings are by vertex; all workers of the server have the same. Where k is not known
// yet, the hop is taken for the last that is computed.
func (n *neighbourhood) place(all []finding) (mine []uint32) {
	hop := len(n.hops)
	k := n.k
	if k < 0 {
		k = hop + 1
	}
	wanted := make([]want, 0, len(all))
	workers := len(n.size)
	needs := make([]uint32, workers*len(all)) // one piece per vertex
	for i, f := range all {
		if i == 0 || f.v != all[i-1].v {
			wanted = append(wanted, want{weight: n.workOf(k-hop, 1, int64(f.Degree)) + 1,
				need: needs[len(wanted)*workers:][:workers]})
		}
		wanted[len(wanted)-1].need[f.worker] = f.need
	}
	at := distribute(wanted, n.loads(k))
	i := -1
	for j, f := range all {
		if j > 0 && f.v == all[j-1].v {
			continue
		}
		i++
		to := place{worker: int32(n.first + at[i]), hop: int32(hop)}
		n.known.Know(f.v, f.Vertex)
		n.placed = append(n.placed, to)
		if int(to.worker) == n.w.End.Rank() {
			mine = append(mine, f.v)
		}
	}
	return mine
}

// want is a vertex to be placed: its work, and how many of each worker's edges
// lead to it.
type want struct {
	weight int64
	need   []uint32
}

// slack is how much over its share of all work a worker may have for being the one that
// needs a vertex most: rows inside a server are cheap.
const slack = 0.01

// distribute gives each vertex to the worker that needs it most, unless that one then
// had over its share of all work; then to the one with least. load is brought up to
// date; workers of load -1 get nothing.
func distribute(vertices []want, load []int64) []int {
	var sum, workers int64
	for _, l := range load {
		if l >= 0 {
			sum, workers = sum+l, workers+1
		}
	}
	for _, v := range vertices {
		sum += v.weight
	}
	limit := int64((1+slack)*float64(sum)/float64(max(workers, 1))) + 1
	at := make([]int, len(vertices))
	for i, v := range vertices {
		most, least := -1, -1
		for w, l := range load {
			if l < 0 {
				continue
			}
			if most < 0 || v.need[w] > v.need[most] {
				most = w
			}
			if least < 0 || l < load[least] {
				least = w
			}
		}
		if load[most]+v.weight > limit {
			most = least
		}
		load[most] += v.weight
		at[i] = most
	}
	return at
}
