package measure

import "starling/tensor"

const heads = 4

// attention is a layer's two passes over a graph of four heads. Beside a row of each neighbour they fetch what its
// coefficients are made of, so they stand beside a gather of the rows and, as traffic, of everything.
func (b *bench) attention(g *graph, x, y tensor.Matrix, work float64) []kernel {
	if b.Width%heads != 0 {
		return nil
	}
	scores := func(n int) tensor.Matrix { return b.filled(tensor.F32, b.Rows, n*heads) }
	left, right, stat, dleft, dright := scores(1), scores(1), scores(2), scores(1), scores(1)
	dx, dy := b.rows(), b.rows()
	packed := scores(4) // of a destination: its score, maximum, sum and what softmax's derivative takes
	adj := tensor.NewSparse(b, b.Rows, b.Rows, g.ptr, g.index, nil)
	ptr, index, place := g.transpose()
	adjT := tensor.Transpose(b, adj, ptr, index, place)
	op := tensor.Attention{Heads: heads, Slope: 0.2}

	rows, back := b.gather(x, g.index), b.gather(dy, index)
	list, small := b.gather(left, g.index), []yardstick{b.gather(packed, index), b.gather(dright, index)}
	move, read := b.stream(1, 1), b.stream(1, 0)
	bytes := func(ms ...tensor.Matrix) (n float64) {
		for _, m := range ms {
			n += float64(m.Bytes())
		}
		return n
	}
	rows.beside = func() {
		list.run(0)
		move.run(bytes(y, right, stat))
	}
	back.beside = func() {
		for _, s := range small {
			s.run(0)
		}
		read.run(bytes(x, y, dy, left, right, stat))
		move.run(bytes(dx, packed, dleft, dright))
	}
	return []kernel{
		{"attention", work, func() { b.Attend(y, stat, adj, x, left, right, op) }, rows},
		{"attention-gradient", work, func() {
			b.AttendGrad(dx, dleft, dright, adj, adjT, x, left, right, stat, y, dy,
				op)
		}, back},
	}
}
