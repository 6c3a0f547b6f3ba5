package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// The handshake opens every connection. The dialer proves first that it knows the
// token, so that a stranger who dials learns nothing to guess it from; the token
// itself never travels. Both proofs cover both random numbers, so an old
// handshake is of no use to anybody. All sizes are fixed.
//
//	hello   dialer    "SWH" version u8 | rank u16 | to u16 | size u16 | index u8 | wants u8 |
//	                  connections u8 | zero [3] | SHA-256 of the job [32] | random [32]
//	reply   acceptor  "SWR" verdict u8 | random [32] | length u16 | reason [250]
//	proof   dialer    HMAC-SHA256(token; "dialer", hello, random)
//	reply   acceptor  the same, with HMAC-SHA256(token; "acceptor", hello, random) and an
//	                  invitation (to share memory) in place of the random number and the reason
const (
	helloSize = 80
	replySize = 4 + 32 + 2 + maxReason
	proofSize = sha256.Size
	maxReason = 250
)

const (
	verdictGo    = 0
	verdictNever = 1 // a mistake that trying again does not mend
	verdictLater = 2
)

// hello is what a dialer says of itself.
type hello struct {
	rank, to, size     int
	index, connections int // which of how many connections this is
	wantsMemory        bool
	job                [32]byte
	random             [32]byte
}

func (h *hello) put() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, helloSize), "SWH"...)
	b = append(b, version)
	b = le.AppendUint16(b, uint16(h.rank))
	b = le.AppendUint16(b, uint16(h.to))
	b = le.AppendUint16(b, uint16(h.size))
	b = append(b, byte(h.index), flag(h.wantsMemory), byte(h.connections), 0, 0, 0)
	b = append(b, h.job[:]...)
	return append(b, h.random[:]...)
}

func (h *hello) parse(b []byte) {
	le := binary.LittleEndian
	h.rank, h.to, h.size = int(le.Uint16(b[4:])), int(le.Uint16(b[6:])), int(le.Uint16(b[8:]))
	h.index, h.wantsMemory, h.connections = int(b[10]), b[11] == 1, int(b[12])
	copy(h.job[:], b[16:])
	copy(h.random[:], b[48:])
}

// Refusal is the error of a connection that was not let in.
type Refusal struct {
	Reason string
	Final  bool // trying again would not help
}

func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...), Final: true}
}

// identity is what a rank knows of itself and its job.
type identity struct {
	rank, size, connections int
	job                     [32]byte
	token                   []byte
}

// greet is the dialer's side. It returns the acceptor's invitation.
func (id *identity) greet(conn net.Conn, to, index int, wantsMemory bool) (invitation string, err error) {
	h := hello{rank: id.rank, to: to, size: id.size, index: index, connections: id.connections, wantsMemory: wantsMemory, job: id.job}
	if _, err := rand.Read(h.random[:]); err != nil {
		return "", err
	}
	said := h.put()
	if _, err := conn.Write(said); err != nil {
		return "", err
	}
	random, _, err := readReply(conn)
	if err != nil {
		return "", err
	}
	if _, err := conn.Write(id.proof("dialer", said, random)); err != nil {
		return "", err
	}
	proof, invitation, err := readReply(conn)
	if err != nil {
		return "", err
	}
	if !hmac.Equal(proof, id.proof("acceptor", said, random)) {
		return "", refuse("it does not know the job's token")
	}
	return invitation, nil
}

// guest is a dialer that has proved who it is, and waits to be told to come in.
type guest struct {
	hello
	conn  net.Conn
	proof []byte
}

// challenge is the acceptor's side, up to the dialer's proof. A *Refusal has been
// said to the dialer.
func (id *identity) challenge(conn net.Conn) (*guest, error) {
	if secure, ok := conn.(interface{ Handshake() error }); ok {
		if err := secure.Handshake(); err != nil {
			return nil, err // who it is was not proved
		}
	}
	said := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, said[:4]); err != nil {
		return nil, fmt.Errorf("it said nothing: %w", err)
	}
	if string(said[:3]) != "SWH" {
		return nil, fmt.Errorf("it does not speak our language: it starts with %q", said[:4])
	}
	if said[3] != version {
		return nil, turnAway(conn, refuse("version %d of the protocol, this build speaks %d; run the same build on every host", said[3], version))
	}
	if _, err := io.ReadFull(conn, said[4:]); err != nil {
		return nil, fmt.Errorf("its hello is cut off: %w", err)
	}
	g := &guest{conn: conn}
	g.parse(said)
	if r := id.judge(&g.hello); r != nil {
		return nil, turnAway(conn, r)
	}
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	if err := writeReply(conn, verdictGo, random, ""); err != nil {
		return nil, err
	}
	proof := make([]byte, proofSize)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return nil, fmt.Errorf("it gave no proof that it knows the job's token: %w", err)
	}
	if !hmac.Equal(proof, id.proof("dialer", said, random)) {
		return nil, turnAway(conn, refuse("wrong token; give every worker the same one"))
	}
	g.proof = id.proof("acceptor", said, random)
	return g, nil
}

// judge says what is wrong with a hello.
func (id *identity) judge(h *hello) *Refusal {
	switch {
	case h.job != id.job:
		return refuse("another job's worker")
	case h.size != id.size:
		return refuse("it counts %d workers, there are %d", h.size, id.size)
	case h.to != id.rank:
		return refuse("it looks for rank %d, this is rank %d", h.to, id.rank)
	case h.rank <= id.rank || h.rank >= id.size:
		return refuse("rank %d does not dial rank %d of %d", h.rank, id.rank, id.size)
	case h.connections != id.connections || h.index >= id.connections:
		return refuse("connection %d of %d, this worker uses %d", h.index, h.connections, id.connections)
	}
	return nil
}

// letIn ends the handshake well.
func (g *guest) letIn(invitation string) error {
	return writeReply(g.conn, verdictGo, g.proof, invitation)
}

// turnAway tells a dialer why it is not let in.
func turnAway(conn net.Conn, r *Refusal) *Refusal {
	verdict := byte(verdictLater)
	if r.Final {
		verdict = verdictNever
	}
	writeReply(conn, verdict, nil, r.Reason) // whether or not it listens
	return r
}

// proof that one side knows the token.
func (id *identity) proof(side string, said, random []byte) []byte {
	mac := hmac.New(sha256.New, id.token)
	io.WriteString(mac, side)
	mac.Write(said)
	mac.Write(random)
	return mac.Sum(nil)
}

func writeReply(conn net.Conn, verdict byte, body []byte, text string) error {
	b := make([]byte, replySize)
	copy(b, "SWR")
	b[3] = verdict
	copy(b[4:36], body)
	n := copy(b[38:], text)
	binary.LittleEndian.PutUint16(b[36:], uint16(n))
	_, err := conn.Write(b)
	return err
}

func readReply(conn net.Conn) (body []byte, text string, err error) {
	b := make([]byte, replySize)
	if _, err := io.ReadFull(conn, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = &Refusal{Reason: "it hung up"}
		}
		return nil, "", err
	}
	n := int(binary.LittleEndian.Uint16(b[36:]))
	if string(b[:3]) != "SWR" || n > maxReason {
		return nil, "", refuse("what answers there is no worker of ours")
	}
	text = string(b[38 : 38+n])
	if b[3] != verdictGo {
		return nil, "", &Refusal{Reason: text, Final: b[3] == verdictNever}
	}
	return b[4:36], text, nil
}
