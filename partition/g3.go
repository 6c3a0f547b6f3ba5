package partition

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// G3 is the locality-aware iterative partitioning of G3 (Wan et al., SIGMOD 2023): first a
// partition that balances vertices and
// edges and keeps the volume small, then swaps between the part with most remote vertices and
// the part with fewest,
//
//	v_max = the vertex of V_max whose leaving frees most remote neighbours
//	v_min = the vertex of V_min that costs V_max least
//
// until they are within 0.5% of each other, or the ratio min/max stops moving.
//
// As in the paper, d_in(u) counts how many of a part's vertices u sends to: u leaves
// the part's remote set when its count falls to zero, so a move costs O(degree).
// Only the counts of the two current parts are kept, not those of all parts.
// Unlike in the paper, a vertex first tries to move alone, if the limits allow it, which
// also fills a part that is too small. A
// pair of parts is ranked once and swapped many times; every swap is tried and undone
// unless it makes the larger of the two remote sets smaller, keeps the ratio and
// keeps every constraint. The larger set of the pair shrinks strictly, so swaps do
// not cycle.
func G3(ctx context.Context, p *Problem) ([]uint32, error) {
	parts, err := evenSizes(ctx, p)
	if parts == nil {
		return nil, err
	}
	if err := evenRemote(ctx, p, parts); err != nil {
		return nil, err
	}
	return parts, newLoads(p).of(parts).unbalanced(parts)
}

// evenSizes is the first stage. A minimal cut may leave one part far below the
// mean, which keeps its limits but needs fewer remote vertices than swaps can even
// out; so this stage uses a fifth of the tolerances, which bounds parts from below too.
func evenSizes(ctx context.Context, p *Problem) ([]uint32, error) {
	first := *p
	first.Objective = Volume
	first.Constraints = slices.Clone(p.constraints())
	for i := range first.Constraints {
		first.Constraints[i].Tolerance /= 5
	}
	var unbalanced *Unbalanced
	parts, err := Multilevel(ctx, &first)
	if errors.As(err, &unbalanced) {
		if parts = unbalanced.Parts; newLoads(p).of(parts).unbalanced(parts) == nil {
			return parts, nil
		}
		first.Constraints = p.constraints()
		if parts, err = Multilevel(ctx, &first); errors.As(err, &unbalanced) {
			return unbalanced.Parts, nil
		}
	}
	return parts, err
}

// converged is how far from even the parts may stay, and how little the ratio must
// move, in as many rounds as there are parts, for the swapping to end.
const converged = 0.005

// patience is how many swaps in a row may fail before a pair of parts is left, and
// partners how many parts the one with most remote vertices is paired with.
const (
	patience = 64
	partners = 4
)

// nothing is the second vertex of a move without a swap.
const nothing = unassigned

// evenRemote is the second stage: swaps that even out remote vertices, in place.
func evenRemote(ctx context.Context, p *Problem, parts []uint32) error {
	n := p.Graph.Nodes()
	s := &swapper{p: p, parts: parts, loads: newLoads(p).of(parts), mark: newBits(n)}
	q := Measure(p.Graph, parts, p.Parts, nil, false, p.Threads)
	s.remote = q.Remote
	s.need[0], s.need[1] = make([]uint32, n), make([]uint32, n)
	last := s.ratio()
	for round := 1; ; round++ {
		p.report("even remote vertices", int64(1000*s.ratio()), 1000)
		if improved, err := s.round(ctx); err != nil || !improved {
			return err
		}
		now := s.ratio()
		if now > 1-converged {
			return nil
		}
		if round%p.Parts == 0 {
			if now-last < converged {
				return nil
			}
			last = now
		}
	}
}

// swapper holds the state of the swaps between two parts, side 0 the one with
// most remote vertices and side 1 the other.
type swapper struct {
	p      *Problem
	parts  []uint32
	loads  *loads
	remote []int64     // of every part, always exact
	side   [2]uint32   // the two current parts
	need   [2][]uint32 // d_in: how many of the side's vertices each vertex sends to
	mark   bitset
}

// ratio of the fewest remote vertices to the most; 1 is even.
func (s *swapper) ratio() float64 {
	most, least := spread(s.remote)
	return float64(max(least, 1)) / float64(max(most, 1))
}

// round swaps between the part with most remote vertices and the one with fewest;
// if nothing can be gained there, with the next fewest, and so on.
func (s *swapper) round(ctx context.Context) (improved bool, err error) {
	order := make([]uint32, len(s.remote))
	for k := range order {
		order[k] = uint32(k)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.remote[a], s.remote[b]), cmp.Compare(a, b))
	})
	top := order[len(order)-1]
	for _, other := range order[:min(partners, len(order)-1)] {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if s.remote[other] == s.remote[top] {
			break
		}
		if s.between(top, other) {
			return true, nil
		}
	}
	return false, nil
}

