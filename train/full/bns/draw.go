package bns

import (
	"slices"

	"starling/exchange"
	"starling/rng"
	"starling/tensor"
)

// drawKey tells the draws of halo vertices from all others of a run.
const drawKey = 0x626e73

// draws says which halo vertices are kept in which epoch.
type draws struct {
	w     *exchange.Worker
	whole *exchange.HaloPlan // with all vertices
	p     float64
	all   int // epoch in which all are kept; -1: none
	key   rng.Key
	// now is the halo of the epoch, plan that of an epoch being planned.
	now, plan thinned
}

// keeps reports whether a part receives a vertex of another in an epoch.
func (d *draws) keeps(epoch, from, to int, vertex uint32) bool {
	if book := d.w.Part.Book; d.w.Relays() && book.Server(from) != book.Server(to) {
		to = book.Server(to) * book.Parts / book.Servers // its first part draws for all
	}
	return epoch == d.all || d.key.Fold(uint64(epoch)).Fold(uint64(to)).Float64(uint64(vertex)) < d.p
}

// thinned is the halo of an epoch.
type thinned struct {
	exchange.Halo
	epoch  int
	thin   int      // epoch of its edges
	send   []uint32 // own rows that are sent
	sendAt []uint32 // their places in the whole halo
	kept   []uint32 // halo rows that come
	keptAt tensor.Index
}

// draw makes the halo of an epoch, in the memory of another.
func (t *thinned) draw(d *draws, epoch int) *thinned {
	if t.epoch == epoch {
		return t
	}
	t.epoch, t.send, t.sendAt, t.kept = epoch, t.send[:0], t.sendAt[:0], t.kept[:0]
	t.SendPtr, t.HaloPtr = append(t.SendPtr[:0], 0), append(t.HaloPtr[:0], 0)
	h, me := d.whole, d.w.End.Rank()
	for q := range d.w.End.Size() {
		for k := h.SendPtr[q]; k < h.SendPtr[q+1]; k++ {
			if v := h.Send[k]; d.keeps(epoch, me, q, h.IDs[v]) {
				t.send, t.sendAt = append(t.send, v), append(t.sendAt, uint32(k))
			}
		}
		for k := h.HaloPtr[q]; k < h.HaloPtr[q+1]; k++ {
			t.take(uint32(k), d.keeps(epoch, q, me, h.IDs[h.Src+int(k)]))
		}
		t.SendPtr, t.HaloPtr = append(t.SendPtr, int64(len(t.send))), append(t.HaloPtr, int64(len(t.kept)))
	}
	direct := len(t.kept)
	if h.Relay != nil {
		t.Relay = t.relay(d, epoch)
	}
	dev := d.w.Dev
	t.Send, t.keptAt = tensor.Indices(dev, t.send), tensor.Indices(dev, t.kept)
	t.SendSlots = &exchange.Slots{At: tensor.Indices(dev, t.sendAt), Of: len(h.Send)}
	t.HaloSlots = &exchange.Slots{At: t.keptAt.Slice(0, direct), Of: int(h.HaloPtr[len(h.HaloPtr)-1])}
	return t
}

// take lists a halo row if it comes.
func (t *thinned) take(k uint32, comes bool) {
	if comes {
		t.kept = append(t.kept, k)
	}
}

// relay is what is relayed of the direct rows that come, and what is relayed to here: all
// of other servers.
func (t *thinned) relay(d *draws, epoch int) *exchange.Relay {
	h, me, n := d.whole, d.w.End.Rank(), d.w.End.Size()
	r := &exchange.Relay{SendPtr: make([]int64, n+1), HaloPtr: make([]int64, n+1)}
	direct, came := uint32(h.HaloPtr[n]), len(t.kept)
	for q := range n {
		for _, row := range h.Relay.Send[h.Relay.SendPtr[q]:h.Relay.SendPtr[q+1]] {
			if at, ok := slices.BinarySearch(t.kept[:came], row); ok {
				r.Rows = append(r.Rows, uint32(at))
			}
		}
		for k := uint32(h.Relay.HaloPtr[q]); k < uint32(h.Relay.HaloPtr[q+1]); k++ {
			v := direct + k
			t.take(v, d.keeps(epoch, d.w.Part.Book.Owner(h.Halo[v]), me, h.IDs[h.Src+int(v)]))
		}
		r.SendPtr[q+1], r.HaloPtr[q+1] = int64(len(r.Rows)), int64(len(t.kept)-came)
	}
	var places []uint32
	for _, v := range t.kept[came:] {
		places = append(places, v-direct)
	}
	r.Send, r.HaloSlots = tensor.Indices(d.w.Dev, r.Rows), &exchange.Slots{At: tensor.Indices(d.w.Dev, places),
		Of: int(h.Relay.HaloPtr[n])}
	return r
}
