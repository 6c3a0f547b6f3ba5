package train

import "starling/nn"

// work is about what a layer takes in an epoch for a row and for an edge, in
// multiplications with a weight.
type work struct{ row, edge int64 }

// edgeWork is how many multiplications take as long as adding up one number of a
// neighbour's row, which has to be fetched.
const edgeWork = 4

// works are those of all layers. They come from the model alone, not from a clock, so
// that every run places copies alike.
func (l *lookup) works() (out []work) {
	model := nn.New(l.dev, l.opt.Model, l.opt.Seed)
	defer l.release(model)
	c, layers := &l.opt.Model, model.Traffic(l.part.Features.Indptr != nil, l.opt.CacheFirst, true)
	var all int64
	in := c.In
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

// workOf is that of vertices with so many in-edges in the first layers.
func (s *surroundings) workOf(layers int, vertices, edges int64) (sum int64) {
	for _, w := range s.works[:max(0, min(layers, len(s.works)))] {
		sum += w.row*vertices + w.edge*edges
	}
	return sum
}

// loads are what the workers of the server have to do if k layers are preloaded and
// nothing more is found; -1: a worker without own vertices, which stays without.
func (s *surroundings) loads(k int) []int64 {
	out := make([]int64, len(s.size))
	for w, n := range s.size {
		out[w] = s.workOf(len(s.works), n.vertices, n.edges)
	}
	for v, q := range s.where {
		out[q-s.first] += s.workOf(k-s.hopOf[v], 1, int64(s.marks[v].degree))
	}
	for w, n := range s.size {
		if n.vertices == 0 {
			out[w] = -1
		}
	}
	return out
}

// place shares vertices of the next hop out over the workers and returns this worker's.
// Findings are by vertex; all workers of the server have the same. Where k is not known
// yet, the hop is taken for the last that is computed.
func (s *surroundings) place(all []finding) (mine []uint32) {
	hop := len(s.hops)
	k := s.k
	if k < 0 {
		k = hop + 1
	}
	var wanted []want
	for i, f := range all {
		if i == 0 || f.v != all[i-1].v {
			wanted = append(wanted, want{weight: s.workOf(k-hop, 1, int64(f.degree)) + 1, need: make([]uint32, len(s.size))})
			s.marks[f.v] = f.mark
		}
		wanted[len(wanted)-1].need[f.worker] = f.need
	}
	at := shareOut(wanted, s.loads(k))
	i := -1
	for j, f := range all {
		if j > 0 && f.v == all[j-1].v {
			continue
		}
		i++
		s.where[f.v], s.hopOf[f.v] = s.first+at[i], hop
		if s.where[f.v] == s.end.Rank() {
			mine = append(mine, f.v)
		}
	}
	return mine
}

// want is a vertex to be shared out: its work, and how many of each worker's edges
// lead to it.
type want struct {
	weight int64
	need   []uint32
}

// slack is how much over its share of all work a worker may have for being the one that
// needs a vertex most: rows inside a server are cheap.
const slack = 0.01

// shareOut gives each vertex to the worker that needs it most, unless that one then
// had over its share of all work; then to the one with least. load is brought up to
// date; workers of load -1 get nothing.
func shareOut(vertices []want, load []int64) []int {
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
