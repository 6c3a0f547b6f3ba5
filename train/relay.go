package train

import (
	"encoding/binary"
	"slices"

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
	farSlots        *slots // of a part of another

	sendHolders, farHolders []int // who computes the rows
}

// relayLists are the parts of a relay that need no device.
type relayLists struct {
	send            []uint32
	sendPtr, farPtr []int64

	sendHolders, farHolders []int
}

// border is the second half of an exchange as a border of its own.
func (r *relay) border() *border {
	return &border{send: r.send, sendPtr: r.sendPtr, farPtr: r.farPtr, farSlots: r.farSlots, sendHolders: r.sendHolders, farHolders: r.farHolders}
}

func (m *exact) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	if b.relay == nil {
		return m.fetchStraight(t, b, into, src)
	}
	r, n := b.relay, b.straightRows()
	x := &passing{first: m.fetchStraight(t, b, into.Slice(0, n), src), relay: r, passed: make(chan struct{})}
	t.relayed = true
	x.second = m.exchange(t, into.Slice(n, into.Rows), m.dev.Scratch(src.Type(), len(r.rows), src.Cols))
	x.second.owned = append(x.second.owned, x.second.out)
	x.second.receive(r.farPtr)
	go x.passOn(x.first.inRoom(), x.second.outRoom())
	return x
}

// passing is an exchange whose straight rows are passed on when they have come.
type passing struct {
	first, second *exchange
	relay         *relay
	passed        chan struct{} // closed when they are
}

// passOn passes rows on, in the form they came in, beside what the worker computes
// meanwhile: others wait for them.
func (x *passing) passOn(from, to []byte) {
	defer close(x.passed)
	for _, p := range x.first.arriving {
		if <-p.Done(); p.Err() != nil {
			return // which the worker meets too
		}
	}
	if x.first.zeros != nil {
		x.passSparse()
		return
	}
	passRows(to, from, x.relay.rows)
	each := len(to) / max(len(x.relay.rows), 1)
	x.second.sendAs(x.relay.sendPtr, func(lo, hi int) []byte { return to[lo*each : hi*each] })
}

// passSparse passes on rows that came without their zeros.
func (x *passing) passSparse() {
	came := make([]rowAt, x.first.in.Rows)
	for i, p := range x.first.arriving {
		r := &x.first.packedIn.rows[i]
		if _, err := x.first.bitsIn(r.bytes[:p.Bytes()], r.hi-r.lo); err != nil {
			return // which the worker meets too
		}
		copy(came[r.lo:], x.first.rowsAt(r.lo, r.hi))
	}
	x.second.sendAs(x.relay.sendPtr, func(lo, hi int) []byte {
		return x.second.passSparse(lo, hi, func(k int) rowAt { return came[x.relay.rows[k]] })
	})
}

// passRows fills to with some rows of from.
func passRows(to, from []byte, rows []uint32) {
	each := len(to) / max(len(rows), 1)
	for i, row := range rows {
		copy(to[i*each:(i+1)*each], from[int(row)*each:])
	}
}

func (x *passing) wait() {
	x.first.wait()
	<-x.passed
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
	x := m.goHome(t, b, rows, dst)
	x.leave()
	return x
}

// goingHome is the way back of an exchange whose rows were passed on: what the other
// workers of the server have for them is added, and leaves together.
type goingHome struct {
	*exchange
	farPtr []int64
	inside *exchange
	left   bool
}

func (m *exact) goHome(t transfer, b *border, rows, dst tensor.Matrix) *goingHome {
	inside, n := t, b.straightRows()
	inside.relayed = true
	return &goingHome{exchange: m.takeBack(t, b, rows.Slice(0, n), dst), farPtr: b.farPtr,
		inside: m.giveBackStraight(inside, b.relay.border(), rows.Slice(n, rows.Rows), rows.Slice(0, n))}
}

// ready reports whether leave would wait for nobody.
func (x *goingHome) ready() bool { return allDone(x.inside.arriving) }

func (x *goingHome) leave() {
	if !x.left {
		x.left = true
		x.inside.wait()
		x.send(x.farPtr)
	}
}

func (x *goingHome) wait() {
	x.leave()
	x.exchange.wait()
}

func (x *goingHome) done() {
	x.inside.done()
	x.exchange.done()
}

func allDone(list []*wire.Pending) bool {
	for _, p := range list {
		select {
		case <-p.Done():
		default:
			return false
		}
	}
	return true
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
