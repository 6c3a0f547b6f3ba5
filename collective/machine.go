package collective

// machine runs a program. It is asked for its next action until it waits or has
// ended; when a message is done, finish is called, and next again.
type machine struct {
	program
	bufs [][]byte
	sum  func(dst, src []byte)

	at   int    // the next instruction
	done []bool // messages that have left or arrived
	last int32  // at the end of the program: messages before this are done
}

// load makes the machine ready to run its program.
func (m *machine) load() {
	m.at, m.last = 0, 0
	if cap(m.done) < int(m.ops) {
		m.done = make([]bool, m.ops)
	}
	m.done = m.done[:m.ops]
	clear(m.done)
}

// next goes on as far as it can and returns what is to be done outside: send, recv,
// recvAdd, wait or end. A wait is repeated until its message is done.
func (m *machine) next() instruction {
	for m.at < len(m.code) {
		in := &m.code[m.at]
		if in.verb == wait && !m.done[in.op] {
			return *in
		}
		m.at++
		switch in.verb {
		case send, recv, recvAdd:
			return *in
		case add:
			m.sum(m.bytes(in.a), m.bytes(in.b))
		case move:
			copyBytes(m.bytes(in.a), m.bytes(in.b))
		}
	}
	for ; m.last < m.ops; m.last++ {
		if !m.done[m.last] {
			return instruction{verb: wait, op: m.last}
		}
	}
	return instruction{verb: end}
}

// finish records that a message has left or arrived.
func (m *machine) finish(op int32) { m.done[op] = true }

// onlyWaits reports whether nothing is left but to wait.
func (m *machine) onlyWaits() bool { return m.at == len(m.code) }

func (m *machine) bytes(s span) []byte { return m.bufs[s.buf][s.lo:s.hi] }
