package train

import (
	"encoding/binary"
	"slices"
	"time"

	"starling/tensor"
	"starling/wire"
)

// A row that several workers of a server need from another server travels between the
// two once: to one of those workers, which passes it on. The far rows of a layer are
// then straight ones, by the worker that computes them, and relayed ones, by the
// worker that passes them on:
//
//	z_far = [ z_straight ; z_relayed ]        z_relayed: rows of others' z_straight
//
// Backwards the gradients of relayed rows go to the worker that passed them on, which
// adds them to its own and takes the sum home. Each half is an exchange as any other.
type relay struct {
	rows            []uint32     // straight rows that are passed on, by peer
	send            tensor.Index // the same
	sendPtr, farPtr []int64
}

// relayLists are the parts of a relay that need no device.
type relayLists struct {
	send            []uint32
	sendPtr, farPtr []int64
}

// border is the second half of an exchange as a border of its own.
func (r *relay) border() *border {
	return &border{send: r.send, sendPtr: r.sendPtr, farPtr: r.farPtr}
}

func (m *exact) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	if b.relay == nil {
		return m.fetchStraight(t, b, into, src)
	}
	r, n := b.relay, b.straightRows()
	x := &passing{first: m.fetchStraight(t, b, into.Slice(0, n), src), relay: r}
	t.relayed = true
	x.second = &exchange{m: m, t: t, in: into.Slice(n, into.Rows), out: m.dev.Scratch(src.Type(), len(r.rows), src.Cols), start: time.Now()}
	x.second.owned = []tensor.Matrix{x.second.out}
	x.second.receive(r.farPtr)
	if m.packed(t, src.Type(), src.Cols, m.training) == tensor.Unpacked {
		x.passed = make(chan struct{})
		go x.passOn()
	}
	return x
}

// passing is an exchange whose straight rows are passed on when they have come.
type passing struct {
	first, second *exchange
	relay         *relay
	passed        chan struct{} // closed when they are; nil: that is left to wait
}

// passOn passes rows on beside what the worker computes meanwhile: others wait for them.
func (x *passing) passOn() {
	defer close(x.passed)
	for _, p := range x.first.arriving {
		if <-p.Done(); p.Err() != nil {
			return // which the worker meets too
		}
	}
	from, to := x.first.m.dev.Bytes(x.first.in), x.first.m.dev.Bytes(x.second.out)
	if len(to) > 0 {
		each := len(to) / len(x.relay.rows)
		for i, row := range x.relay.rows {
			copy(to[i*each:(i+1)*each], from[int(row)*each:])
		}
	}
	x.second.send(x.relay.sendPtr)
}

func (x *passing) wait() {
	x.first.wait()
	if x.passed != nil {
		<-x.passed
	} else { // rows travel packed, and each half rounds for itself
		x.first.m.dev.GatherRows(x.second.out, x.first.in, x.relay.send)
		x.second.send(x.relay.sendPtr)
	}
	x.second.wait()
}

func (x *passing) done() {
	x.first.done()
	x.second.done()
}

// giveBack waits for the other workers of the server here, not later: what is between
// this and wait is then computed while rows are between servers.
func (m *exact) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	if b.relay == nil {
		return m.giveBackStraight(t, b, rows, dst)
	}
	inside, n := t, b.straightRows()
	inside.relayed = true
	first := m.giveBackStraight(inside, b.relay.border(), rows.Slice(n, rows.Rows), rows.Slice(0, n))
	first.wait()
	return &goingHome{m.giveBackStraight(t, b, rows.Slice(0, n), dst), first}
}

// goingHome is the way back of an exchange whose rows were passed on.
type goingHome struct {
	*exchange
	inside *exchange
}

func (x *goingHome) done() {
	x.inside.done()
	x.exchange.done()
}

// farRow is a row that a layer needs from elsewhere.
type farRow struct {
	v, place uint32 // the vertex, and its place after the rows that are here
	holder   int    // who computes it
	via      int    // who passes it on; -1: it comes straight
}

// from is the worker that sends the row here.
func (r *farRow) from() int {
	if r.via >= 0 {
		return r.via
	}
	return r.holder
}

// passOn decides which of a server's workers, first to last-1, pass rows on, and returns
// the vertices that this one has to pass on, by peer.
func (l *lookup) passOn(first, last int, rows []farRow) (pass [][]uint32, err error) {
	pass = make([][]uint32, l.end.Size())
	if last-first < 2 {
		return pass, nil
	}
	outside := func(q int) bool { return q < first || q >= last }
	var mine []byte
	for i := range rows {
		if outside(rows[i].holder) {
			mine = binary.LittleEndian.AppendUint32(mine, rows[i].v)
		}
	}
	lists, err := l.toServer(first, last, mine)
	if err != nil {
		return nil, err
	}
	needed := map[uint32][]int{} // by which workers, ascending
	for q, b := range lists {
		for _, v := range take[uint32](&reader{b: b}, len(b)/4) {
			needed[v] = append(needed[v], q)
		}
	}
	me := l.end.Rank()
	for i := range rows {
		if r := &rows[i]; outside(r.holder) {
			if r.via = passer(r.v, needed[r.v]); r.via == me {
				r.via = -1
			}
		}
	}
	for v, workers := range needed {
		if passer(v, workers) != me {
			continue
		}
		for _, q := range workers {
			if q != me {
				pass[q] = append(pass[q], v)
			}
		}
	}
	for _, list := range pass {
		slices.Sort(list)
	}
	return pass, nil
}

// passer is one of those that need a vertex, each of them for about as many.
func passer(v uint32, workers []int) int { return workers[int(v)%len(workers)] }

// toServer gives the same bytes to workers first to last-1, itself among them.
func (l *lookup) toServer(first, last int, b []byte) ([][]byte, error) {
	out := make([][]byte, l.end.Size())
	for q := first; q < last; q++ {
		out[q] = b
	}
	in, _, err := l.swap(wire.Topology, out, false)
	return in, err
}
