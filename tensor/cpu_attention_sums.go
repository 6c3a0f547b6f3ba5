package tensor

import (
	"sync"

	"starling/tensor/simd"
)

// scoreSums are sums of gradients of scores over destinations' rows, made while going through the sources. A core has a
// row a destination of its own, which stays near, where entries' places in the order of in-edges are anywhere. Sources are cut into
// groups, whose sums are added to the result in the groups' order: how many cores there are changes nothing.
type scoreSums struct {
	mine   Matrix // a core's, one after the other; zero between groups
	dst    Matrix
	groups int
}

// scoreGroups is how many groups of sources there are: about as many as a vertex has neighbours, so that adding groups' sums costs
// no more than adding entries would, in eights, so that two, four or eight cores are done at once; none where that is too few to keep cores busy.
func scoreGroups(adj *Sparse, op Attention) int {
	if !op.DEdge.IsZero() || adj.Rows == 0 {
		return 0
	}
	if n := min(32, adj.Entries()/int64(adj.Rows)); n >= 8 {
		return int(n+7) &^ 7
	}
	return 0
}

func (c *CPU) newScoreSums(room [2]int, dst Matrix, groups int) scoreSums {
	s := scoreSums{c.Scratch(F32, room[0], room[1]), dst, groups}
	c.Zero(s.mine)
	c.Zero(dst)
	return s
}

// pieceRows is how many destinations a core adds at a time, before the core that has the next group may.
const pieceRows = 8192

// sumScores calls one for n shares of work with where to add gradients.
func (c *CPU) sumScores(s scoreSums, n int, one func(share int, sums []float32)) {
	rows := s.dst.Rows
	order := newOrder((rows + pieceRows - 1) / pieceRows)
	c.run(s.groups, func(g, thread int) {
		defer order.over(g)
		mine := s.mine.Slice(thread*rows, (thread+1)*rows)
		for k := g * n / s.groups; k < (g+1)*n/s.groups; k++ {
			one(k, mine.f32)
		}
		for p := range order.next {
			lo, hi := p*pieceRows, min((p+1)*pieceRows, rows)
			order.wait(p, g)
			moveSums(c.level, s.dst.Slice(lo, hi), mine.Slice(lo, hi))
			order.done(p, g)
		}
	})
}

// moveSums adds the rows of mine to dst and leaves zeros.
func moveSums(level simd.Level, dst, mine Matrix) {
	if dst.contiguous() {
		simd.AddRows(level, dst.f32, mine.f32, 1, len(mine.f32), 0)
	} else {
		for i := range dst.Rows {
			simd.AddRows(level, dst.row(i), mine.row(i), 1, dst.Cols, 0)
		}
	}
	clear(mine.f32)
}

// order has chunks that run at the same time do each piece of something in their order. Chunks are
// handed out in order (see pool), so whoever is waited for is at work.
type order struct {
	mu    sync.Mutex
	moved sync.Cond
	next  []int // whose turn it is at each piece
}

func newOrder(pieces int) *order {
	o := &order{next: make([]int, pieces)}
	o.moved.L = &o.mu
	return o
}

func (o *order) wait(piece, chunk int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.next[piece] < chunk {
		o.moved.Wait()
	}
}

func (o *order) done(piece, chunk int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next[piece] = chunk + 1
	o.moved.Broadcast()
}

// over ends a chunk's turns, also where it panicked: others must not wait for it.
func (o *order) over(chunk int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p := range o.next {
		o.next[p] = max(o.next[p], chunk+1)
	}
	o.moved.Broadcast()
}
