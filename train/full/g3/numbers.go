package g3

import (
	"encoding/binary"
	"fmt"

	"starling/exchange"
	"starling/graph"
	"starling/wire"
)

// byOwner numbers the rows that leave directly, and all halo rows, by their owners' bins.
func (c *cutting) byOwner() (send, halo []int) {
	for _, v := range c.plan.Send {
		send = append(send, binOf(c.from, int(v)))
	}
	for _, v := range c.plan.Halo {
		q := c.w.Part.Book.Owner(v)
		halo = append(halo, binOf(c.theirs[q], int(v)-int(c.w.Part.Book.Offsets[q])))
	}
	return send, halo
}

// byNeed numbers them by the first bin that needs a row, of all workers that it comes to
// by way of one. What another worker needs is told by one's own edges where the graph is
// symmetric.
func (c *cutting) byNeed(prepare wire.Bytes) (send, halo []int, err error) {
	send, halo = c.byOwner()
	for q := range c.w.Part.Book.Parts {
		for i := c.plan.SendPtr[q]; i < c.plan.SendPtr[q+1]; i++ {
			if send[i] < earlyBins {
				continue
			}
			first := c.firstNeed(c.plan.Send[i], q)
			if first < 0 {
				return nil, nil, &graph.InputError{File: c.w.Part.Dir, Field: "symmetric",
					Found: "edges without their reverse",
					Want:  "both, as the book says", Fix: "make the partition again with starling partition"}
			}
			send[i] = earlyBins + first
		}
	}
	if c.plan.Relay != nil {
		setup := exchange.NewSetup(c.w)
		halo, err = tellNumbers(setup, c.plan, send)
		prepare.AddAll(setup.Sent, 1)
		return send, halo, err
	}
	first := make([]int, len(halo)) // own bin that needs a halo row
	for v := c.plan.Src - 1; v >= 0; v-- {
		for _, u := range c.plan.In.Neighbors(uint32(v)) {
			if int(u) >= c.plan.Src {
				first[int(u)-c.plan.Src] = binOf(c.to, v)
			}
		}
	}
	for i := range halo {
		if halo[i] >= earlyBins {
			halo[i] = earlyBins + first[i]
		}
	}
	return send, halo, nil
}

// firstNeed is the first bin that needs an own row, of a worker or, where it relays
// rows, of its server; -1 where the graph is not symmetric and none seems to.
func (c *cutting) firstNeed(v uint32, q int) int {
	p, book := c.w.Part, c.w.Part.Book
	first := -1
	for _, u := range p.In.Neighbors(v) {
		if int(u) < p.Core() {
			continue
		}
		at := p.Halo[int(u)-p.Core()]
		r := book.Owner(at)
		if r != q && (c.plan.Relay == nil || book.Server(r) != book.Server(q) ||
			book.Server(q) == book.Server(p.Meta.Part)) {
			continue
		}
		if bin := binOf(c.theirs[r], int(at)-int(book.Offsets[r])); first < 0 || bin < first {
			first = bin
		}
	}
	return first
}

// tellNumbers tells receivers the numbers of rows that leave directly, and then those
// that rows are relayed to. It returns those of all halo rows.
func tellNumbers(l *exchange.Setup, p *exchange.HaloPlan, send []int) (halo []int, err error) {
	tell := func(ptr []int64, number func(i int64) int) error {
		out := make([][]byte, l.W.End.Size())
		for q := range out {
			for i := ptr[q]; i < ptr[q+1]; i++ {
				out[q] = binary.LittleEndian.AppendUint32(out[q], uint32(number(i)))
			}
		}
		in, err := l.Swap(wire.Topology, out)
		for _, bytes := range in {
			for _, n := range exchange.Numbers(bytes) {
				halo = append(halo, int(n))
			}
		}
		return err
	}
	if err := tell(p.SendPtr, func(i int64) int { return send[i] }); err != nil {
		return nil, err
	}
	if err := tell(p.Relay.SendPtr, func(i int64) int { return halo[p.Relay.Send[i]] }); err != nil {
		return nil, err
	}
	if len(halo) != len(p.Halo) {
		return nil, fmt.Errorf("other workers number %d rows for this one, which needs %d", len(halo), len(p.Halo))
	}
	return halo, nil
}
