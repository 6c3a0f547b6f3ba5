package cobatch

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"starling/coflow"
	"starling/exchange"
	"starling/sample"
	"starling/store"
	"starling/train/batch"
)

// hops draws a worker's share of its server's batch with the other workers: each draws the edges of
// its own vertices, hop by hop, and tells the others which of theirs it found. So no edge is drawn, and
// no vertex described, twice in a server, and a share never passes through one worker.
//
//	own ← own seeds
//	per hop: draw edges of own; sources of others are told to them; own ← own ∪ own sources ∪ told
type hops struct {
	*store.Hops
	of    *cooperative
	seeds batch.Seeds
	hop   []store.Hop // by block
	host  *batch.Host
	share *share

	row   store.Numbering // of own vertices
	lists [][]byte        // told to workers
	who   []int32         // computes a source of the hop at hand
	place []uint32        // of its sources in the block
}

func (m *hops) into(s *share, host *batch.Host) { m.share, m.host = s, host }
func (m *hops) Beside() batch.Beside            { return m.share }
func (m *hops) Take() batch.Beside              { return takeShare(&m.share) }

// toldBytes is what a vertex takes in a message: its number, id and degree without loops.
const (
	toldBytes = 16
	toldHead  = 8 // of a message
)

func (m *hops) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool, error) {
	at, fanouts := &m.of.at, m.of.p.Options.Fanouts
	m.share.reset(len(fanouts), m.host)
	for len(m.hop) < len(fanouts) {
		m.hop = append(m.hop, store.Hop{})
	}
	seeds := m.seeds.Seeds(epoch, number)
	b.Reset(epoch, number, 0)
	b.Scale = m.seeds.Scale()
	m.row.Begin()
	known.IDs, known.NoLoops = known.IDs[:0], known.NoLoops[:0]
	for _, v := range seeds {
		if at.computer(v) == at.me {
			m.add(b, known, v, 0, 0) // described by the first hop
		}
	}
	b.FirstSeeds(len(b.Vertices))
	for hop, fanout := range fanouts {
		layer := len(fanouts) - 1 - hop
		h := &m.hop[layer]
		err := m.Draw(ctx, h, b.Vertices, fanout, hop, layer, epoch, number)
		if err != nil {
			return false, err
		}
		copy(known.IDs, h.OwnIDs)
		copy(known.NoLoops, h.OwnNoLoops)
		var received [][]byte
		if m.of.pulled && layer == 0 {
			m.keepAll(h)
		} else if received, err = m.tell(ctx, b, h, layer); err != nil {
			return false, err
		}
		if err := m.block(b, known, h, m.share.blocks[layer], received); err != nil {
			return false, err
		}
	}
	m.share.input = len(b.Vertices)
	return true, nil
}

// add adds an own vertex.
func (m *hops) add(b *sample.Batch, known *store.Known, v, id uint32, noLoops float64) uint32 {
	row, longer := m.row.Add(b.Vertices, v)
	if len(longer) > len(b.Vertices) {
		known.IDs, known.NoLoops = append(known.IDs, id), append(known.NoLoops, noLoops)
	}
	b.Vertices = longer
	return row
}

// keepAll has all sources of the last hop be own vertices, whose features are pulled.
func (m *hops) keepAll(h *store.Hop) {
	m.who = m.who[:0]
	for range h.Sources {
		m.who = append(m.who, int32(m.of.at.me))
	}
}

// tell gives each worker of the server the vertices of its that a hop found, and returns what they
// found of this one's.
func (m *hops) tell(ctx context.Context, b *sample.Batch, h *store.Hop, layer int) ([][]byte, error) {
	at := &m.of.at
	for len(m.lists) < at.workers {
		m.lists = append(m.lists, nil)
	}
	for q := range m.lists {
		m.lists[q] = m.lists[q][:0]
	}
	m.who = m.who[:0]
	for i, v := range h.Sources {
		q := at.computer(v)
		m.who = append(m.who, int32(q))
		if q != at.me {
			l := binary.LittleEndian.AppendUint32(m.lists[q], v)
			l = binary.LittleEndian.AppendUint32(l, h.IDs[i])
			m.lists[q], _ = binary.Append(l, binary.LittleEndian, h.NoLoops[i])
		}
	}
	peers := batch.Others(at.me, at.first, at.last)
	for _, q := range peers {
		m.of.sent[q].Add(int64(toldHead + len(m.lists[q])))
	}
	id := coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: int16(layer), Type: coflow.Inputs}
	return batch.Swap(ctx, m.of.p.Site.End, peers, id, stepTold,
		batch.MostBlock(m.of.p.Site.Part.Book), m.lists)
}

