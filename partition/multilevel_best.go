package partition

import "sync"

// mlChains is how often a small graph is cut from the start. Its stages are too
// short to be shared between cores, so cores are put to use by whole runs beside one
// another; the best of two costs no time then, and gains a few percent.
const mlChains = 2

// best is the best of several independent runs, each on one core.
func (m *mlPartition) best(g *mlGraph) []uint16 {
	parts := make([][]uint16, mlChains)
	excess, cost := make([]float64, mlChains), make([]int64, mlChains)
	var wg sync.WaitGroup
	turn := make(chan struct{}, m.threads)
	for i := range mlChains {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			one := *m
			one.mlRun, one.nth = m.alone(uint64(i)), i+1
			defer one.mem.freeAll()
			s := newMLState(g, m.k, one.run(g), mlSpread(m.limit, m.k))
			parts[i] = append([]uint16(nil), s.part...)
			excess[i], cost[i] = s.excess(), s.cost(m.p.Objective)
		})
	}
	wg.Wait()
	best := 0
	for i := range parts {
		if mlBetter(excess[i], cost[i], excess[best], cost[best]) {
			best = i
		}
	}
	return parts[best]
}

// cost is what the objective counts.
func (s *mlState) cost(o Objective) int64 {
	if o != Volume {
		return s.cut()
	}
	var sum int64
	w := &mlScratch{}
	for v := range uint32(s.g.n) {
		w.connect(s, v)
		for _, p := range w.hit {
			if p != s.part[v] {
				sum++
			}
		}
		w.clear()
	}
	return sum
}
