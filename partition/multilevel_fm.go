package partition

// mlFM is refinement by single moves in order of gain, downhill as well, back to
// the best point reached.
//
// C. Fiduccia, R. Mattheyses: A linear-time heuristic for improving network
// partitions, 1982; here for any number of parts. It is sequential and holds a
// table of vertices times parts, so it is for coarse and small graphs.
type mlFM struct {
	*mlState
	conn   []int64  // by vertex and part: weight of edges into it
	best   []uint16 // by vertex: the other part with most weight
	heap   mlHeap
	locked []bool
	moves  []mlMove
	only   int // if not negative, vertices may only move to this part
}

type mlMove struct {
	v    uint32
	from uint16
}

func newMLFM(s *mlState) *mlFM {
	f := &mlFM{mlState: s, only: -1}
	f.conn, f.best = make([]int64, s.g.n*s.k), make([]uint16, s.g.n)
	f.locked = make([]bool, s.g.n)
	f.heap.reset(s.g.n)
	for v := range uint32(s.g.n) {
		row := f.row(v)
		for e := s.g.off[v]; e < s.g.off[v+1]; e++ {
			if u := s.g.adj[e]; u != v {
				row[s.part[u]] += int64(s.g.edgeWeight(e))
			}
		}
	}
	return f
}

func (f *mlFM) row(v uint32) []int64 { return f.conn[int(v)*f.k : (int(v)+1)*f.k] }

// gain is what the cut loses if v goes where it has most weight outside.
func (f *mlFM) gain(v uint32) (gain int64, boundary bool) {
	row := f.row(v)
	own := f.part[v]
	best, most := own, int64(0)
	for p, w := range row {
		if w > most && uint16(p) != own {
			best, most = uint16(p), w
		}
	}
	f.best[v] = best
	return most - row[own], most > 0
}

// target is the best part v may go to now: one where it fits, or one that
// leaves the limits less broken.
func (f *mlFM) target(v uint32) (to uint16, gain int64, ok bool) {
	own := f.part[v]
	row := f.row(v)
	if b := f.best[v]; b != own && f.fits(v, b) {
		return b, row[b] - row[own], true
	}
	crowded := f.overloaded(int(own))
	most := int64(-1)
	for p, w := range row {
		if q := uint16(p); q != own && w > most && (w > 0 && f.fits(v, q) || crowded && f.relief(v, q) > 0) {
			to, most, ok = q, w, true
		}
	}
	return to, most - row[own], ok
}

// refine makes passes while they help; it returns the cut gained.
func (f *mlFM) refine(passes, patience int) (gained int64) {
	for range passes {
		g, relieved := f.pass(patience)
		gained += g
		if g <= 0 && !relieved {
			break
		}
	}
	return gained
}

// pass moves every vertex at most once. A prefix of the moves is better than
// another if it breaks the limits less, or as little and cuts less.
func (f *mlFM) pass(patience int) (gained int64, relieved bool) {
	f.fill()
	var sum, bestSum int64
	excess := f.excess()
	first, bestExcess := excess, excess
	kept, waited := 0, 0
	for f.heap.len() > 0 && waited < patience {
		v := f.heap.pop()
		to, gain, ok := f.target(v)
		if !ok {
			continue
		}
		if f.heap.len() > 0 && gain < f.heap.top() {
			f.heap.set(v, gain)
			f.best[v] = to
			continue
		}
		excess -= f.relief(v, to)
		sum += gain
		f.moves = append(f.moves, mlMove{v, f.part[v]})
		f.move(v, to, true)
		waited++
		if excess < bestExcess-1e-9 || excess < bestExcess+1e-9 && sum > bestSum {
			bestExcess, bestSum, kept, waited = excess, sum, len(f.moves), 0
		}
	}
	for i := len(f.moves) - 1; i >= kept; i-- {
		f.move(f.moves[i].v, f.moves[i].from, false)
	}
	return bestSum, bestExcess < first-1e-9
}

// fill puts every vertex on the boundary, or in a part that must shrink, into the heap.
func (f *mlFM) fill() {
	f.heap.clear()
	f.moves = f.moves[:0]
	clear(f.locked)
	crowded := make([]bool, f.k)
	for p := range crowded {
		crowded[p] = f.overloaded(p)
	}
	for v := range uint32(f.g.n) {
		if gain, boundary := f.gain(v); boundary || crowded[f.part[v]] {
			f.heap.set(v, gain)
		}
	}
}

// move shifts v and tells its neighbours; forward, it is locked and they are
// put into the heap anew.
func (f *mlFM) move(v uint32, to uint16, forward bool) {
	from := f.part[v]
	f.shift(v, to)
	f.locked[v] = true
	for e := f.g.off[v]; e < f.g.off[v+1]; e++ {
		u := f.g.adj[e]
		if u == v {
			continue
		}
		w := int64(f.g.edgeWeight(e))
		row := f.row(u)
		row[from] -= w
		row[to] += w
		if !forward || f.locked[u] {
			continue
		}
		if gain, boundary := f.gain(u); boundary {
			f.heap.set(u, gain)
		} else {
			f.heap.remove(u)
		}
	}
}

// mlHeap is a binary heap of vertices, largest key first, with a place by vertex.
type mlHeap struct {
	v     []uint32
	key   []int64
	place []int32 // by vertex: its place plus one
}

func (h *mlHeap) reset(n int) { h.place = make([]int32, n) }
func (h *mlHeap) len() int    { return len(h.v) }
func (h *mlHeap) top() int64  { return h.key[0] }

func (h *mlHeap) clear() {
	for _, v := range h.v {
		h.place[v] = 0
	}
	h.v, h.key = h.v[:0], h.key[:0]
}

// set inserts v, or changes its key.
func (h *mlHeap) set(v uint32, key int64) {
	i := int(h.place[v]) - 1
	if i < 0 {
		i = len(h.v)
		h.v, h.key = append(h.v, v), append(h.key, key)
		h.up(i, v, key)
		return
	}
	if old := h.key[i]; key > old {
		h.up(i, v, key)
	} else if key < old {
		h.down(i, v, key)
	}
}

func (h *mlHeap) pop() uint32 {
	v := h.v[0]
	h.remove(v)
	return v
}

func (h *mlHeap) remove(v uint32) {
	i := int(h.place[v]) - 1
	if i < 0 {
		return
	}
	h.place[v] = 0
	last := len(h.v) - 1
	w, key := h.v[last], h.key[last]
	old := h.key[i]
	h.v, h.key = h.v[:last], h.key[:last]
	if i == last {
		return
	}
	if key > old {
		h.up(i, w, key)
	} else {
		h.down(i, w, key)
	}
}

func (h *mlHeap) up(i int, v uint32, key int64) {
	for i > 0 {
		p := (i - 1) / 2
		if h.key[p] >= key {
			break
		}
		h.put(i, h.v[p], h.key[p])
		i = p
	}
	h.put(i, v, key)
}

func (h *mlHeap) down(i int, v uint32, key int64) {
	for {
		c := 2*i + 1
		if c >= len(h.v) {
			break
		}
		if c+1 < len(h.v) && h.key[c+1] > h.key[c] {
			c++
		}
		if h.key[c] <= key {
			break
		}
		h.put(i, h.v[c], h.key[c])
		i = c
	}
	h.put(i, v, key)
}

func (h *mlHeap) put(i int, v uint32, key int64) {
	h.v[i], h.key[i], h.place[v] = v, key, int32(i+1)
}
