package sample

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"starling/graph"
	"starling/rng"
)

// SAINTWalkDraws is GraphSAINT's random-walk sampler: m walks start at vertices drawn uniformly and follow random
// in-edges; a batch's vertices are all they visit. With Q_v the probability that a walk visits v, and q_uv that
// it visits u and v, walks being independent,
//
//	p_v  = 1 - (1-Q_v)^m
//	p_uv = 1 - (1-Q_u)^m - (1-Q_v)^m + (1-Q_u-Q_v+q_uv)^m
//
// A walk's expected visits N_v and expected steps T_uv between u and v are exact, by propagating its
// distribution. What they count too often or not at all is counted over walks before training:
//
//	Q_v  = N_v  - E[visits of v after the first]
//	q_uv = T_uv + E[1 if a walk visits both, less its steps between them]
//
// Rejected: the paper's counts of whole batches (§3.2), which err by 14 to 23% where a vertex is drawn 50 times.
type SAINTWalkDraws struct {
	Walks, Length int
	Visited       []float64 // Q
	Steps         []float64 // how often a walk is expected to go on from a vertex
	Counted       float64   // walks
}

// saintWalks draws from a graph that is all here.
type saintWalks struct {
	SAINTWalkDraws
	g      *graph.CSR
	sorted bool
	visits []float64 // N
	again  []uint32  // visits after the first, of all walks counted
	apart  []int32   // per edge, how many walks visit both ends, less their steps between them
}

// coverage is how often a vertex is visited, on average, by the walks that are counted.
const coverage = 100

// NewSAINTWalks starts size walks of length steps per batch.
func NewSAINTWalks(g *graph.CSR, seeds []uint32, size, length int, seed uint64) (*SAINT, error) {
	s, d := uncounted(g, seeds, size, length, seed)
	d.propagate()
	batches, key := CountingBatches(s.batches, seed)
	d.count(key, batches)
	return s, nil
}

// UncountedSAINTWalks takes the memory of NewSAINTWalks and draws the same batches, but
// their weights are wrong: the counting, which takes a while, is left out.
func UncountedSAINTWalks(g *graph.CSR, seeds []uint32, size, length int, seed uint64) *SAINT {
	s, d := uncounted(g, seeds, size, length, seed)
	for v := range d.Visited {
		d.Visited[v], d.Steps[v] = 1/float64(g.Nodes()), 1/float64(g.Nodes())
	}
	return s
}

func uncounted(g *graph.CSR, seeds []uint32, size, length int, seed uint64) (*SAINT, *saintWalks) {
	d := &saintWalks{g: g, sorted: rowsSorted(g), visits: make([]float64, g.Nodes()), again: make([]uint32, g.Nodes()),
		apart: make([]int32, g.Edges()), SAINTWalkDraws: SAINTWalkDraws{Walks: size, Length: length, Counted: 1,
			Visited: make([]float64, g.Nodes()), Steps: make([]float64, g.Nodes())}}
	return newSAINT(g, seeds, d, size*(length+1), seed), d
}

func rowsSorted(g *graph.CSR) bool {
	for v := range g.Nodes() {
		if !slices.IsSorted(g.Neighbors(uint32(v))) {
			return false
		}
	}
	return true
}

// Vertices calls take for every vertex that the walks of a batch visit.
func (s *saintWalks) Vertices(key rng.Key, take func(uint32)) {
	for i := range uint64(s.Walks) {
		s.walk(key, i, take)
	}
}

// CountingBatches is the number of batches whose walks are counted, given the batches of an epoch, and the key of them
// all.
func CountingBatches(batches int, seed uint64) (int, rng.Key) {
	return coverage * batches, rng.New(seed).Fold(useCount)
}

// WalkBegins is where walk i of a batch begins, among n vertices, and its key.
func WalkBegins(batch rng.Key, i uint64, n int) (rng.Key, uint32) {
	walk := batch.Fold(i)
	return walk, uint32(walk.IntN(0, n))
}

// WalkStep is which of a vertex's in-edges a walk takes in a step.
func WalkStep(walk rng.Key, step, edges int) int { return walk.IntN(uint64(step)+1, edges) }

func (s *saintWalks) walk(batch rng.Key, i uint64, take func(uint32)) {
	n := s.g.Nodes()
	if n == 0 {
		return
	}
	key, v := WalkBegins(batch, i, n)
	take(v)
	for step := range s.Length {
		next := s.g.Neighbors(v)
		if len(next) == 0 {
			break
		}
		v = next[WalkStep(key, step, len(next))]
		take(v)
	}
}

// propagate finds the expected visits and steps.
func (s *saintWalks) propagate() {
	e := NewExpectedVisits(s.g)
	for range s.Length {
		e.Arrive(e.Leave(s.g.Nodes()))
	}
	s.visits, s.Steps = e.Of(s.g.Nodes())
}

// ExpectedVisits are the expected visits of a walk to the vertices of a graph's rows, and how often it goes on from
// them, both times the number of all vertices.
type ExpectedVisits struct {
	g             *graph.CSR
	at            []float64 // after the last step
	visits, steps []float64
}

// NewExpectedVisits are the visits of a walk before its first step.
func NewExpectedVisits(g *graph.CSR) *ExpectedVisits {
	e := &ExpectedVisits{g: g, visits: make([]float64, g.Nodes()), steps: make([]float64, g.Nodes())}
	e.arrive(func(int) float64 { return 1 })
	return e
}

