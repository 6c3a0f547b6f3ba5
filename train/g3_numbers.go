package train

import (
	"encoding/binary"
	"fmt"

	"starling/graph"
	"starling/partition"
	"starling/wire"
)

// byOwner numbers the rows that leave straight, and all far rows, by their owners' bins.
func (c *cutting) byOwner() (send, far []int) {
	for _, v := range c.send {
		send = append(send, binOf(c.bins.at, int(v)))
	}
	for _, v := range c.lists.far {
		q := c.part.Book.Owner(v)
		far = append(far, binOf(c.theirs[q], int(v)-int(c.part.Book.Offsets[q])))
	}
	return send, far
}

// byNeed numbers them by the first bin that needs a row, of all workers that it comes to
// by way of one. What another worker needs is told by one's own edges where the graph is
// symmetric.
func (c *cutting) byNeed(x *exchanging) (send, far []int, err error) {
	send, far = c.byOwner()
	for q := range c.part.Book.Parts {
		for i := c.sendPtr[q]; i < c.sendPtr[q+1]; i++ {
			if send[i] < earlyBins {
				continue
			}
			first := c.firstNeed(c.send[i], q)
			if first < 0 {
				return nil, nil, &graph.InputError{File: c.part.Dir, Field: "symmetric", Found: "edges without their way back",
					Want: "both, as the book says", Fix: "make the partition again with starling partition"}
			}
			send[i] = earlyBins + first
		}
	}
	if c.relay != nil {
		look := newLookup(c.site)
		far, err = look.tellNumbers(c.lists, send)
		for k, bytes := range look.sent {
			add(x.prepare, k, bytes)
		}
		return send, far, err
	}
	first := make([]int, len(far)) // own bin that needs a far row
	for v := c.src - 1; v >= 0; v-- {
		for _, u := range c.in.Neighbors(uint32(v)) {
			if int(u) >= c.src {
				first[int(u)-c.src] = binOf(c.bins.at, v)
			}
		}
	}
	for i := range far {
		if far[i] >= earlyBins {
			far[i] = earlyBins + first[i]
		}
	}
	return send, far, nil
}

// firstNeed is the first bin that needs an own row, of a worker or, where it passes rows
// on, of its server; -1 where the graph is not symmetric and none seems to.
func (c *cutting) firstNeed(v uint32, q int) int {
	p, book := c.part, c.part.Book
	first := -1
	for _, u := range p.In.Neighbors(v) {
		if int(u) < p.Core() {
			continue
		}
		at := p.Halo[int(u)-p.Core()]
		r := book.Owner(at)
		if r != q && (c.relay == nil || book.Server(r) != book.Server(q) || book.Server(q) == book.Server(p.Meta.Part)) {
			continue
		}
		if bin := binOf(c.theirs[r], int(at)-int(book.Offsets[r])); first < 0 || bin < first {
			first = bin
		}
	}
	return first
}

// tellNumbers tells receivers the numbers of rows that leave straight, and then those
// that rows are passed on to. It returns those of all far rows.
func (l *lookup) tellNumbers(b *lists, send []int) (far []int, err error) {
	tell := func(ptr []int64, number func(i int64) int) error {
		out := make([][]byte, l.end.Size())
		for q := range out {
			for i := ptr[q]; i < ptr[q+1]; i++ {
				out[q] = binary.LittleEndian.AppendUint32(out[q], uint32(number(i)))
			}
		}
		in, _, err := l.swap(wire.Topology, out, false)
		for _, bytes := range in {
			for _, n := range take[uint32](&reader{b: bytes}, len(bytes)/4) {
				far = append(far, int(n))
			}
		}
		return err
	}
	if err := tell(b.sendPtr, func(i int64) int { return send[i] }); err != nil {
		return nil, err
	}
	if err := tell(b.relay.sendPtr, func(i int64) int { return far[b.relay.send[i]] }); err != nil {
		return nil, err
	}
	if len(far) != len(b.far) {
		return nil, fmt.Errorf("other workers number %d rows for this one, which needs %d", len(far), len(b.far))
	}
	return far, nil
}

// boundsOf are the bounds of the bins of all workers.
func boundsOf(p *partition.Part, bound func(rows int) []int) [][]int {
	out := make([][]int, p.Book.Parts)
	for q := range out {
		out[q] = bound(int(p.Book.Size(q)))
	}
	return out
}
