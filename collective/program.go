package collective

// verb is what an instruction does.
type verb uint8

const (
	send    verb = iota // span a to peer, as message op
	recv                // span a from peer, as message op
	recvAdd             // a += span from peer, as message op
	wait                // until message op has left or arrived
	add                 // a += b, number by number
	move                // a = b
	end                 // only an answer of a machine: all is done
)

// span is a piece of a buffer, in bytes.
type span struct {
	buf    int32
	lo, hi int
}

func (s span) len() int { return s.hi - s.lo }

// Buffers of the programs that reduce.
const (
	data = iota
	scratch
)

// instruction is one line of a program.
type instruction struct {
	verb verb
	peer int32
	op   int32  // the message, counted over all of this program
	nth  uint32 // the message, counted among those to, or from, this peer
	a, b span
}

// none is the message that an empty span would have made: it is not sent.
const none = -1

// program is what one rank does in one collective. The waits at its end, for
// whatever is still under way, are understood.
type program struct {
	rank, n int
	code    []instruction
	ops     int32 // messages so far
	need    int   // bytes of scratch

	sent, received []uint32 // messages so far, by peer
	out, in, back  []int32  // lists of messages, for algorithms to use
	left           []span   // what the messages in out hold, likewise
	cuts           []int    // bounds of segments, likewise
	trees          []gathering
}

// reset empties the program and keeps its memory.
func (p *program) reset(rank, n int) {
	p.rank, p.n = rank, n
	p.code, p.ops, p.need = p.code[:0], 0, 0
	p.sent = zeroed(p.sent, n)
	p.received = zeroed(p.received, n)
	p.out, p.in, p.back = p.out[:0], p.in[:0], p.back[:0]
	p.left, p.cuts, p.trees = p.left[:0], p.cuts[:0], p.trees[:0]
}

func zeroed(s []uint32, n int) []uint32 {
	if cap(s) < n {
		return make([]uint32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// send a span to a peer, unless it is empty.
func (p *program) send(to int, s span) int32 {
	if s.len() == 0 {
		return none
	}
	return p.signal(to, s)
}

// signal sends a span to a peer, also an empty one.
func (p *program) signal(to int, s span) int32 {
	p.code = append(p.code, instruction{verb: send, peer: int32(to), op: p.ops, nth: p.sent[to], a: s})
	p.sent[to]++
	p.ops++
	return p.ops - 1
}

// recv receives a span from a peer, unless it is empty.
func (p *program) recv(from int, s span) int32 {
	if s.len() == 0 {
		return none
	}
	return p.await(from, s)
}

// recvAdd adds a span from a peer to what is there, unless it is empty.
func (p *program) recvAdd(from int, s span) int32 {
	if s.len() == 0 {
		return none
	}
	op := p.await(from, s)
	p.code[len(p.code)-1].verb = recvAdd
	return op
}

// await receives a span from a peer, also an empty one.
func (p *program) await(from int, s span) int32 {
	p.code = append(p.code, instruction{verb: recv, peer: int32(from), op: p.ops, nth: p.received[from], a: s})
	p.received[from]++
	p.ops++
	return p.ops - 1
}

func (p *program) wait(op int32) {
	if op != none {
		p.code = append(p.code, instruction{verb: wait, op: op})
	}
}

// add one span to another, unless they are empty.
func (p *program) add(to, from span) {
	if to.len() > 0 && from.len() > 0 {
		p.code = append(p.code, instruction{verb: add, a: to, b: from})
	}
}

func (p *program) move(to, from span) {
	if to.len() > 0 {
		p.code = append(p.code, instruction{verb: move, a: to, b: from})
	}
}

// mod is a rank counted around the ring.
func (p *program) mod(r int) int { return ((r % p.n) + p.n) % p.n }