// stepTold is the first message of a hop.
const stepTold = exchange.FreeSteps + 16

// block makes the share of a hop's block, with the vertices that it adds.
func (m *hops) block(b *sample.Batch, known *store.Known, h *store.Hop, to *shareBlock, received [][]byte) error {
	at, x := &m.of.at, &to.Blocks[0]
	x.Dst = len(b.Vertices)
	m.place = m.place[:0]
	for i, v := range h.Sources {
		row := uint32(0)
		if int(m.who[i]) == at.me {
			row = m.add(b, known, v, h.IDs[i], h.NoLoops[i])
		}
		m.place = append(m.place, row)
	}
	if received == nil {
		to.sendPtr = append(to.sendPtr, make([]int64, at.workers)...)
	}
	for q, list := range received {
		if len(list)%toldBytes != 0 {
			return fmt.Errorf("worker %d tells of vertices in %d bytes", q, len(list))
		}
		r := exchange.NewReader(list)
		for range len(list) / toldBytes {
			v, id, noLoops := r.Number(), r.Number(), r.Doubles(1)[0]
			nodes := m.of.p.Site.Part.Book.Nodes
			if int64(v) >= nodes || int64(id) >= nodes || at.computer(v) != at.me {
				return fmt.Errorf("worker %d tells of vertex %d, id %d, which worker %d does not compute; do all "+
					"workers have parts of the same partition?", q, v, id, at.me)
			}
			if book := m.of.p.Site.Part.Book; book.Schema != nil && book.Schema.TypeOf(id) != book.TypeOf(v) {
				return fmt.Errorf("worker %d tells of vertex %d, of type %d, with id %d, which is of another", q, v,
					book.TypeOf(v), id)
			}
			if !(noLoops >= 0 && noLoops <= math.MaxFloat64) {
				return fmt.Errorf("worker %d tells of vertex %d with a degree of %g", q, v, noLoops)
			}
			to.send = append(to.send, m.add(b, known, v, id, noLoops))
		}
		to.sendPtr = append(to.sendPtr, int64(len(to.send)))
	}
	m.rows(b, known, h, to)
	for _, source := range h.Indices {
		x.Indices = append(x.Indices, m.place[source])
	}
	x.Indptr = append(x.Indptr[:0], h.Indptr...)
	x.Weights, x.RowWeights = append(x.Weights, h.Weights...), append(x.RowWeights, h.RowWeights...)
	x.Relations = append(x.Relations, h.Relations...)
	k := &to.Pulled.Known
	k.All, k.EdgeFeatures[0] = append(k.All, h.All...), append(k.EdgeFeatures[0], h.EdgeFeatures...)
	return nil
}

// rows lists the vertices of a block's rows, and where sources of other workers are among them.
func (m *hops) rows(b *sample.Batch, known *store.Known, h *store.Hop, to *shareBlock) {
	at, k := &m.of.at, &to.Pulled.Known
	to.local = len(b.Vertices)
	to.Vertices = append(to.Vertices, b.Vertices...)
	k.IDs, k.NoLoops = append(k.IDs, known.IDs...), append(k.NoLoops, known.NoLoops...)
	by := make([][]uint32, at.workers)
	for i, q := range m.who {
		if int(q) != at.me {
			by[q] = append(by[q], uint32(i))
		}
	}
	for q := range by {
		for _, i := range by[q] {
			m.place[i] = uint32(len(to.Vertices))
			to.Vertices = append(to.Vertices, h.Sources[i])
			k.IDs, k.NoLoops = append(k.IDs, h.IDs[i]), append(k.NoLoops, h.NoLoops[i])
		}
		to.haloPtr = append(to.haloPtr, to.haloPtr[q]+int64(len(by[q])))
	}
	to.Blocks[0].Src = len(to.Vertices)
}