// between swaps until the two parts have equally many remote vertices, or no swap helps.
func (s *swapper) between(top, other uint32) (improved bool) {
	s.side = [2]uint32{top, other}
	s.count()
	leave, enter := s.candidates(0), s.candidates(1)
	j, failed := 0, 0
	for i := 0; i < len(leave) && j < len(enter) && failed < patience && s.remote[top] > s.remote[other]; i++ {
		if from, _ := s.cost(leave[i].v, 0); from >= 0 {
			continue // earlier swaps freed it already
		}
		switch {
		case s.try(leave[i].v, nothing):
			improved, failed = true, 0
		case s.try(leave[i].v, enter[j].v):
			improved, failed = true, 0
			j++
		default:
			if failed++; failed%8 == 0 {
				j++
			}
		}
	}
	clear(s.need[0])
	clear(s.need[1])
	return improved
}

// count fills in need for both sides, which must be clear.
func (s *swapper) count() {
	for v, k := range s.parts {
		for side, part := range s.side {
			if k != part {
				continue
			}
			for _, u := range s.p.Graph.Neighbors(uint32(v)) {
				s.need[side][u]++
			}
		}
	}
}

// swapCandidate is a vertex of one side and what its move alone would add to remote
// vertices: those of side 0, which is to shrink, count double.
type swapCandidate struct {
	v    uint32
	cost int
}

// candidates lists the vertices of a side that could move, cheapest first. Of the side
// with most remote vertices only those count whose move lowers their number.
func (s *swapper) candidates(side int) []swapCandidate {
	var out []swapCandidate
	for v, k := range s.parts {
		if k != s.side[side] {
			continue
		}
		from, to := s.cost(uint32(v), side)
		switch {
		case side == 1:
			out = append(out, swapCandidate{uint32(v), 2*to + from})
		case from < 0:
			out = append(out, swapCandidate{uint32(v), 2*from + to})
		}
	}
	slices.SortFunc(out, func(a, b swapCandidate) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.v, b.v))
	})
	return out
}

// cost is how the remote vertices of the side v is on, and of the other, would
// change if it moved.
func (s *swapper) cost(v uint32, side int) (from, to int) {
	here, there := s.side[side], s.side[1-side]
	loops := uint32(0)
	for _, u := range s.p.Graph.Neighbors(v) {
		if u == v {
			loops++
			continue
		}
		if s.parts[u] != here && s.need[side][u] == 1 {
			from--
		}
		if s.parts[u] != there && s.need[1-side][u] == 0 && s.mark.set(u) {
			to++
		}
	}
	for _, u := range s.p.Graph.Neighbors(v) {
		s.mark.unset(u)
	}
	if s.need[side][v] > loops {
		from++
	}
	if s.need[1-side][v] > 0 {
		to--
	}
	return from, to
}

// move takes v to the other side and keeps remote and need exact, in O(degree).
func (s *swapper) move(v uint32, side int) {
	here, there := s.side[side], s.side[1-side]
	if s.need[1-side][v] > 0 {
		s.remote[there]--
	}
	for _, u := range s.p.Graph.Neighbors(v) {
		if s.need[side][u]--; s.need[side][u] == 0 && s.parts[u] != here {
			s.remote[here]--
		}
		if s.need[1-side][u]++; s.need[1-side][u] == 1 && s.parts[u] != there && u != v {
			s.remote[there]++
		}
	}
	if s.need[side][v] > 0 {
		s.remote[here]++
	}
	s.parts[v] = there
	s.loads.add(int(here), int(v), -1)
	s.loads.add(int(there), int(v), 1)
}

// try swaps a of side 0 and b of side 1 (or nothing); unless that is better, it
// swaps them back.
func (s *swapper) try(a, b uint32) bool {
	top, other := s.side[0], s.side[1]
	most, ratio := s.remote[top], s.ratio()
	volume := s.remote[top] + s.remote[other]
	excess := s.loads.excessOf(int(top)) + s.loads.excessOf(int(other))
	s.move(a, 0)
	if b != nothing {
		s.move(b, 1)
	}
	gained := most - s.remote[top]
	if gained > 0 && s.remote[other] < most && s.ratio() >= ratio &&
		s.remote[top]+s.remote[other] <= volume+gained &&
		s.loads.excessOf(int(top))+s.loads.excessOf(int(other)) <= excess {
		return true
	}
	s.move(a, 1)
	if b != nothing {
		s.move(b, 0)
	}
	return false
}
