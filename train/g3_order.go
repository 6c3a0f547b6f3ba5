package train

import (
	"cmp"
	"slices"

	"starling/nn"
	"starling/tensor"
)

// order is how rows travel between workers: cut into chunks, one message each.
//
// By owner, a chunk is the rows of one bin: it leaves when that bin is done, and its
// gradients come home together. By need, all but the first bins are cut by the first
// bin of the receivers that needs a row: they leave later, but let the receiver's bins
// go on one after the other, where by owner most wait for the last message. That pays
// where a transfer takes longer than making its rows.
type order struct {
	sends, fars []chunk // places in send, and among far rows
	// makers are the own bins that have rows of a send chunk; sendsOf the chunks with rows
	// of an own bin.
	makers, sendsOf [][]int
	// farsOf are the far chunks that the sums of a bin need; users the bins that need one.
	farsOf, users [][]int
	// passes are the send chunks that pass rows of a far chunk on.
	passes [][]int

	places []uint32     // by peer and chunk: own rows that peers need, then far rows that are passed on
	send   tensor.Index // the same
	far    *nn.Topology // own rows from far ones, these by peer and chunk

	// farAt and sendAt are where rows of the border are among far and sent ones, those that
	// are passed on after the others; farHome and sendHome where rows are in the order of
	// the way back, or nil: in the same places.
	farAt, sendAt     []uint32
	farHome, sendHome []uint32

	waves *waves // or nil: a bin's far rows are added up all at once
	span  int    // above all numbers of chunks
}

// chunk is rows that travel from one worker to another in one message.
type chunk struct {
	peer   int
	owner  int // of rows that are passed on; -1: the sender's own
	number int // of the chunk between the owner and who it goes to first
	lo, hi int
}

// message numbers the chunks between two workers.
func (o *order) message(c chunk) int { return (c.owner+1)*o.span + c.number }

// earlyBins are those that leave at once in the order by need too: nobody knows what
// to send before something is computed.
const earlyBins = mostBins / 8

// cutting is what orders are made from: a border, and the bins of all workers.
type cutting struct {
	*site
	*lists
	bins   *bins
	theirs [][]int // bounds
}

// order sorts rows by their numbers.
func (c *cutting) order(send, far []int) *order {
	o, farAt := &order{}, make([]uint32, len(far))
	o.farAt, o.sendAt = farAt, make([]uint32, len(send))
	for _, at := range c.theirs {
		o.span = max(o.span, earlyBins+len(at))
	}
	var rows []int
	o.sends, rows = chunksOf(c.sendPtr, 0, func(i int) (int, int) { return -1, send[i] })
	for place, i := range rows {
		o.places = append(o.places, c.send[i])
		o.sendAt[i] = uint32(place)
	}
	o.make(c.bins)
	o.fars, rows = chunksOf(c.farPtr, 0, func(i int) (int, int) { return -1, far[i] })
	for place, i := range rows {
		farAt[i] = uint32(place)
	}
	o.passes = make([][]int, len(o.fars))
	if c.relay != nil {
		o.passOn(c, far, farAt)
	}
	o.need(c, farAt)
	o.send = c.dev.Indices(o.places)
	return o
}

// goesBackAs says in which order the rows come home.
func (o *order) goesBackAs(home *order) {
	o.farHome, o.sendHome = make([]uint32, len(o.farAt)), make([]uint32, len(o.sendAt))
	for i, place := range o.farAt {
		o.farHome[place] = home.farAt[i]
	}
	for i, place := range o.sendAt {
		o.sendHome[place] = home.sendAt[i]
	}
}

// make lists which bins make a chunk that leaves.
func (o *order) make(b *bins) {
	made := pairs(len(o.sends), b.count())
	for i, c := range o.sends {
		for _, v := range o.places[c.lo:c.hi] {
			made[i][binOf(b.at, int(v))] = true
		}
	}
	o.makers, o.sendsOf = listed(made, b.count())
}

