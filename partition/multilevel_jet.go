package partition

import (
	"math"
	"sync/atomic"
)

// Refinement of large graphs: all vertices look at once, good moves are picked so
// that they do not spoil one another, and all are made at once.
//
// M. Gilbert, K. Madduri, E. Boman, S. Rajamanickam: Jet: multilevel graph
// partitioning on graphics processing units, 2023. An iteration is
//
//	look       every vertex whose surroundings changed finds its best other part
//	candidates those whose loss is small next to what holds them
//	filter     each candidate counts again as if the better candidates had moved,
//	           and stays a candidate if it still does not lose
//	move       all of them; those that moved rest for one iteration
//
// and when a part is overloaded, an iteration of balancing takes its place. The
// best balanced partition seen is what remains. Every step is a function of the
// state before it, so threads change nothing.
type mlJet struct {
	*mlState
	r     *mlRun
	best  []uint16 // by vertex: the other part with most weight
	gain  []int32  // by vertex: what the cut loses if it went there
	in    []uint32 // by vertex: weight of edges inside its part
	dirty []uint32 // by vertex: 1 if it must look again
	rest  []uint8  // by vertex: the iteration (modulo 256) it moved in
	key   []int32  // by vertex: gain of a candidate, or mlNoGain
	cut2  int64    // twice the cut
	hold  float64  // share of its own weight a vertex may lose
}

const (
	mlNoGain = math.MinInt32
	mlGrain  = 2048
)

func (r *mlRun) newJet(s *mlState, hold float64) *mlJet {
	n := s.g.n
	j := &mlJet{mlState: s, r: r, hold: hold,
		best: mlMake[uint16](r.mem, n), gain: mlMake[int32](r.mem, n), in: mlMake[uint32](r.mem, n),
		dirty: mlMake[uint32](r.mem, n), rest: mlMake[uint8](r.mem, n), key: mlMake[int32](r.mem, n)}
	for v := range j.dirty {
		j.dirty[v] = 1
	}
	if s.g.w == nil {
		j.cut2 = s.g.off[n]
	} else {
		for _, w := range s.g.w {
			j.cut2 += int64(w)
		}
	}
	return j
}

func (j *mlJet) free() {
	mlFree(j.r.mem, j.best)
	mlFree(j.r.mem, j.gain)
	mlFree(j.r.mem, j.in)
	mlFree(j.r.mem, j.dirty)
	mlFree(j.r.mem, j.rest)
	mlFree(j.r.mem, j.key)
}

// refine iterates until patience balanced partitions in a row have brought
// next to nothing.
func (j *mlJet) refine(most, patience int) {
	keep := mlMake[uint16](j.r.mem, j.g.n)
	copy(keep, j.part)
	bestExcess, bestCut := math.Inf(1), int64(math.MaxInt64)
	for i, waited := 1, 0; ; i++ {
		j.look()
		excess := j.excess()
		worth := float64(j.cut2) < 0.999*float64(bestCut) || excess < bestExcess-1e-12
		if mlBetter(excess, j.cut2, bestExcess, bestCut) {
			bestExcess, bestCut = excess, j.cut2
			copy(keep, j.part)
		}
		if worth {
			waited = 0
		} else if excess == 0 {
			waited++
		}
		if i > most || waited >= patience || j.r.ctx.Err() != nil {
			break
		}
		moved := 0
		if excess > 0 {
			moved = j.balance(uint8(i))
		} else {
			moved = j.step(uint8(i))
		}
		if moved == 0 {
			break
		}
	}
	copy(j.part, keep)
	mlFree(j.r.mem, keep)
	j.weigh()
}

// look lets every dirty vertex find its best other part.
func (j *mlJet) look() {
	n := j.g.n
	delta := make([]int64, mlChunks(n, mlGrain))
	j.r.each(n, mlGrain, func(s *mlScratch, chunk, lo, hi int) {
		var sum int64
		for v := lo; v < hi; v++ {
			if j.dirty[v] != 0 {
				j.dirty[v] = 0
				old := int64(j.in[v])
				j.lookAt(s, uint32(v))
				sum += old - int64(j.in[v])
			}
		}
		delta[chunk] = sum
	})
	for _, d := range delta {
		j.cut2 += d
	}
}

func (j *mlJet) lookAt(s *mlScratch, v uint32) {
	own := j.part[v]
	s.connect(j.mlState, v)
	best, most := own, int64(0)
	for _, p := range s.hit {
		if w := s.conn[p]; p != own && (w > most || w == most && p < best) {
			best, most = p, w
		}
	}
	j.best[v] = best
	j.in[v] = uint32(s.conn[own])
	j.gain[v] = int32(max(min(most-s.conn[own], math.MaxInt32), mlNoGain+1))
	s.clear()
}

