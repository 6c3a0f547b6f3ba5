package g3

import (
	"cmp"
	"slices"

	"starling/exchange"
	"starling/nn"
	"starling/tensor"
)

// order is how rows travel between workers: cut into chunks, one message each.
//
// By owner, a chunk is the rows of one bin: it leaves when that bin is done, and its
// gradients return together. By need, all but the first bins are cut by the first
// bin of the receivers that needs a row: they leave later, but let the receiver's bins
// go on one after the other, where by owner most wait for the last message. That gains
// where a transfer takes longer than making its rows.
type order struct {
	sends, halos []chunk // places in send, and among halo rows
	// makers are the own bins that have rows of a send chunk; sendsOf the chunks with rows
	// of an own bin.
	makers, sendsOf [][]int
	// halosOf are the halo chunks that the sums of a bin need; users the bins that need one.
	halosOf, users [][]int
	// relays are the send chunks that relay rows of a halo chunk.
	relays [][]int

	// together are ranges of send chunks, and returning of halo chunks, that are small and ready at the same time: the
	// rows of a range are gathered, or their gradients summed, at once.
	together, returning [][2]int

	places []uint32     // by chunk and peer: own rows that peers need, then halo rows that are relayed
	send   tensor.Index // the same
	remote *nn.Topology // own rows from halo ones, these by peer and chunk

	// haloAt and sendAt are where rows of the plan are among halo and sent ones, those that
	// are relayed after the others; haloBack and sendBack where rows are in the order of the
	// reverse exchange, or nil: in the same places.
	haloAt, sendAt     []uint32
	haloBack, sendBack []uint32

	needs *needs // of vertices, once they are asked for
	waves *waves // or nil: a bin's halo rows are summed all at once
	span  int    // above all numbers of chunks
}

// chunk is rows that travel from one worker to another in one message.
type chunk struct {
	peer   int
	owner  int // of rows that are relayed; -1: the sender's own
	number int // of the chunk between the owner and who it goes to first
	lo, hi int
}

// message numbers the chunks between two workers.
func (o *order) message(c chunk) int { return (c.owner+1)*o.span + c.number }

// earlyBins are those that leave at once in the order by need too: what is
// needed is unknown before something is computed.
const earlyBins = mostBins / 8

// cutting is what orders are made from: a halo, and the bounds of bins.
type cutting struct {
	w        *exchange.Worker
	plan     *exchange.HaloPlan
	from, to []int   // own bins before and after the synchronisation point
	theirs   [][]int // all workers' before it
	join     int     // rows of chunks that are joined
	span     int     // above all numbers of chunks, where these are of other bins
}

// spanOf is a number above those of all chunks, in either order.
func spanOf(theirs [][]int) (span int) {
	for _, at := range theirs {
		span = max(span, earlyBins+len(at))
	}
	return span
}

// order sorts rows by their numbers.
func (c *cutting) order(send, halo []int) *order {
	o, haloAt := &order{}, make([]uint32, len(halo))
	o.haloAt, o.sendAt = haloAt, make([]uint32, len(send))
	o.span = max(c.span, spanOf(c.theirs))
	var rows []int
	o.sends, rows = byNumber(chunksOf(c.plan.SendPtr, 0, func(i int) (int, int) { return -1, send[i] }))
	for place, i := range rows {
		o.places = append(o.places, c.plan.Send[i])
		o.sendAt[i] = uint32(place)
	}
	o.make(c.from)
	o.halos, rows = chunksOf(c.plan.HaloPtr, 0, func(i int) (int, int) { return -1, halo[i] })
	for place, i := range rows {
		haloAt[i] = uint32(place)
	}
	o.relays = make([][]int, len(o.halos))
	direct := len(o.halos)
	o.together = joined(o.sends, o.makers, c.join)
	if c.plan.Relay != nil {
		o.relay(c, halo, haloAt)
	}
	o.need(c, haloAt)
	o.returning = joined(o.halos[:direct], o.users, c.join)
	o.send = tensor.Indices(c.w.Dev, o.places)
	return o
}

