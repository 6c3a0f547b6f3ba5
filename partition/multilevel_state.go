package partition

// mlState is a partition of the graph of one level.
type mlState struct {
	g     *mlGraph
	k     int
	part  []uint16
	load  []int64   // by part and constraint
	limit []int64   // by part and constraint
	unit  []float64 // by constraint: one over the mean load of a part
}

func newMLState(g *mlGraph, k int, part []uint16, limit []int64) *mlState {
	s := &mlState{g: g, k: k, part: part, limit: limit, load: make([]int64, k*g.con), unit: make([]float64, g.con)}
	s.weigh()
	for c := range s.unit {
		var sum int64
		for p := range k {
			sum += s.load[p*g.con+c]
		}
		s.unit[c] = float64(k) / float64(max(sum, 1))
	}
	return s
}

// weigh counts the loads anew.
func (s *mlState) weigh() {
	clear(s.load)
	if s.g.vw == nil {
		for _, p := range s.part {
			s.load[p]++
		}
		return
	}
	for v, p := range s.part {
		for c := range s.g.con {
			s.load[int(p)*s.g.con+c] += s.g.vw[v*s.g.con+c]
		}
	}
}

// fits tells whether v may join part p without breaking a limit. A vertex that
// weighs nothing fits even where there is too much.
func (s *mlState) fits(v uint32, p uint16) bool {
	n := s.g.con
	if s.g.vw == nil {
		return s.load[p] < s.limit[p]
	}
	for c := range n {
		if w := s.g.vw[int(v)*n+c]; w > 0 && s.load[int(p)*n+c]+w > s.limit[int(p)*n+c] {
			return false
		}
	}
	return true
}

// over is by how much part p breaks its limits, in means, if v's loads were
// added sign times.
func (s *mlState) over(p uint16, v uint32, sign int64) (sum float64) {
	n := s.g.con
	for c := range n {
		if over := s.load[int(p)*n+c] + sign*s.g.load(v, c) - s.limit[int(p)*n+c]; over > 0 {
			sum += float64(over) * s.unit[c]
		}
	}
	return sum
}

// relief is how much less the limits are broken after v goes from its part to p.
func (s *mlState) relief(v uint32, p uint16) float64 {
	from := s.part[v]
	return s.over(from, v, 0) + s.over(p, v, 0) - s.over(from, v, -1) - s.over(p, v, 1)
}

// overloaded tells whether part p breaks a limit.
func (s *mlState) overloaded(p int) bool {
	for c := range s.g.con {
		if s.load[p*s.g.con+c] > s.limit[p*s.g.con+c] {
			return true
		}
	}
	return false
}

// excess is by how much all limits together are broken, in means.
func (s *mlState) excess() (sum float64) {
	for p := range s.k {
		for c := range s.g.con {
			if over := s.load[p*s.g.con+c] - s.limit[p*s.g.con+c]; over > 0 {
				sum += float64(over) * s.unit[c]
			}
		}
	}
	return sum
}

// shift moves v to part p.
func (s *mlState) shift(v uint32, p uint16) {
	n, from := s.g.con, int(s.part[v])
	s.part[v] = p
	if s.g.vw == nil {
		s.load[from]--
		s.load[p]++
		return
	}
	for c := range n {
		w := s.g.vw[int(v)*n+c]
		s.load[from*n+c] -= w
		s.load[int(p)*n+c] += w
	}
}

// remove takes v out of its part's load, to be inserted again.
func (s *mlState) remove(v uint32) { s.add(s.part[v], v, -1) }

// insert puts a removed vertex into part p.
func (s *mlState) insert(v uint32, p uint16) {
	s.part[v] = p
	s.add(p, v, 1)
}

func (s *mlState) add(p uint16, v uint32, sign int64) {
	for c := range s.g.con {
		s.load[int(p)*s.g.con+c] += sign * s.g.load(v, c)
	}
}

// roomiest is the part where v has most weight among those it fits in, the
// least loaded of equals; if it fits in none, the one it overloads least.
func (s *mlState) roomiest(v uint32, conn []int64) uint16 {
	best, bestOver, bestConn, bestFill := 0, 0.0, int64(0), 0.0
	for p := range s.k {
		over, fill := s.over(uint16(p), v, 1), s.fill(p)
		if p == 0 || over < bestOver || over == bestOver && (conn[p] > bestConn || conn[p] == bestConn && fill < bestFill) {
			best, bestOver, bestConn, bestFill = p, over, conn[p], fill
		}
	}
	return uint16(best)
}

// fill is the largest load of part p, in means.
func (s *mlState) fill(p int) (most float64) {
	for c := range s.g.con {
		most = max(most, float64(s.load[p*s.g.con+c])*s.unit[c])
	}
	return most
}
