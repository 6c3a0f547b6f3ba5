package sancus

import (
	"math"

	"starling/coflow"
	"starling/exchange"
	"starling/tensor"
	"starling/wire"
)

// changed reports whether the own block has changed so much since it was last sent that
// it must be sent again: by more than the bound (Definition 3), or than that share of its
// norm. The bound is on the root mean square of a number's change, so that it means the
// same for blocks of any size.
func (m *skipping) changed(layer int, src tensor.Matrix) bool {
	if m.bound.change == 0 {
		return true
	}
	dev := m.W.Dev
	last, fresh := m.stale.Rows(exchange.StaleKey{Layer: layer, What: "sent"}, src.Type(), src.Rows, src.Cols)
	if !fresh {
		diff := dev.Scratch(src.Type(), src.Rows, src.Cols)
		dev.Combine(diff, 1, src, -1, last)
		squares := tensor.Dots(dev, [2]tensor.Matrix{diff, diff}, [2]tensor.Matrix{last, last})
		dev.Free(diff)
		norm := math.Sqrt(float64(src.Rows) * float64(src.Cols))
		if m.bound.rule == "relative" {
			norm = math.Sqrt(squares[1])
		}
		bound := m.bound.change * norm
		if math.Sqrt(squares[0]) <= bound {
			return false
		}
	}
	dev.Copy(last, src)
	return true
}

// announcements tell the receivers of a layer's blocks which of them come: one byte per
// peer.
type announcements struct {
	bytes  []byte // of peers, by rank
	coming []*wire.Pending
}

// announce tells all peers whether the block comes, and asks for their announcements. These
// are more urgent than rows, so that none is behind a block that no peer has requested.
func (m *skipping) announce(layer int, h *exchange.Halo, d *turn, goes bool) {
	word := []byte{0}
	if goes {
		word[0] = 1
	}
	d.announced = &announcements{bytes: make([]byte, m.W.End.Size())}
	key := wire.Key{Coflow: m.Coflow(exchange.Tag{Layer: layer}, coflow.Control)}
	d.active[m.W.End.Rank()] = goes
	for _, q := range m.W.Peers() {
		if h.Src > 0 {
			m.W.End.Send(q, key, wire.Control, word)
		}
		if h.HaloPtr[q] < h.HaloPtr[q+1] {
			coming := m.W.End.Recv(q, key, wire.Control, d.announced.bytes[q:q+1])
			d.announced.coming = append(d.announced.coming, coming)
		}
	}
}

// hear waits for the announcements of all peers.
func (m *skipping) hear(d *turn) {
	for _, p := range d.announced.coming {
		if err := p.Wait(m.W.Ctx); err != nil {
			m.Fail(err)
			return
		}
	}
	for q, word := range d.announced.bytes {
		if q != m.W.End.Rank() {
			d.active[q] = word == 1
		}
	}
}

// announced is an exchange whose senders say first whether they send.
type announced struct {
	*exchange.Broadcast
	m       *skipping
	d       *turn
	receive func()
}

func (x *announced) Wait() {
	x.m.hear(x.d)
	x.receive()
	x.Broadcast.Wait()
}
