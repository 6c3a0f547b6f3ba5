package tcp

import (
	"encoding/binary"
	"net"

	"starling/event"
)

// The claim of a worker:
//
//	rank u16 | to u16 | size u16 | index u8 | wants u8 | connections u8 | zero [3] | SHA-256 of the job [32]
const (
	helloProtocol = "SWH"
	helloVersion  = 3 // of the handshake; it has the cookie
)

// hello is how a worker introduces itself.
type hello struct {
	rank, to, size     int
	index, connections int // which of how many connections this is
	wantsMemory        bool
	job                [32]byte
}

// claim is the hello as it is sent.
func (h *hello) claim() []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(make([]byte, 0, ClaimSize), uint16(h.rank))
	b = le.AppendUint16(b, uint16(h.to))
	b = le.AppendUint16(b, uint16(h.size))
	wants := byte(0)
	if h.wantsMemory {
		wants = 1
	}
	b = append(b, byte(h.index), wants, byte(h.connections), 0, 0, 0)
	return append(b, h.job[:]...)
}

func (h *hello) parse(claim []byte) {
	le := binary.LittleEndian
	h.rank, h.to, h.size = int(le.Uint16(claim)), int(le.Uint16(claim[2:])), int(le.Uint16(claim[4:]))
	h.index, h.wantsMemory, h.connections = int(claim[6]), claim[7] == 1, int(claim[8])
	copy(h.job[:], claim[12:])
}

// identity is what a rank knows of itself and its job.
type identity struct {
	rank, size, connections int
	job                     [32]byte
	token                   []byte
}

func (id *identity) handshake() *Handshake {
	return &Handshake{Token: id.token, Protocol: helloProtocol, Version: helloVersion}
}

// authenticate is the dialer's side. It returns the acceptor's socket for sharing memory, if any.
func (id *identity) authenticate(conn net.Conn, to, index int, wantsMemory bool) (memorySocket string, err error) {
	h := hello{rank: id.rank, to: to, size: id.size, index: index, connections: id.connections,
		wantsMemory: wantsMemory, job: id.job}
	return id.handshake().Introduce(conn, h.claim())
}

// candidate is a worker that has authenticated, and waits to be admitted.
type candidate struct {
	hello
	*Introduced
}

func newCandidate(d *Introduced) *candidate {
	c := &candidate{Introduced: d}
	c.parse(d.Claim)
	return c
}

// checkClaim returns what is wrong with a worker's claim.
func (id *identity) checkClaim(claim []byte) *Refusal {
	var h hello
	h.parse(claim)
	return id.check(&h)
}

// check returns what is wrong with a hello.
func (id *identity) check(h *hello) *Refusal {
	switch {
	case h.job != id.job:
		return refuse("another job's worker")
	case h.size != id.size:
		return refuse("its job has %s, this one has %d", event.Tally(h.size, "worker"), id.size)
	case h.to != id.rank:
		return refuse("it dialled rank %d, this is rank %d", h.to, id.rank)
	case h.rank <= id.rank || h.rank >= id.size:
		return refuse("rank %d does not dial rank %d of %d", h.rank, id.rank, id.size)
	case h.connections != id.connections || h.index >= id.connections:
		return refuse("connection %d of %d, this worker uses %d", h.index, h.connections, id.connections)
	}
	return nil
}
