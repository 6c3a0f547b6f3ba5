package cpu

import (
	"sync"

	"starling/tensor/cpu/simd"
)

// scoreSums are sums of gradients of scores over destinations' rows, made while going through
// the sources. A group of sources has a
// row a destination of its own, which stays near, where entries' places in the order of
// in-edges are anywhere. Groups' sums
// are added to the result in the groups' order: how many cores there are changes nothing.
type scoreSums struct {
	slots  Matrix // sums of the last groups: group g's are in slot g modulo their number
	dst    Matrix
	groups int
}

// scoreGroups is how many groups of sources there are: about as many as a vertex has
// neighbours, so that adding groups' sums costs
// no more than adding entries would, in multiples of eight, so that two, four or eight cores
// are done at once; none where that is too few to keep cores busy.
func scoreGroups(adj *Sparse, op Attention) int {
	if !op.DEdge.IsZero() || adj.Rows == 0 {
		return 0
	}
	if n := min(32, adj.Entries()/int64(adj.Rows)); n >= 8 {
		return int(n+7) &^ 7
	}
	return 0
}

// scoreSlots is how many groups' sums there is workspace for. With one per core, a core that is
// done early would have to wait until those before
// are added, and all be as slow as the slowest. More are no faster.
func scoreSlots(groups, threads int) int { return min(groups, threads+threads/2) }

func (c *Device) newScoreSums(workspace [2]int, dst Matrix, groups int) scoreSums {
	c.Zero(dst)
	return scoreSums{c.Scratch(F32, workspace[0], workspace[1]), dst, groups}
}

func (s scoreSums) slot(g int) Matrix {
	rows := s.dst.Rows
	g %= s.slots.Rows / rows
	return s.slots.Slice(g*rows, (g+1)*rows)
}

// pieceRows is how many destinations a core adds at a time, before the core that has the next group may.
const pieceRows = 8192

// sumScores calls one for n shares of work with where to add gradients. Who starts a group adds
// up the one whose slot it takes.
func (c *Device) sumScores(s scoreSums, n int, one func(share int, sums []float32)) {
	rows := s.dst.Rows
	slots := s.slots.Rows / rows
	order := newOrder((rows+pieceRows-1)/pieceRows, s.groups)
	c.run(s.groups, func(g, _ int) {
		defer order.over(g, g-slots)
		mine := s.slot(g)
		if g < slots {
			clear(f32Of(mine))
		} else {
			c.moveGroup(s, order, g-slots)
		}
		for k := g * n / s.groups; k < (g+1)*n/s.groups; k++ {
			one(k, f32Of(mine))
		}
	})
	c.forRows(rows, nearRows, func(lo, hi, _, _ int) {
		for g := max(0, s.groups-slots); g < s.groups; g++ {
			addSums(c.level, s.dst.Slice(lo, hi), s.slot(g).Slice(lo, hi))
		}
	})
}

// moveGroup adds the sums of group g to the result, after those before it, and leaves zeros.
func (c *Device) moveGroup(s scoreSums, order *order, g int) {
	from := s.slot(g)
	order.waitFor(g)
	for p := range order.next {
		order.wait(p, g)
		for lo := p * pieceRows; lo < min((p+1)*pieceRows, from.Rows); lo += nearRows {
			hi := min(lo+nearRows, from.Rows)
			addSums(c.level, s.dst.Slice(lo, hi), from.Slice(lo, hi))
			clear(f32Of(from.Slice(lo, hi)))
		}
		order.done(p, g)
	}
}

// nearRows is how many destinations' sums are added before they are cleared, so that they still
// are in the first-level cache.
const nearRows = 512

func addSums(level simd.Level, dst, from Matrix) {
	if dst.Contiguous() {
		simd.AddRows(level, f32Of(dst), f32Of(from), 1, len(f32Of(from)), 0)
		return
	}
	for i := range dst.Rows {
		simd.AddRows(level, rowOf(dst, i), rowOf(from, i), 1, dst.Cols, 0)
	}
}

// order has groups that are at work at the same time wait for each other: for one to end, and
// at each piece of the result for those before.
// They are distributed in order (see pool), so a group that is waited for is at work.
type order struct {
	mu    sync.Mutex
	moved sync.Cond
	ended []bool // groups
	next  []int  // whose turn it is at each piece
}

func newOrder(pieces, groups int) *order {
	o := &order{next: make([]int, pieces), ended: make([]bool, groups)}
	o.moved.L = &o.mu
	return o
}

// waitFor waits for the end of a group.
func (o *order) waitFor(group int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.ended[group] {
		o.moved.Wait()
	}
}

func (o *order) wait(piece, group int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.next[piece] < group {
		o.moved.Wait()
	}
}

func (o *order) done(piece, group int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next[piece] = group + 1
	o.moved.Broadcast()
}

// over ends a group, and the turns of the one it moved, also where it panicked: others must not wait for it.
func (o *order) over(group, moved int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[group] = true
	for p := range o.next {
		o.next[p] = max(o.next[p], moved+1)
	}
	o.moved.Broadcast()
}