// returnsAs says in which order the rows come back.
func (o *order) returnsAs(back *order) {
	o.haloBack, o.sendBack = make([]uint32, len(o.haloAt)), make([]uint32, len(o.sendAt))
	for i, place := range o.haloAt {
		o.haloBack[place] = back.haloAt[i]
	}
	for i, place := range o.sendAt {
		o.sendBack[place] = back.sendAt[i]
	}
}

// make lists which bins make a chunk that leaves.
func (o *order) make(at []int) {
	made := pairs(len(o.sends), len(at)-1)
	for i, c := range o.sends {
		for _, v := range o.places[c.lo:c.hi] {
			made[i][binOf(at, int(v))] = true
		}
	}
	o.makers, o.sendsOf = listed(made, len(at)-1)
}

// relay adds the chunks of rows that come by way of others, and those that others get by
// way of this worker: parts of the halo chunks that come directly.
func (o *order) relay(c *cutting, halo []int, haloAt []uint32) {
	of := func(place int) (owner, number int) { return c.w.Part.Book.Owner(c.plan.Halo[place]), halo[place] }
	index := map[[2]int]int{} // of direct chunks
	for i, k := range o.halos {
		index[[2]int{k.peer, k.number}] = i
	}
	direct := int(c.plan.HaloPtr[len(c.plan.HaloPtr)-1])
	chunks, rows := chunksOf(c.plan.Relay.HaloPtr, direct, func(i int) (int, int) { return of(direct + i) })
	o.halos, o.relays = append(o.halos, chunks...), append(o.relays, make([][]int, len(chunks))...)
	for k, i := range rows {
		haloAt[direct+i] = uint32(direct + k)
	}
	own := len(o.places)
	chunks, rows = chunksOf(c.plan.Relay.SendPtr, own, func(i int) (int, int) { return of(int(c.plan.Relay.Send[i])) })
	o.sendAt = append(o.sendAt, make([]uint32, len(rows))...)
	for k, i := range rows {
		o.places = append(o.places, haloAt[c.plan.Relay.Send[i]])
		o.sendAt[own+i] = uint32(own + k)
	}
	for _, k := range chunks {
		at := index[[2]int{k.owner, k.number}]
		o.relays[at] = append(o.relays[at], len(o.sends))
		o.sends = append(o.sends, k)
	}
}

// chunkAt is the halo chunk of each halo row.
func (o *order) chunkAt(rows int) []int {
	at := make([]int, rows)
	for i, k := range o.halos {
		for row := k.lo; row < k.hi; row++ {
			at[row] = i
		}
	}
	return at
}

// need lists which halo chunks the sums of a bin need.
func (o *order) need(c *cutting, haloAt []uint32) {
	needed := pairs(len(c.to)-1, len(o.halos))
	chunkAt := o.chunkAt(len(haloAt))
	for v := range c.plan.Src {
		for _, u := range c.plan.In.Neighbors(uint32(v)) {
			if int(u) >= c.plan.Src {
				needed[binOf(c.to, v)][chunkAt[haloAt[int(u)-c.plan.Src]]] = true
			}
		}
	}
	o.halosOf, o.users = listed(needed, len(o.halos))
}

// byNumber orders chunks by their numbers, those of a number by peer, and rows with them.
func byNumber(chunks []chunk, rows []int) ([]chunk, []int) {
	sorted, moved := slices.Clone(chunks), make([]int, 0, len(rows))
	slices.SortStableFunc(sorted, func(a, b chunk) int { return cmp.Compare(a.number, b.number) })
	for i, k := range sorted {
		sorted[i].lo = len(moved)
		moved = append(moved, rows[k.lo:k.hi]...)
		sorted[i].hi = len(moved)
	}
	return sorted, moved
}

// joined are ranges of chunks that follow each other, wait for the same bins, and have no more than some rows in all.
func joined(chunks []chunk, waits [][]int, rows int) (ranges [][2]int) {
	for i, k := range chunks {
		last := len(ranges) - 1
		if i > 0 && k.hi-chunks[ranges[last][0]].lo <= rows && slices.Equal(waits[i], waits[i-1]) {
			ranges[last][1] = i + 1
			continue
		}
		ranges = append(ranges, [2]int{i, i + 1})
	}
	return ranges
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
