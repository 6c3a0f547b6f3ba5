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
//	hello   dialer    protocol [3] version u8 | claim [44] | random [32] |
//	                  cookie [16]: the first bytes of HMAC-SHA256(token; "cookie", what is before it)
//	reply   acceptor  "SWR" verdict u8 | random [32] | length u16 | reason [250]
//	proof   dialer    HMAC-SHA256(token; "dialer", hello, random)
//	reply   acceptor  the same, with HMAC-SHA256(token; "acceptor", hello, random) and
//	                  an answer in place of the random number and the reason
const (
	// ClaimSize is what a dialer says of itself.
	ClaimSize  = 44
	signedSize = 4 + ClaimSize + 32
	helloSize  = signedSize + cookieSize
	cookieSize = 16
	replySize  = 4 + 32 + 2 + maxReason
	proofSize  = sha256.Size
	maxReason  = 250
)

const (
	verdictGo    = 0
	verdictNever = 1 // a mistake that trying again does not mend
	verdictLater = 2
)

// Handshake is how both sides of a connection authenticate, for one protocol. Workers have one; the paths of a
// connection between two of them have another, with claims of their own.
type Handshake struct {
	Token    []byte
	Protocol string // three letters
	Version  byte   // of the hello
}

// Introduced is a dialer that has authenticated, and waits to be accepted.
type Introduced struct {
	Conn  net.Conn
	Claim []byte
	proof []byte
}

// Accept ends the handshake well, with an answer of at most 250 bytes.
func (d *Introduced) Accept(answer string) error {
	return writeReply(d.Conn, verdictGo, d.proof, answer)
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

// Introduce is the dialer's side. It returns the acceptor's answer.
func (h *Handshake) Introduce(conn net.Conn, claim []byte) (answer string, err error) {
	hello := append(make([]byte, 0, helloSize), h.Protocol...)
	hello = append(append(hello, h.Version), claim[:ClaimSize]...)
	hello = hello[:signedSize]
	if _, err := rand.Read(hello[4+ClaimSize:]); err != nil {
		return "", err
	}
	hello = append(hello, h.cookie(hello)...)
	if _, err := conn.Write(hello); err != nil {
		return "", err
	}
	random, _, err := readReply(conn)
	if err != nil {
		return "", err
	}
	if _, err := conn.Write(h.proof("dialer", hello, random)); err != nil {
		return "", err
	}
	proof, answer, err := readReply(conn)
	if err != nil {
		return "", err
	}
	if !hmac.Equal(proof, h.proof("acceptor", hello, random)) {
		return "", refuse("it does not know the job's token")
	}
	return answer, nil
}

// challenge is the acceptor's side, up to the dialer's proof. It calls promising as soon as the
// dialer has shown a cookie, or a certificate. A *Refusal has been sent to the dialer.
func (h *Handshake) challenge(conn net.Conn, check func(claim []byte) *Refusal, promising func(cookie string)) (
	*Introduced, error) {
	if secure, ok := conn.(interface{ Handshake() error }); ok {
		if err := secure.Handshake(); err != nil {
			return nil, err // it has not authenticated
		}
		promising("")
	}
	hello, err := h.readHello(conn)
	if err != nil {
		return nil, err
	}
	claim := hello[4 : 4+ClaimSize]
	if r := check(claim); r != nil {
		return nil, sendRefusal(conn, r)
	}
	if len(h.Token) > 0 { // without one, everybody can make a cookie
		if !hmac.Equal(hello[signedSize:], h.cookie(hello[:signedSize])) {
			return nil, sendRefusal(conn, errWrongToken)
		}
		promising(string(hello[signedSize:]))
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
	if !hmac.Equal(proof, h.proof("dialer", hello, random)) {
		return nil, sendRefusal(conn, errWrongToken)
	}
	return &Introduced{Conn: conn, Claim: claim, proof: h.proof("acceptor", hello, random)}, nil
}

var errWrongToken = refuse("wrong token; give every worker the same one")

// readHello reads a hello of this build's version.
func (h *Handshake) readHello(conn net.Conn) ([]byte, error) {
	hello := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, hello[:4]); err != nil {
		return nil, fmt.Errorf("it sent no hello: %w", err)
	}
	if string(hello[:3]) != h.Protocol {
		return nil, fmt.Errorf("it does not speak Starling's protocol: it starts with %q", hello[:4])
	}
	if hello[3] != h.Version {
		return nil, sendRefusal(conn, refuse("version %d of the protocol, this build speaks %d; run the same build "+
			"on every host", hello[3], h.Version))
	}
	if _, err := io.ReadFull(conn, hello[4:]); err != nil {
		return nil, fmt.Errorf("its hello is incomplete: %w", err)
	}
	return hello, nil
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
func (h *Handshake) cookie(signed []byte) []byte {
	return h.proof("cookie", signed, nil)[:cookieSize]
}

// proof that one side knows the token.
func (h *Handshake) proof(side string, hello, random []byte) []byte {
	mac := hmac.New(sha256.New, h.Token)
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
