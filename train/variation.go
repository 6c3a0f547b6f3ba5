package train

import (
	"math"

	"starling/coflow"
	"starling/tensor"
	"starling/wire"
)

// changed reports whether the own block has changed so much since it was last sent
// that it must be sent again: by more than the bound's share of its norm.
func (m *skipping) changed(layer int, src tensor.Matrix) bool {
	if m.bound.change == 0 {
		return true
	}
	last, made := m.keeper(keep{layer, "own"}, src.Type(), src.Rows, src.Cols)
	if !made {
		diff := m.dev.Scratch(src.Type(), src.Rows, src.Cols)
		m.dev.Combine(diff, 1, src, -1, last)
		gap, size := math.Sqrt(m.dev.Dot(diff, diff)), math.Sqrt(m.dev.Dot(last, last))
		m.dev.Free(diff)
		if gap <= m.bound.change*size {
			return false
		}
	}
	m.dev.Copy(last, src)
	return true
}

// words tell the receivers of a layer's blocks which of them come: one byte a peer.
type words struct {
	said   []byte
	coming []*wire.Pending
}

// tell sends all peers the word whether the block comes, and asks for theirs. A word
// is more urgent than rows, so it is never behind a block that nobody has asked for.
func (m *skipping) tell(layer int, b *border, d *turn, goes bool) {
	word := []byte{0}
	if goes {
		word[0] = 1
	}
	d.words = &words{said: make([]byte, m.end.Size())}
	key := wire.Key{Coflow: coflow.ID{Epoch: uint32(m.epoch), Type: coflow.Control, Layer: int16(layer)}}
	for _, q := range m.round() {
		if d.goes[q] = goes; b.src > 0 {
			m.end.Send(q, key, wire.Control, word)
		}
		if b.farPtr[q] < b.farPtr[q+1] {
			d.words.coming = append(d.words.coming, m.end.Recv(q, key, wire.Control, d.words.said[q:q+1]))
		}
	}
}

// hear waits for the words of all peers.
func (m *skipping) hear(d *turn) {
	for _, p := range d.words.coming {
		if err := p.Wait(m.ctx); err != nil {
			m.fail(err)
			return
		}
	}
	for q, word := range d.words.said {
		d.comes[q] = word == 1
	}
}

// announced is an exchange whose senders say first whether they send.
type announced struct {
	*exchange
	m    *skipping
	d    *turn
	take func()
}

func (x *announced) wait() {
	x.m.hear(x.d)
	x.take()
	x.exchange.wait()
}
