package innet

import "math/rand/v2"

// StrawmanCounts is what the paper's strawman (§2.3.2) moves for a graph.
type StrawmanCounts struct {
	Rows int // that leave hosts
	Sums int // that leave the switch, whole or partial
	Raw  int // rows that the switch passes on, one per host that needs it
	Most int // aggregators in use at once
}

// StrawmanSwitch is a switch without blocks and order: a destination takes an aggregator with its first row and
// releases it with its last, and a row that finds none goes to the destination's host as it is, once per host. A sum
// that misses such rows leaves when all others are there.
type StrawmanSwitch struct {
	graph     *Graph
	ptr, into []uint32 // destinations of each source
	missing   []int32
	held      []bool
	used      int
	limit     int
	raw       []int // the last row that each host received unadded
	Count     StrawmanCounts
}

// NewStrawmanSwitch is one with a number of aggregators.
func NewStrawmanSwitch(g *Graph, limit int) *StrawmanSwitch {
	s := &StrawmanSwitch{graph: g, limit: limit, missing: make([]int32, len(g.Host)), held: make([]bool, len(g.Host)),
		raw: make([]int, 1+int(maxHost(g.Host)))}
	s.ptr, s.into = group(len(g.Host), g.Src, g.Dst)
	for _, v := range g.Dst {
		s.missing[v]++
	}
	return s
}

// Row takes the row of a vertex. It emits the hosts that a sum or the row leaves for, and returns the aggregators that
// the row was added to.
func (s *StrawmanSwitch) Row(u uint32, emit func(host uint16)) (added int) {
	s.Count.Rows++
	for _, v := range s.into[s.ptr[u]:s.ptr[u+1]] {
		host := s.graph.Host[v]
		switch {
		case s.held[v]:
			added++
		case s.used < s.limit:
			s.held[v] = true
			s.used++
			added++
			s.Count.Most = max(s.Count.Most, s.used)
		case s.raw[host] != s.Count.Rows:
			s.raw[host] = s.Count.Rows
			s.Count.Raw++
			emit(host)
		}
		if s.missing[v]--; s.missing[v] == 0 && s.held[v] {
			s.held[v] = false
			s.used--
			s.Count.Sums++
			emit(host)
		}
	}
	return added
}

// RandomSources are the vertices that send, in the random order of the strawman.
func RandomSources(g *Graph) []uint32 {
	order := distinct(g.Src)
	rand.New(rand.NewPCG(1, uint64(len(order)))).Shuffle(len(order), func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	return order
}

// Strawman counts what a strawman switch does with rows in a random order.
func Strawman(g *Graph, limit int) StrawmanCounts {
	s := NewStrawmanSwitch(g, limit)
	for _, u := range RandomSources(g) {
		s.Row(u, func(uint16) {})
	}
	return s.Count
}

func maxHost(hosts []uint16) (most uint16) {
	for _, h := range hosts {
		most = max(most, h)
	}
	return most
}
