package tcp

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
// token, so that an unauthenticated peer learns nothing to guess it from; the token
// itself is never sent. Both proofs cover both random numbers, so a recorded
// handshake cannot be replayed. All sizes are fixed. The cookie in the hello, which only a process
// with the token can make, lets the acceptor tell peers from a flood of connections before it
// answers, and so before it waits for a proof.
//
//	hello   dialer    "SWH" version u8 | rank u16 | to u16 | size u16 | index u8 | wants u8 |
//	                  connections u8 | zero [3] | SHA-256 of the job [32] | random [32] |
//	                  cookie [16]: the first bytes of HMAC-SHA256(token; "cookie", what is before it)
//	reply   acceptor  "SWR" verdict u8 | random [32] | length u16 | reason [250]
//	proof   dialer    HMAC-SHA256(token; "dialer", hello, random)
//	reply   acceptor  the same, with HMAC-SHA256(token; "acceptor", hello, random) and
//	                  the name of a socket for sharing memory, or none, in place of the random number and the reason
const (
	// helloVersion is the handshake's version; 3 has the cookie.
	helloVersion = 3
	helloSize    = claimSize + cookieSize
	claimSize    = 80
	cookieSize   = 16
	replySize    = 4 + 32 + 2 + maxReason
	proofSize    = sha256.Size
	maxReason    = 250
)

const (
	verdictGo    = 0
	verdictNever = 1 // a mistake that trying again does not mend
	verdictLater = 2
)

// hello is how a dialer introduces itself.
type hello struct {
	rank, to, size     int
	index, connections int // which of how many connections this is
	wantsMemory        bool
	job                [32]byte
	random             [32]byte
}

// put is the hello without its cookie.
func (h *hello) put() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, helloSize), "SWH"...)
	b = append(b, helloVersion)
	b = le.AppendUint16(b, uint16(h.rank))
	b = le.AppendUint16(b, uint16(h.to))
	b = le.AppendUint16(b, uint16(h.size))
	wants := byte(0)
	if h.wantsMemory {
		wants = 1
	}
	b = append(b, byte(h.index), wants, byte(h.connections), 0, 0, 0)
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

// Refusal is the error of a connection that was refused.
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

// authenticate is the dialer's side. It returns the acceptor's socket for sharing memory, if any.
func (id *identity) authenticate(conn net.Conn, to, index int, wantsMemory bool) (memorySocket string, err error) {
	h := hello{rank: id.rank, to: to, size: id.size, index: index, connections: id.connections,
		wantsMemory: wantsMemory, job: id.job}
	if _, err := rand.Read(h.random[:]); err != nil {
		return "", err
	}
	hello := h.put()
	hello = append(hello, id.cookie(hello)...)
	if _, err := conn.Write(hello); err != nil {
		return "", err
	}
	random, _, err := readReply(conn)
	if err != nil {
		return "", err
	}
	if _, err := conn.Write(id.proof("dialer", hello, random)); err != nil {
		return "", err
	}
	proof, memorySocket, err := readReply(conn)
	if err != nil {
		return "", err
	}
	if !hmac.Equal(proof, id.proof("acceptor", hello, random)) {
		return "", refuse("it does not know the job's token")
	}
	return memorySocket, nil
}

// candidate is a dialer that has authenticated, and waits to be admitted.
type candidate struct {
	hello
	conn  net.Conn
	proof []byte
}

// challenge is the acceptor's side, up to the dialer's proof. It calls promising as soon as the
// dialer has shown a cookie, or a certificate. A *Refusal has been sent to the dialer.
func (id *identity) challenge(conn net.Conn, promising func(cookie string)) (*candidate, error) {
	if secure, ok := conn.(interface{ Handshake() error }); ok {
		if err := secure.Handshake(); err != nil {
			return nil, err // it has not authenticated
		}
		promising("")
	}
	hello, err := readHello(conn)
	if err != nil {
		return nil, err
	}
	g := &candidate{conn: conn}
	g.parse(hello)
	if r := id.check(&g.hello); r != nil {
		return nil, sendRefusal(conn, r)
	}
	if len(id.token) > 0 { // without one, everybody can make a cookie
		if !hmac.Equal(hello[claimSize:], id.cookie(hello[:claimSize])) {
			return nil, sendRefusal(conn, errWrongToken)
		}
		promising(string(hello[claimSize:]))
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
	if !hmac.Equal(proof, id.proof("dialer", hello, random)) {
		return nil, sendRefusal(conn, errWrongToken)
	}
	g.proof = id.proof("acceptor", hello, random)
	return g, nil
}

var errWrongToken = refuse("wrong token; give every worker the same one")

// readHello reads a hello of this build's version.
func readHello(conn net.Conn) ([]byte, error) {
	hello := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, hello[:4]); err != nil {
		return nil, fmt.Errorf("it sent no hello: %w", err)
	}
	if string(hello[:3]) != "SWH" {
		return nil, fmt.Errorf("it does not speak Starling's protocol: it starts with %q", hello[:4])
	}
	if hello[3] != helloVersion {
		return nil, sendRefusal(conn, refuse("version %d of the protocol, this build speaks %d; run the same build "+
			"on every host", hello[3], helloVersion))
	}
	if _, err := io.ReadFull(conn, hello[4:]); err != nil {
		return nil, fmt.Errorf("its hello is incomplete: %w", err)
	}
	return hello, nil
}

// check returns what is wrong with a hello.
func (id *identity) check(h *hello) *Refusal {
	switch {
	case h.job != id.job:
		return refuse("another job's worker")
	case h.size != id.size:
		return refuse("its job has %d workers, this one has %d", h.size, id.size)
	case h.to != id.rank:
		return refuse("it dialled rank %d, this is rank %d", h.to, id.rank)
	case h.rank <= id.rank || h.rank >= id.size:
		return refuse("rank %d does not dial rank %d of %d", h.rank, id.rank, id.size)
	case h.connections != id.connections || h.index >= id.connections:
		return refuse("connection %d of %d, this worker uses %d", h.index, h.connections, id.connections)
	}
	return nil
}

// accept ends the handshake well.
func (g *candidate) accept(memorySocket string) error {
	return writeReply(g.conn, verdictGo, g.proof, memorySocket)
}

// sendRefusal sends a dialer the reason for its refusal.
func sendRefusal(conn net.Conn, r *Refusal) *Refusal {
	verdict := byte(verdictLater)
	if r.Final {
		verdict = verdictNever
	}
	writeReply(conn, verdict, nil, r.Reason) // whether or not it reads it
	return r
}

// cookie shows that the dialer knows the token, unless the same hello was sent before.
func (id *identity) cookie(claim []byte) []byte {
	return id.proof("cookie", claim, nil)[:cookieSize]
}

// proof that one side knows the token.
func (id *identity) proof(side string, hello, random []byte) []byte {
	mac := hmac.New(sha256.New, id.token)
	io.WriteString(mac, side)
	mac.Write(hello)
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
			err = &Refusal{Reason: "it closed the connection"}
		}
		return nil, "", err
	}
	n := int(binary.LittleEndian.Uint16(b[36:]))
	if string(b[:3]) != "SWR" || n > maxReason {
		return nil, "", refuse("the process that answers there is not a Starling worker")
	}
	text = string(b[38 : 38+n])
	if b[3] != verdictGo {
		return nil, "", &Refusal{Reason: text, Final: b[3] == verdictNever}
	}
	return b[4:36], text, nil
}
