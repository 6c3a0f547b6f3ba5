package multilevel

import (
	"math"
	"sync/atomic"
)

// jet refines large graphs: all vertices are evaluated at once, a set of moves is chosen
// that do not cancel each other, and all of them are made at once.
//
// M. Gilbert, K. Madduri, E. Boman, S. Rajamanickam: Jet: multilevel graph
// partitioning on graphics processing units, 2023. An iteration is
//
//	evaluate   every vertex whose neighbourhood changed finds its best other part
//	filter     candidates are those whose loss is below a share of their internal weight
//	afterburn  each candidate is evaluated again as if all better ones had moved,
//	           and stays one if it does not lose
//	move       all of them; a vertex that moved is locked for one iteration
//
// and while a part is overloaded, an iteration of rebalancing takes its place. The best
// balanced partition seen is the result. Every step is a function of the state before it,
// so the number of threads changes nothing.
type jet struct {
	a       *assignment
	r       *run
	best    []uint16 // by vertex: the other part with most weight
	gain    []int32  // by vertex: by how much the cut falls if it moves there
	in      []uint32 // by vertex: weight of edges inside its part
	dirty   []uint32 // by vertex: 1 if it must be evaluated
	movedAt []uint8  // by vertex: the iteration (modulo 256) it moved in
	key     []int32  // by vertex: gain of a candidate, or noGain
	cut2    int64    // twice the cut
	ratio   float64  // share of its internal weight that a candidate may lose
}

const (
	noGain = math.MinInt32
	grain  = 2048 // vertices per range of a parallel loop
)

func (r *run) newJet(a *assignment, ratio float64) *jet {
	n := a.g.n
	j := &jet{a: a, r: r, ratio: ratio,
		best: makeZeroed[uint16](r.mem, n), gain: makeZeroed[int32](r.mem, n), in: makeZeroed[uint32](r.mem, n),
		dirty: makeZeroed[uint32](r.mem, n), movedAt: makeZeroed[uint8](r.mem, n), key: makeZeroed[int32](r.mem, n)}
	for v := range j.dirty {
		j.dirty[v] = 1
	}
	if a.g.w == nil {
		j.cut2 = a.g.edges()
	} else {
		for _, w := range a.g.w {
			j.cut2 += int64(w)
		}
	}
	return j
}

func (j *jet) free() {
	free(j.r.mem, j.best)
	free(j.r.mem, j.gain)
	free(j.r.mem, j.in)
	free(j.r.mem, j.dirty)
	free(j.r.mem, j.movedAt)
	free(j.r.mem, j.key)
}

// refine iterates at most so often, and until patience balanced partitions in a row have
// improved by less than a thousandth.
func (j *jet) refine(most, patience int) {
	keep := makeZeroed[uint16](j.r.mem, j.a.g.n)
	copy(keep, j.a.part)
	bestExcess, bestCut := math.Inf(1), int64(math.MaxInt64)
	for i, waited := 1, 0; ; i++ {
		j.evaluate()
		excess := j.a.excess()
		improved := float64(j.cut2) < 0.999*float64(bestCut) || excess < bestExcess-1e-12
		if better(excess, j.cut2, bestExcess, bestCut) {
			bestExcess, bestCut = excess, j.cut2
			copy(keep, j.a.part)
		}
		if improved {
			waited = 0
		} else if excess == 0 {
			waited++
		}
		if i > most || waited >= patience || j.r.ctx.Err() != nil || j.iterate(uint8(i), excess) == 0 {
			break
		}
	}
	copy(j.a.part, keep)
	free(j.r.mem, keep)
	j.a.recount()
}

// iterate makes one iteration and returns the number of moves.
func (j *jet) iterate(iteration uint8, excess float64) (moved int) {
	if excess > 0 {
		return j.rebalance(iteration)
	}
	return j.step(iteration)
}

// evaluate finds the best other part of every dirty vertex.
func (j *jet) evaluate() {
	n := j.a.g.n
	delta := make([]int64, chunkCount(n, grain))
	j.r.each(n, grain, func(s *scratch, chunk, lo, hi int) {
		var sum int64
		for v := lo; v < hi; v++ {
			if j.dirty[v] != 0 {
				j.dirty[v] = 0
				old := int64(j.in[v])
				j.evaluateVertex(s, uint32(v))
				sum += old - int64(j.in[v])
			}
		}
		delta[chunk] = sum
	})
	for _, d := range delta {
		j.cut2 += d
	}
}