// passOn adds the chunks of rows that come by way of others, and those that others get
// by way of this worker: parts of the far chunks that come straight.
func (o *order) passOn(c *cutting, far []int, farAt []uint32) {
	of := func(place int) (owner, number int) { return c.part.Book.Owner(c.lists.far[place]), far[place] }
	index := map[[2]int]int{} // of straight chunks
	for i, k := range o.fars {
		index[[2]int{k.peer, k.number}] = i
	}
	straight := int(c.farPtr[len(c.farPtr)-1])
	chunks, rows := chunksOf(c.relay.farPtr, straight, func(i int) (int, int) { return of(straight + i) })
	o.fars, o.passes = append(o.fars, chunks...), append(o.passes, make([][]int, len(chunks))...)
	for k, i := range rows {
		farAt[straight+i] = uint32(straight + k)
	}
	own := len(o.places)
	chunks, rows = chunksOf(c.relay.sendPtr, own, func(i int) (int, int) { return of(int(c.relay.send[i])) })
	o.sendAt = append(o.sendAt, make([]uint32, len(rows))...)
	for k, i := range rows {
		o.places = append(o.places, farAt[c.relay.send[i]])
		o.sendAt[own+i] = uint32(own + k)
	}
	for _, k := range chunks {
		at := index[[2]int{k.owner, k.number}]
		o.passes[at] = append(o.passes[at], len(o.sends))
		o.sends = append(o.sends, k)
	}
}

// need lists which far chunks the sums of a bin need.
func (o *order) need(c *cutting, farAt []uint32) {
	needed := pairs(c.bins.count(), len(o.fars))
	chunkAt := make([]int, len(farAt))
	for i, k := range o.fars {
		for row := k.lo; row < k.hi; row++ {
			chunkAt[row] = i
		}
	}
	for v := range c.src {
		for _, u := range c.in.Neighbors(uint32(v)) {
			if int(u) >= c.src {
				needed[binOf(c.bins.at, v)][chunkAt[farAt[int(u)-c.src]]] = true
			}
		}
	}
	o.farsOf, o.users = listed(needed, len(o.fars))
}

// chunksOf cuts rows, which ptr lists by peer, by owner and number, and places them from
// first on; rows are they in the new order.
func chunksOf(ptr []int64, first int, of func(i int) (owner, number int)) (chunks []chunk, rows []int) {
	for q := range len(ptr) - 1 {
		start := len(rows)
		for i := ptr[q]; i < ptr[q+1]; i++ {
			rows = append(rows, int(i))
		}
		mine := rows[start:]
		slices.SortStableFunc(mine, func(i, j int) int {
			a, m := of(i)
			b, n := of(j)
			return cmp.Or(cmp.Compare(a, b), cmp.Compare(m, n))
		})
		for k, i := range mine {
			at := first + start + k
			owner, number := of(i)
			if last := len(chunks) - 1; k == 0 || chunks[last].owner != owner || chunks[last].number != number {
				chunks = append(chunks, chunk{peer: q, owner: owner, number: number, lo: at})
			}
			chunks[len(chunks)-1].hi = at + 1
		}
	}
	return chunks, rows
}

// farTopology is the edges from far rows, these in other places.
func farTopology(s *site, l *lists, at []uint32) *nn.Topology {
	moved := &nn.Degrees{All: make([]float64, len(at))}
	if l.degrees.NoLoops != nil {
		moved.NoLoops = make([]float64, len(at))
	}
	for i, place := range at {
		moved.All[place] = l.degrees.All[l.src+i]
		if l.degrees.NoLoops != nil {
			moved.NoLoops[place] = l.degrees.NoLoops[l.src+i]
		}
	}
	rows := l.degrees.Slice(0, l.src)
	if l.in.Weights != nil {
		rows = weighed(l.in, rows)
	}
	_, far := splitByColumn(l.in, l.src)
	for e, u := range far.Indices {
		far.Indices[e] = at[u]
	}
	return nn.NewPart(s.dev, far, len(at), rows, moved, false)
}