// connect sums v's edges by part.
func (w *mlScratch) connect(s *mlState, v uint32) {
	if len(w.conn) < s.k {
		w.conn = make([]int64, s.k)
	}
	lo, hi := s.g.off[v], s.g.off[v+1]
	part, conn, hit := s.part, w.conn, w.hit
	if s.g.w == nil {
		for _, u := range s.g.adj[lo:hi] {
			p := part[u]
			if conn[p] == 0 {
				hit = append(hit, p)
			}
			conn[p]++
		}
	} else {
		weight := s.g.w[lo:hi]
		for i, u := range s.g.adj[lo:hi] {
			p := part[u]
			if conn[p] == 0 {
				hit = append(hit, p)
			}
			conn[p] += int64(weight[i])
		}
	}
	w.hit = hit
}

func (w *mlScratch) clear() {
	for _, p := range w.hit {
		w.conn[p] = 0
	}
	w.hit = w.hit[:0]
}

// step makes one iteration of moves for the cut and returns their number.
func (j *mlJet) step(iteration uint8) int {
	n := j.g.n
	j.r.each(n, mlGrain, func(_ *mlScratch, _, lo, hi int) {
		for v := lo; v < hi; v++ {
			j.key[v] = mlNoGain
			if j.best[v] == j.part[v] || j.rest[v] == iteration-1 && iteration > 1 {
				continue
			}
			gain := j.gain[v]
			if gain >= 0 || float64(-gain) < j.hold*float64(j.in[v]) {
				j.key[v] = gain
			}
		}
	})
	return j.moveAll(iteration, func(v uint32) (uint16, bool) {
		if j.key[v] == mlNoGain || j.afterOthers(v) < 0 {
			return 0, false
		}
		return j.best[v], true
	})
}

// afterOthers is v's gain once all better candidates have moved.
func (j *mlJet) afterOthers(v uint32) (gain int64) {
	own, to, key := j.part[v], j.best[v], j.key[v]
	lo, hi := j.g.off[v], j.g.off[v+1]
	for i, u := range j.g.adj[lo:hi] {
		if u == v {
			continue
		}
		p := j.part[u]
		if k := j.key[u]; k > key || k == key && k != mlNoGain && u < v {
			p = j.best[u]
		}
		if p != to && p != own {
			continue
		}
		w := int64(1)
		if j.g.w != nil {
			w = int64(j.g.w[lo+int64(i)])
		}
		if p == to {
			gain += w
		} else {
			gain -= w
		}
	}
	return gain
}

// moveAll asks every vertex where it goes, from the same state for all, then
// moves them.
func (j *mlJet) moveAll(iteration uint8, where func(v uint32) (uint16, bool)) int {
	n := j.g.n
	lists := make([][]mlMove, mlChunks(n, mlGrain))
	j.r.each(n, mlGrain, func(_ *mlScratch, chunk, lo, hi int) {
		var list []mlMove
		for v := uint32(lo); v < uint32(hi); v++ {
			if to, ok := where(v); ok {
				list = append(list, mlMove{v, to})
			}
		}
		lists[chunk] = list
	})
	moved := j.shiftAll(lists, iteration)
	if j.g.con > 1 { // where one had no room, another may have left since
		moved += j.shiftAll(lists, iteration)
	}
	j.r.each(len(lists), 1, func(_ *mlScratch, chunk, _, _ int) {
		for _, m := range lists[chunk] {
			j.touch(m.v)
		}
	})
	return moved
}

// shiftAll makes the moves. With one limit all of them: what is too much is moved
// out again in the next iteration. With several that may never succeed, and the whole
// search would be for nothing, so only those are made that fit.
func (j *mlJet) shiftAll(lists [][]mlMove, iteration uint8) (moved int) {
	for _, list := range lists {
		for _, m := range list {
			if j.part[m.v] == m.part || j.g.con > 1 && !j.fits(m.v, m.part) {
				continue
			}
			j.shift(m.v, m.part)
			j.rest[m.v] = iteration
			moved++
		}
	}
	return moved
}

// touch marks v and its neighbours to look again.
func (j *mlJet) touch(v uint32) {
	mark := func(u uint32) {
		if atomic.LoadUint32(&j.dirty[u]) == 0 {
			atomic.StoreUint32(&j.dirty[u], 1)
		}
	}
	mark(v)
	for _, u := range j.g.adj[j.g.off[v]:j.g.off[v+1]] {
		mark(u)
	}
}
