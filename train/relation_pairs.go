package train

import (
	"cmp"
	"slices"

	"starling/graph"
	"starling/sample"
)

// relationPairs are the edges of one relation whose sources are this worker's.
type relationPairs struct {
	relation int
	name     string
	seed     uint64
	sets     [3]pairList
	total    [3]int // of all workers
	first    [3]int // of the pairs of all workers, in the order of workers

	// lists are what pairs of a set are ranked among, if that is given; k and pairs of this worker.
	lists [3]*rankedAmong

	linked            map[uint32][]uint32 // ids of what a source has edges to, ascending, by row
	ids               map[uint32]uint32   // of sources, by row
	negatives, ranked *sample.RelationNegatives
}

// pairList are pairs: row and id of the source, id of the destination.
type pairList struct{ row, u, v []uint32 }

// relationArc is an edge of a relation.
type relationArc struct{ row, u, v uint32 }

// findInGraph finds the pairs of a whole graph.
func (r *RelationLinks) findInGraph(g *graph.CSR) error {
	for _, p := range r.pairs {
		t := &r.schema.Types[r.schema.Relations[p.relation].Target]
		var arcs []relationArc
		for v := uint32(t.First); int64(v) < t.End(); v++ {
			lo, hi := g.Relation(v, p.relation)
			for _, u := range g.Indices[lo:hi] {
				arcs = append(arcs, relationArc{u, u, v})
			}
		}
		p.take(r, arcs)
		if r.opt.Lists != nil {
			p.list(r.opt.Lists, func(id uint32) (uint32, bool) { return id, true })
		}
		for set := range p.total {
			p.total[set] = len(p.sets[set].row)
			if l := p.lists[set]; l != nil {
				l.total = len(l.shared.row)
			}
		}
		p.draws(r, p.degrees(r))
	}
	return r.checkPairs()
}

// take divides edges, each once, into sets.
func (p *relationPairs) take(r *RelationLinks, arcs []relationArc) {
	slices.SortFunc(arcs, func(a, b relationArc) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.v, b.v))
	})
	p.linked, p.ids = map[uint32][]uint32{}, map[uint32]uint32{}
	for _, a := range slices.Compact(arcs) {
		list := &p.sets[r.sets.Of(p.relation, a.u, a.v)]
		list.row, list.u, list.v = append(list.row, a.row), append(list.u, a.u), append(list.v, a.v)
		p.linked[a.row], p.ids[a.row] = append(p.linked[a.row], a.v), a.u
	}
}

// rankedAmong are candidates that are given: k destinations for each pair, or with k = 0 pairs that all share.
type rankedAmong struct {
	k            int
	ends         []uint32 // ids
	shared       pairList
	first, total int // of shared ones, in the order of workers
}

// list takes the pairs that are given instead of those that are held out, of sources that have a row here.
func (p *relationPairs) list(l *sample.Lists, row func(id uint32) (uint32, bool)) {
	for _, set := range []int{sample.ValEdges, sample.TestEdges} {
		p.sets[set] = pairList{}
		of := l.Of(set)
		if of == nil {
			continue
		}
		among := &rankedAmong{k: of.K}
		for _, i := range p.sets[set].addAll(&of.Pairs, row) {
			among.ends = append(among.ends, of.Ends[i*of.K:(i+1)*of.K]...)
		}
		among.shared.addAll(&of.Shared, row)
		for i, at := range p.sets[set].row {
			p.ids[at] = p.sets[set].u[i]
		}
		p.lists[set] = among
	}
}

// addAll adds the pairs of sources that have a row here, and returns which these are.
func (l *pairList) addAll(pairs *sample.Pairs, row func(id uint32) (uint32, bool)) (which []int) {
	for i, u := range pairs.U {
		if at, here := row(u); here {
			l.row, l.u, l.v = append(l.row, at), append(l.u, u), append(l.v, pairs.V[i])
			which = append(which, i)
		}
	}
	return which
}

// degrees are how many training pairs of this worker lead to each destination; nil where nothing is drawn by them.
func (p *relationPairs) degrees(r *RelationLinks) []float64 {
	if r.opt.Power == 0 {
		return nil
	}
	t := &r.schema.Types[r.schema.Relations[p.relation].Target]
	out := make([]float64, t.Count)
	for _, v := range p.sets[sample.TrainEdges].v {
		out[int64(v)-t.First]++
	}
	return out
}

// draws makes what negatives are drawn by, from the degrees in training pairs of all workers.
func (p *relationPairs) draws(r *RelationLinks, degrees []float64) {
	isEdge := func(row, w uint32) bool {
		_, found := slices.BinarySearch(p.linked[row], w)
		return found || p.ids[row] == w
	}
	trained := func(row, w uint32) bool {
		return isEdge(row, w) && (p.ids[row] == w || r.sets.Of(p.relation, p.ids[row], w) == sample.TrainEdges)
	}
	if !r.opt.Avoid {
		trained = nil
	}
	p.negatives = sample.RelationNegativesByDegree(r.schema, p.relation, r.opt.Power, degrees, trained, p.seed)
	p.ranked = sample.NewRelationNegatives(r.schema, p.relation, isEdge, p.seed)
}

// checkPairs refuses relations without pairs to learn from or to measure.
func (r *RelationLinks) checkPairs() error {
	for _, p := range r.pairs {
		switch {
		case p.total[sample.TrainEdges] == 0:
			return Mistake("relation %q leaves no edge to learn from", p.name)
		case r.opt.Lists != nil:
		case r.opt.ValEdges > 0 && p.total[sample.ValEdges] == 0,
			r.opt.TestEdges > 0 && p.total[sample.TestEdges] == 0:
			return Mistake("shares %g and %g of the edges of relation %q hold out %d and %d; give larger "+
				"--val-edges and --test-edges, or another seed", r.opt.ValEdges, r.opt.TestEdges, p.name,
				p.total[sample.ValEdges], p.total[sample.TestEdges])
		}
	}
	return nil
}

// against are destinations that pairs of a set are compared with, one each.
func (p *relationPairs) against(set int) []uint32 { return p.drawn(set, 0, 1) }

// ends are destinations for each pair of a set, that it is ranked among: those that are given, or k that are drawn.
func (p *relationPairs) ends(set, k int) ([]uint32, int) {
	if l := p.lists[set]; l != nil {
		return l.ends, l.k
	}
	return p.drawn(set, 1, k), k
}

// rankNumbers are how many numbers workers share to rank a set.
func (p *relationPairs) rankNumbers(set int) int {
	if l := p.lists[set]; l != nil {
		return p.total[set] + l.total
	}
	return p.total[set]
}

// drawn are fixed negatives of the pairs of a set.
func (p *relationPairs) drawn(set, first, k int) []uint32 {
	list := &p.sets[set]
	out := make([]uint32, 0, k*len(list.row))
	for i, row := range list.row {
		for j := range k {
			out = append(out, p.ranked.Ranked(set, list.u[i], list.v[i], first+j, row))
		}
	}
	return out
}