// Leave is a step: how many walks arrive at each of n vertices, the graph's rows and others, from these rows.
func (e *ExpectedVisits) Leave(n int) []Sum {
	arrive := make([]Sum, n)
	for v, p := range e.at {
		row := e.g.Neighbors(uint32(v))
		if len(row) > 0 {
			e.steps[v] += p
		}
		for _, u := range row {
			arrive[u].Add(p / float64(len(row)))
		}
	}
	return arrive
}

// Arrive takes how many walks arrive, from all vertices.
func (e *ExpectedVisits) Arrive(at []Sum) { e.arrive(func(v int) float64 { return at[v].Float64() }) }

func (e *ExpectedVisits) arrive(at func(v int) float64) {
	e.at = make([]float64, e.g.Nodes())
	for v := range e.at {
		e.at[v] = at(v)
		e.visits[v] += e.at[v]
	}
}

// Of are the expected visits and steps of a walk that begins at one of n vertices.
func (e *ExpectedVisits) Of(n int) (visits, steps []float64) {
	for v := range e.visits {
		e.visits[v] /= float64(n)
		e.steps[v] /= float64(n)
	}
	return e.visits, e.steps
}

// count draws the walks of batches on all cores and counts; sums do not depend on the order.
func (s *saintWalks) count(key rng.Key, batches int) {
	s.Counted = float64(batches * s.Walks)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), batches) {
		wg.Go(func() {
			var visited []uint32
			for i := next.Add(1) - 1; i < int64(batches); i = next.Add(1) - 1 {
				batch := key.Fold(uint64(i))
				for w := range uint64(s.Walks) {
					visited = visited[:0]
					s.walk(batch, w, func(v uint32) { visited = append(visited, v) })
					CountWalk(visited, s.addAgain, s.addApart)
				}
			}
		})
	}
	wg.Wait()
	for v, n := range s.visits {
		s.Visited[v] = WalkVisits(n, s.again[v], s.Counted, s.Length)
	}
}

func (s *saintWalks) addAgain(v uint32) { atomic.AddUint32(&s.again[v], 1) }

// CountWalk counts what does not follow from a walk's expected visits and steps: each pair once, at the first visits of
// both. again is called for a visit after the first, apart with what a walk counts at the edges from u to v.
func CountWalk(visited []uint32, again func(v uint32), apart func(u, v uint32, n int32)) {
	for i, v := range visited {
		if slices.Contains(visited[:i], v) {
			again(v)
			continue
		}
		for j, u := range visited[:i] {
			if !slices.Contains(visited[:j], u) {
				countPair(visited, u, v, apart)
			}
		}
	}
}

// countPair counts a walk that visits u and v.
func countPair(visited []uint32, u, v uint32, apart func(u, v uint32, n int32)) {
	steps := int32(0)
	for i := 1; i < len(visited); i++ {
		a, b := visited[i-1], visited[i]
		if a == u && b == v || a == v && b == u {
			steps++
		}
	}
	if steps == 1 {
		return
	}
	apart(u, v, 1-steps)
	apart(v, u, 1-steps)
}

// addApart counts at the edges from u to v.
func (s *saintWalks) addApart(u, v uint32, n int32) {
	first, times := edgesBetween(s.g, s.sorted, u, v)
	for e := first; times > 0; e++ {
		if s.g.Indices[e] == u {
			atomic.AddInt32(&s.apart[e], n)
			times--
		}
	}
}

// edgesBetween is the first edge from u to v, and how many there are. They follow each other where rows are sorted.
func edgesBetween(g *graph.CSR, sorted bool, u, v uint32) (first int64, times int) {
	row := g.Neighbors(v)
	at := 0
	if sorted {
		at, _ = slices.BinarySearch(row, u)
	} else if at = slices.Index(row, u); at < 0 {
		return 0, 0
	}
	for _, w := range row[at:] {
		if w == u {
			times++
		} else if sorted {
			break
		}
	}
	return g.Indptr[v] + int64(at), times
}

// WalkVisits is Q, from the expected visits and the counted ones after the first. A walk visits a vertex at most once
// per step, and at its start.
func WalkVisits(visits float64, again uint32, counted float64, length int) float64 {
	return max(visits-float64(again)/counted, visits/float64(length+1))
}

// Vertex is the probability that v is visited.
func (s *SAINTWalkDraws) Vertex(v uint32) float64 { return 1 - never(s.Visited[v], s.Walks) }

// Between are the edges between two vertices, from u to v and back, how many in-edges they have, and what was counted
// at an edge from u to v.
type Between struct {
	There, Back int
	DU, DV      int
	Apart       int32
}

// Both is the probability that u and v both are.
func (s *SAINTWalkDraws) Both(u, v uint32, e Between) float64 {
	qu, qv := s.Visited[u], s.Visited[v]
	between := s.Steps[v] * float64(e.There) / float64(max(1, e.DV))
	between += s.Steps[u] * float64(e.Back) / float64(max(1, e.DU))
	q := max(between+float64(e.Apart)/s.Counted, between/float64(max(1, s.Length)))
	return both(qu, qv, min(q, qu, qv), s.Walks)
}

// Edge is the probability that both ends of an edge are visited.
func (s *saintWalks) Edge(u, v uint32, edge int64) float64 {
	_, there := edgesBetween(s.g, s.sorted, u, v)
	_, back := edgesBetween(s.g, s.sorted, v, u)
	return s.Both(u, v, Between{there, back, s.g.Degree(u), s.g.Degree(v), s.apart[edge]})
}