func (j *jet) evaluateVertex(s *scratch, v uint32) {
	own := j.a.part[v]
	s.connect(j.a, v)
	best, most := own, int64(0)
	for _, p := range s.hit {
		if w := s.conn[p]; p != own && (w > most || w == most && p < best) {
			best, most = p, w
		}
	}
	j.best[v] = best
	j.in[v] = uint32(s.conn[own])
	j.gain[v] = int32(max(min(most-s.conn[own], math.MaxInt32), noGain+1))
	s.clear()
}

// step makes one iteration of moves for the cut and returns their number.
func (j *jet) step(iteration uint8) int {
	n := j.a.g.n
	j.r.each(n, grain, func(_ *scratch, _, lo, hi int) {
		for v := lo; v < hi; v++ {
			j.key[v] = noGain
			if j.best[v] == j.a.part[v] || j.movedAt[v] == iteration-1 && iteration > 1 {
				continue
			}
			gain := j.gain[v]
			if gain >= 0 || float64(-gain) < j.ratio*float64(j.in[v]) {
				j.key[v] = gain
			}
		}
	})
	return j.moveAll(iteration, func(v uint32) (uint16, bool) {
		if j.key[v] == noGain || j.afterburn(v) < 0 {
			return 0, false
		}
		return j.best[v], true
	})
}

// afterburn is v's gain once all better candidates have moved.
func (j *jet) afterburn(v uint32) (gain int64) {
	own, to, key := j.a.part[v], j.best[v], j.key[v]
	lo, hi := j.a.g.off[v], j.a.g.off[v+1]
	for i, u := range j.a.g.adj[lo:hi] {
		if u == v {
			continue
		}
		p := j.a.part[u]
		if k := j.key[u]; k > key || k == key && k != noGain && u < v {
			p = j.best[u]
		}
		if p != to && p != own {
			continue
		}
		w := int64(1)
		if j.a.g.w != nil {
			w = int64(j.a.g.w[lo+int64(i)])
		}
		if p == to {
			gain += w
		} else {
			gain -= w
		}
	}
	return gain
}

// moveAll asks every vertex where it moves, from the same state for all, then moves them.
func (j *jet) moveAll(iteration uint8, where func(v uint32) (uint16, bool)) int {
	n := j.a.g.n
	lists := make([][]move, chunkCount(n, grain))
	j.r.each(n, grain, func(_ *scratch, chunk, lo, hi int) {
		var list []move
		for v := uint32(lo); v < uint32(hi); v++ {
			if to, ok := where(v); ok {
				list = append(list, move{v, to})
			}
		}
		lists[chunk] = list
	})
	moved := j.apply(lists, iteration)
	if j.a.g.con > 1 { // what did not fit may fit now that others have left
		moved += j.apply(lists, iteration)
	}
	j.r.each(len(lists), 1, func(_ *scratch, chunk, _, _ int) {
		for _, m := range lists[chunk] {
			j.markDirty(m.v)
		}
	})
	return moved
}

// apply makes the moves. With one limit it makes all of them: the next iteration moves the
// excess out again. With several limits that may never succeed and the whole search would
// be lost, so it makes only those that fit.
func (j *jet) apply(lists [][]move, iteration uint8) (moved int) {
	for _, list := range lists {
		for _, m := range list {
			if j.a.part[m.v] == m.part || j.a.g.con > 1 && !j.a.fits(m.v, m.part) {
				continue
			}
			j.a.reassign(m.v, m.part)
			j.movedAt[m.v] = iteration
			moved++
		}
	}
	return moved
}

// markDirty marks v and its neighbours for evaluation.
func (j *jet) markDirty(v uint32) {
	mark := func(u uint32) {
		if atomic.LoadUint32(&j.dirty[u]) == 0 {
			atomic.StoreUint32(&j.dirty[u], 1)
		}
	}
	mark(v)
	for _, u := range j.a.g.adj[j.a.g.off[v]:j.a.g.off[v+1]] {
		mark(u)
	}
}
