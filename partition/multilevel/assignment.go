package multilevel

import "math"

// assignment is a partition of the graph of one level, and what its parts weigh.
type assignment struct {
	g     *levelGraph
	k     int
	part  []uint16
	load  []int64   // by part and constraint
	limit []int64   // by part and constraint
	unit  []float64 // by constraint: one over the mean load of a part
}

func newAssignment(g *levelGraph, k int, part []uint16, limit []int64) *assignment {
	a := &assignment{g: g, k: k, part: part, limit: limit, load: make([]int64, k*g.con), unit: make([]float64, g.con)}
	a.recount()
	for c := range a.unit {
		var sum int64
		for p := range k {
			sum += a.load[p*g.con+c]
		}
		a.unit[c] = float64(k) / float64(max(sum, 1))
	}
	return a
}

// recount computes the loads from the parts.
func (a *assignment) recount() {
	clear(a.load)
	if a.g.vw == nil {
		for _, p := range a.part {
			a.load[p]++
		}
		return
	}
	for v, p := range a.part {
		for c := range a.g.con {
			a.load[int(p)*a.g.con+c] += a.g.vw[v*a.g.con+c]
		}
	}
}

// fits reports whether v may join part p within every limit it counts for. A vertex that
// weighs nothing fits even into a part that exceeds a limit.
func (a *assignment) fits(v uint32, p uint16) bool {
	n := a.g.con
	if a.g.vw == nil {
		return a.load[p] < a.limit[p]
	}
	for c := range n {
		if w := a.g.vw[int(v)*n+c]; w > 0 && a.load[int(p)*n+c]+w > a.limit[int(p)*n+c] {
			return false
		}
	}
	return true
}

// overload is by how much part p would exceed its limits if v's loads were added sign
// times, in units of mean loads.
func (a *assignment) overload(p uint16, v uint32, sign int64) (sum float64) {
	n := a.g.con
	for c := range n {
		if overload := a.load[int(p)*n+c] + sign*a.g.load(v, c) - a.limit[int(p)*n+c]; overload > 0 {
			sum += float64(overload) * a.unit[c]
		}
	}
	return sum
}

// relief is how much less the limits are exceeded after v moves from its part to p.
func (a *assignment) relief(v uint32, p uint16) float64 {
	from := a.part[v]
	return a.overload(from, v, 0) + a.overload(p, v, 0) - a.overload(from, v, -1) - a.overload(p, v, 1)
}

// overloaded reports whether part p exceeds a limit.
func (a *assignment) overloaded(p int) bool {
	for c := range a.g.con {
		if a.load[p*a.g.con+c] > a.limit[p*a.g.con+c] {
			return true
		}
	}
	return false
}

// excess is by how much all parts together exceed their limits, in units of mean loads.
func (a *assignment) excess() (sum float64) {
	for p := range a.k {
		for c := range a.g.con {
			if overload := a.load[p*a.g.con+c] - a.limit[p*a.g.con+c]; overload > 0 {
				sum += float64(overload) * a.unit[c]
			}
		}
	}
	return sum
}

// reassign moves v to part p.
func (a *assignment) reassign(v uint32, p uint16) {
	n, from := a.g.con, int(a.part[v])
	a.part[v] = p
	if a.g.vw == nil {
		a.load[from]--
		a.load[p]++
		return
	}
	for c := range n {
		w := a.g.vw[int(v)*n+c]
		a.load[from*n+c] -= w
		a.load[int(p)*n+c] += w
	}
}

// remove takes v out of its part's load, to be inserted again.
func (a *assignment) remove(v uint32) { a.add(a.part[v], v, -1) }

// insert puts a removed vertex into part p.
func (a *assignment) insert(v uint32, p uint16) {
	a.part[v] = p
	a.add(p, v, 1)
}

func (a *assignment) add(p uint16, v uint32, sign int64) {
	for c := range a.g.con {
		a.load[int(p)*a.g.con+c] += sign * a.g.load(v, c)
	}
}

// bestPlacement is the part where v has most weight among those it fits in, the
// least loaded of equals; if it fits in none, the one it overloads least.
func (a *assignment) bestPlacement(v uint32, conn []int64) uint16 {
	best, bestOver, bestConn, bestFill := 0, 0.0, int64(0), 0.0
	for p := range a.k {
		over, fill := a.overload(uint16(p), v, 1), a.fullness(p)
		closer := conn[p] > bestConn || conn[p] == bestConn && fill < bestFill
		if p == 0 || over < bestOver || over == bestOver && closer {
			best, bestOver, bestConn, bestFill = p, over, conn[p], fill
		}
	}
	return uint16(best)
}

// leastOverloaded is the part other than v's own that v overloads least, the emptiest of
// equals.
func (a *assignment) leastOverloaded(v uint32) uint16 {
	best, bestOver, bestFill := a.part[v], 0.0, 0.0
	for p := range a.k {
		if q := uint16(p); q != a.part[v] {
			over, fill := a.overload(q, v, 1)-a.overload(q, v, 0), a.fullness(p)
			if best == a.part[v] || over < bestOver || over == bestOver && fill < bestFill {
				best, bestOver, bestFill = q, over, fill
			}
		}
	}
	return best
}

// fullness is the largest load of part p, in units of mean loads.
func (a *assignment) fullness(p int) (most float64) {
	for c := range a.g.con {
		most = max(most, float64(a.load[p*a.g.con+c])*a.unit[c])
	}
	return most
}

// hasSpace reports whether part p is below its limit in everything v weighs. Unlike fits, it
// lets v exceed the limit.
func (a *assignment) hasSpace(v uint32, p uint16) bool {
	for c := range a.g.con {
		if at := int(p)*a.g.con + c; a.g.load(v, c) > 0 && a.load[at] >= a.limit[at] {
			return false
		}
	}
	return true
}

// swapHelps reports whether the limits are exceeded less after v and u change places.
func (a *assignment) swapHelps(v, u uint32) bool {
	before := a.overload(a.part[v], v, 0) + a.overload(a.part[u], u, 0)
	after := 0.0
	for c := range a.g.con {
		d := a.g.load(v, c) - a.g.load(u, c)
		from, to := int(a.part[v])*a.g.con+c, int(a.part[u])*a.g.con+c
		after += float64(max(a.load[from]-d-a.limit[from], 0)+max(a.load[to]+d-a.limit[to], 0)) * a.unit[c]
	}
	return after < before-1e-12
}

// better compares two partitions: by how far they exceed the limits, then by their cuts.
func better(excess float64, cut int64, thanExcess float64, thanCut int64) bool {
	if math.Abs(excess-thanExcess) > 1e-9 {
		return excess < thanExcess
	}
	return cut < thanCut
}

// repeatLimits gives every part the same limits.
func repeatLimits(limit []int64, k int) []int64 {
	all := make([]int64, 0, k*len(limit))
	for range k {
		all = append(all, limit...)
	}
	return all
}
