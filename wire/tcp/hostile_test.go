package tcp

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"starling/internal/testdeadline"
	"starling/wire"
)

// FuzzHandshake sends anything to a listener: without the token no peer is
// admitted, and a peer with the token only as a rank that it may be.
func FuzzHandshake(f *testing.F) {
	id := identity{rank: 0, size: 3, connections: 2, job: sha256.Sum256([]byte("job")), token: []byte("secret")}
	hand := id.handshake()
	sent := func(h *hello, rest []byte) []byte { return append(append([]byte("SWH\x03"), h.claim()...), rest...) }
	for _, h := range []hello{{rank: 1, size: 3, connections: 2, job: id.job},
		{rank: 65535, to: 1, size: 3, index: 255, wantsMemory: true, connections: 255}} {
		f.Add(sent(&h, make([]byte, 32+cookieSize)), true)
		f.Add(sent(&h, make([]byte, 32+proofSize)), false)
	}
	f.Add([]byte("SWH\x03short"), false)
	f.Fuzz(func(t *testing.T, said []byte, knows bool) {
		a, b := net.Pipe()
		defer b.Close()
		go func() {
			defer a.Close()
			if !knows || len(said) < helloSize {
				go io.Copy(io.Discard, a)
				a.Write(said)
				return
			}
			copy(said, "SWH\x03")
			copy(said[signedSize:], hand.cookie(said[:signedSize]))
			a.Write(said[:helloSize])
			if random, _, err := readReply(a); err == nil {
				a.Write(hand.proof("dialer", said[:helloSize], random))
			}
			io.Copy(io.Discard, a)
		}()
		d, err := hand.challenge(b, id.checkClaim, func(string) {})
		switch {
		case err != nil:
		case !knows:
			t.Error("an unauthenticated peer was admitted")
		default:
			if g := newCandidate(d); g.rank < 1 || g.rank > 2 || g.index > 1 || g.to != 0 {
				t.Errorf("%+v was admitted", g.hello)
			}
		}
	})
}

// FuzzReply lets what listens at a peer's address answer anything.
func FuzzReply(f *testing.F) {
	f.Add(append([]byte("SWR\x00"), make([]byte, replySize)...))
	f.Add(append([]byte("SWR\x01"), bytes.Repeat([]byte{255}, replySize)...))
	f.Fuzz(func(t *testing.T, said []byte) {
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			b.Write(said)
			b.Close()
		}()
		if body, text, err := readReply(a); err == nil && (len(body) != 32 || len(text) > maxReason) {
			t.Errorf("%d bytes and %q", len(body), text)
		}
	})
}

// What a peer says in another's name, or of a rank that there is not, ends the connection
// and names the peer.
func TestLies(t *testing.T) {
	for want, h := range map[string]wire.Header{
		"rank 0 lost rank 1: not a valid frame: from rank 2 to rank 0": {Frame: wire.FrameGoodbye, From: 2},
		"rank 0 lost rank 1: not a valid frame: from rank 1 to rank 2": {Frame: wire.FrameGoodbye, From: 1, To: 2},
		"rank 0 lost rank 1: not a valid frame: a failure of rank 3 of 3": {Frame: wire.FrameFailure, From: 1,
			Key: wire.Key{Step: 3}},
		"rank 0 lost rank 1: not a valid frame": {Frame: wire.FrameResponse, From: 1, Offered: true, Length: 40,
			Chunk: wire.OfferSize},
	} {
		opt := wire.DefaultOptions()
		opt.Linger = time.Millisecond
		a, z := net.Pipe()
		n, peer := open(0, 1, 3, opt, a)
		peer.run()
		go io.Copy(io.Discard, z)
		z.Write(frame(h, make([]byte, h.Chunk)))
		testdeadline.Receive(t, n.Done(), "the end of the endpoint")
		if err := n.Err(); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
		z.Close()
		n.Close()
	}
}
