package train

import (
	"starling/nn"
	"starling/partition"
	"starling/tensor"
)

// cagnet is CAGNET's one-dimensional algorithm (Tripathy, Yelick and Buluç,
// "Reducing Communication in Graph Neural Network Training", SC 2020, §IV-A). Rows
// of all matrices lie in blocks, one a worker, and a layer's sums are a product of
// block rows:
//
//	y_i = Σ_j A_ij·z_j        z_j [core of j, w], y_i [core of i, w]
//
// for which every worker's whole block goes to every other worker, needed or not:
// the partition's cut is never looked at. Backwards the gradients of a block return
// from all workers to its owner, which adds them up in rank order (a
// reduce-scatter). Exact.
//
// Per layer a worker sends (workers-1) x its core rows, and backwards receives as many.
func newCAGNET(s *site) (planned, error) {
	return newExchanging(s, &blocks{&exact{site: s}}, newBorder(s.dev, blockLists(s.part))), nil
}

// blocks moves whole blocks of rows.
type blocks struct{ *exact }

// fetch sends the block from where it lies: gathering would copy it for each peer.
func (m *blocks) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	x := m.exchange(t, into, src)
	x.receive(b.farPtr)
	for _, q := range m.round() {
		x.send(m.only(q, 0, b.src))
	}
	return x
}

// round lists the peers, beginning with the next rank.
func (s *site) round() (peers []int) {
	n := s.end.Size()
	for i := range n - 1 {
		peers = append(peers, (s.end.Rank()+1+i)%n)
	}
	return peers
}

// only are the pointers of an exchange with a single peer, of rows lo to hi.
func (s *site) only(peer, lo, hi int) []int64 {
	ptr := make([]int64, s.end.Size()+1)
	for q := range ptr {
		if ptr[q] = int64(lo); q > peer {
			ptr[q] = int64(hi)
		}
	}
	return ptr
}

// blockLists are those of a partition where every worker has all far rows: the far
// vertices are all of other workers, in order of their numbers.
func blockLists(p *partition.Part) lists {
	me, core, all := p.Meta.Part, p.Meta.Core, int(p.Book.Nodes)
	l := lists{src: int(core), ids: make([]uint32, all), sendPtr: []int64{0}}
	for q, at := range p.Book.Offsets {
		if q > me {
			at -= core
		}
		l.farPtr = append(l.farPtr, at)
	}
	for q := range p.Book.Parts {
		if q != me {
			for v := range uint32(core) {
				l.send = append(l.send, v)
			}
		}
		l.sendPtr = append(l.sendPtr, int64(len(l.send)))
	}
	place := blockPlaces(p)
	in := *p.In
	in.Indices = make([]uint32, len(p.In.Indices))
	l.in = &in
	for e, u := range p.In.Indices {
		l.in.Indices[e] = place[u]
	}
	l.degrees = &nn.Degrees{All: make([]float64, all)}
	if p.GCNDegrees != nil {
		l.degrees.NoLoops = make([]float64, all)
	}
	// Far vertices outside the halo have no edge to this worker, so that nobody asks
	// for their ids and degrees; they stay 0.
	for u, at := range place {
		l.ids[at], l.degrees.All[at] = p.IDs[u], float64(p.Degrees[u])
		if p.GCNDegrees != nil {
			l.degrees.NoLoops[at] = p.GCNDegrees[u]
		}
	}
	return l
}

// blockPlaces says for each core and halo vertex which row it is: the core keeps its
// numbers, and all far vertices follow it.
func blockPlaces(p *partition.Part) []uint32 {
	core, end := uint32(p.Meta.Core), uint32(p.Book.Offsets[p.Meta.Part+1])
	place := make([]uint32, 0, int(core)+len(p.Halo))
	for v := range core {
		place = append(place, v)
	}
	for _, g := range p.Halo {
		if g < end { // of a worker before this one
			g += core
		}
		place = append(place, g)
	}
	return place
}
