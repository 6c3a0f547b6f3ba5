package train

import (
	"slices"

	"starling/nn"
	"starling/partition"
	"starling/tensor"
)

// order is how rows travel between workers: cut into chunks, one message each.
//
// By owner, a chunk is the rows of one bin: it leaves when that bin is done, and its
// gradients come home together. By need, all but the first bins are cut by the first
// bin of the receiver that needs a row: they leave later, but let the receiver's bins
// go on one after the other, where by owner most wait for the last message. That pays
// where a transfer takes longer than making its rows.
type order struct {
	sends, fars []chunk // places in send, and among far rows
	// makers are the own bins that have rows of a send chunk; sendsOf the chunks with rows
	// of an own bin.
	makers, sendsOf [][]int
	// farsOf are the far chunks that the sums of a bin need; users the bins that need one.
	farsOf, users [][]int

	send tensor.Index // own rows that peers need, by peer and chunk
	far  *nn.Topology // own rows from far ones, these by peer and chunk

	waves *waves // or nil: a bin's far rows are added up all at once
}

// chunk is rows that travel from one worker to another in one message.
type chunk struct {
	peer   int
	number int // of the chunk between these two
	lo, hi int
}

// earlyBins are those that leave at once in the order by need too: nobody knows what
// to send before something is computed.
const earlyBins = mostBins / 8

// byOwner numbers the chunk of an own row for a peer, and of a far row, by bin.
func byOwner(p *partition.Part, bound func(rows int) []int) (send, far func(q, i int) int) {
	own, theirs := bound(p.Core()), boundsOf(p, bound)
	return func(q, i int) int { return binOf(own, int(p.SendTo(q)[i])) },
		func(q, i int) int { return binOf(theirs[q], int(p.HaloOf(q)[i])-int(p.Book.Offsets[q])) }
}

// byNeed numbers chunks by the first bin that needs a row. What another worker needs
// is told by one's own edges where the graph is symmetric.
func byNeed(p *partition.Part, bound func(rows int) []int) (send, far func(q, i int) int) {
	core, own, theirs := p.Core(), bound(p.Core()), boundsOf(p, bound)
	sendBin, farBin := byOwner(p, bound)
	first := make([]int, p.Meta.Halo) // own bin that needs a far row
	for v := core - 1; v >= 0; v-- {
		for _, u := range p.In.Neighbors(uint32(v)) {
			if int(u) >= core {
				first[int(u)-core] = binOf(own, v)
			}
		}
	}
	send = func(q, i int) int {
		if bin := sendBin(q, i); bin < earlyBins {
			return bin
		}
		for _, u := range p.In.Neighbors(p.SendTo(q)[i]) { // ascending, and so the first of q's is the first
			if at := int64(u) - int64(core); at >= p.HaloPtr[q] && at < p.HaloPtr[q+1] {
				return earlyBins + binOf(theirs[q], int(p.Halo[at])-int(p.Book.Offsets[q]))
			}
		}
		panic("train: a symmetric graph lacks the way back of an edge")
	}
	far = func(q, i int) int {
		if bin := farBin(q, i); bin < earlyBins {
			return bin
		}
		return earlyBins + first[int(p.HaloPtr[q])+i]
	}
	return send, far
}

func boundsOf(p *partition.Part, bound func(rows int) []int) [][]int {
	out := make([][]int, p.Book.Parts)
	for q := range out {
		out[q] = bound(int(p.Book.Size(q)))
	}
	return out
}

// newOrder sorts rows by the numbers that send and far give them. farAt is the new
// place of each far row.
func newOrder(s *site, b *bins, send, far func(q, i int) int) (o *order, farAt []uint32) {
	p := s.part
	core := p.Core()
	o, farAt = &order{}, make([]uint32, p.Meta.Halo)
	var sendAt []uint32
	for q := range p.Book.Parts {
		var rows []int
		o.sends, rows = chunksOf(o.sends, q, int(p.SendPtr[q]), len(p.SendTo(q)), send)
		for _, i := range rows {
			sendAt = append(sendAt, p.SendTo(q)[i])
		}
		o.fars, rows = chunksOf(o.fars, q, int(p.HaloPtr[q]), len(p.HaloOf(q)), far)
		for place, i := range rows {
			farAt[int(p.HaloPtr[q])+i] = uint32(int(p.HaloPtr[q]) + place)
		}
	}
	made, needed := pairs(len(o.sends), b.count()), pairs(b.count(), len(o.fars))
	for i, c := range o.sends {
		for _, v := range sendAt[c.lo:c.hi] {
			made[i][binOf(b.at, int(v))] = true
		}
	}
	chunkAt := make([]int, p.Meta.Halo)
	for i, c := range o.fars {
		for row := c.lo; row < c.hi; row++ {
			chunkAt[row] = i
		}
	}
	for v := range core {
		for _, u := range p.In.Neighbors(uint32(v)) {
			if int(u) >= core {
				needed[binOf(b.at, v)][chunkAt[farAt[int(u)-core]]] = true
			}
		}
	}
	o.makers, o.sendsOf = listed(made, b.count())
	o.farsOf, o.users = listed(needed, len(o.fars))
	o.send = s.dev.Indices(sendAt)
	return o, farAt
}

// chunksOf cuts n rows from first on by their numbers; rows are they in the new order.
func chunksOf(to []chunk, peer, first, n int, number func(q, i int) int) (all []chunk, rows []int) {
	numbers := make([]int, n)
	for i := range numbers {
		rows, numbers[i] = append(rows, i), number(peer, i)
	}
	slices.SortStableFunc(rows, func(i, j int) int { return numbers[i] - numbers[j] })
	for k, i := range rows {
		if k == 0 || numbers[rows[k-1]] != numbers[i] {
			to = append(to, chunk{peer: peer, number: numbers[i], lo: first + k})
		}
		to[len(to)-1].hi = first + k + 1
	}
	return to, rows
}

// farTopology is the edges from far rows, these in other places.
func farTopology(s *site, at []uint32) *nn.Topology {
	p := s.part
	core, all := p.Core(), p.Core()+int(p.Meta.Halo)
	d := degrees(p, all)
	moved := &nn.Degrees{All: make([]float64, len(at))}
	if d.NoLoops != nil {
		moved.NoLoops = make([]float64, len(at))
	}
	for i, place := range at {
		moved.All[place] = d.All[core+i]
		if d.NoLoops != nil {
			moved.NoLoops[place] = d.NoLoops[core+i]
		}
	}
	rows := d.Slice(0, core)
	if p.In.Weights != nil {
		rows = weighed(p.In, rows)
	}
	_, far := splitByColumn(p.In, core)
	for e, u := range far.Indices {
		far.Indices[e] = at[u]
	}
	return nn.NewPart(s.dev, far, len(at), rows, moved, false)
}
