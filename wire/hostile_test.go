package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"starling/internal/testdeadline"
)

// FuzzHandshake sends anything to a listener: without the token no peer is
// admitted, and a peer with the token only as a rank that it may be.
func FuzzHandshake(f *testing.F) {
	id := identity{rank: 0, size: 3, connections: 2, job: sha256.Sum256([]byte("job")), token: []byte("secret")}
	for _, h := range []hello{{rank: 1, size: 3, connections: 2, job: id.job},
		{rank: 65535, to: 1, size: 3, index: 255, wantsMemory: true, connections: 255}} {
		f.Add(append(h.put(), make([]byte, cookieSize)...), true)
		f.Add(append(h.put(), make([]byte, proofSize)...), false)
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
			copy(said[claimSize:], id.cookie(said[:claimSize]))
			a.Write(said[:helloSize])
			if random, _, err := readReply(a); err == nil {
				a.Write(id.proof("dialer", said[:helloSize], random))
			}
			io.Copy(io.Discard, a)
		}()
		g, err := id.challenge(b, func(string) {})
		switch {
		case err != nil:
		case !knows:
			t.Error("an unauthenticated peer was admitted")
		case g.rank < 1 || g.rank > 2 || g.index > 1 || g.to != 0:
			t.Errorf("%+v was admitted", g.hello)
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
	for want, h := range map[string]header{
		"rank 0 lost rank 1: not a valid frame: from rank 2 to rank 0": {frame: frameGoodbye, from: 2},
		"rank 0 lost rank 1: not a valid frame: from rank 1 to rank 2": {frame: frameGoodbye, from: 1, to: 2},
		"rank 0 lost rank 1: not a valid frame: a failure of rank 3 of 3": {frame: frameFailure, from: 1,
			key: Key{Step: 3}},
	} {
		opt := DefaultOptions()
		opt.Linger = time.Millisecond
		n := newEndpoint(0, []Link{SameProcess, SameHost, SameHost}, opt)
		a, z := net.Pipe()
		peer := newTCPPeer(n, 1, []net.Conn{a})
		n.transport = over(nil, peer, nil)
		peer.start()
		go io.Copy(io.Discard, z)
		z.Write(frame(h, nil))
		testdeadline.Receive(t, n.Done(), "the end of the endpoint")
		if err := n.Err(); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
		z.Close()
		n.Close()
	}
}

// records are frames as a ring holds them, with as much made right as a fuzzer would
// never guess.
func records(said []byte) []byte {
	out := bytes.Clone(said)
	for b := out; len(b) >= recordHead; {
		copy(b[8:12], []byte{1, 0, 0, 0})
		seal(b)
		var h header
		if h.parse(b) != nil {
			break
		}
		b = b[min(uint64(len(b)), recordSize(h.chunk)):]
	}
	return out
}

// record is a frame as a fuzzer may begin with it.
func record(h header, chunk []byte) []byte {
	h.from, h.to = 1, 0
	b := make([]byte, recordSize(len(chunk)))
	h.put(b)
	copy(b[recordHead:], chunk)
	return b
}

// FuzzMemory lets the process that shares memory write anything into it: messages,
// offers of memory that it has or has not, answers to what was never offered.
func FuzzMemory(f *testing.F) {
	here := make([]byte, offerSize)
	binary.LittleEndian.PutUint64(here, 1<<20)
	f.Add(record(header{kind: Feature, key: key(0), length: 100, chunk: 100, number: 1}, make([]byte, 100)),
		uint16(192))
	f.Add(record(header{offered: true, kind: Feature, key: key(0), length: 100, chunk: offerSize}, here), uint16(128))
	f.Add(record(header{offered: true, kind: Feature, key: key(5), length: maxMessage, chunk: offerSize}, here),
		uint16(128))
	f.Add(record(header{frame: frameTaken, number: 1}, nil), uint16(64))
	f.Add(record(header{frame: frameTaken, number: 7}, nil), uint16(64))
	f.Add(record(header{frame: frameGoodbye}, nil), uint16(64))
	var calls []byte
	for _, c := range callFrames {
		h := c.h
		h.length, h.chunk = int64(len(c.chunk)), len(c.chunk)
		calls = append(calls, record(h, c.chunk)...)
	}
	f.Add(calls, uint16(len(calls)))
	f.Add([]byte{1}, uint16(65535))
	f.Fuzz(func(t *testing.T, said []byte, head uint16) {
		opt := DefaultOptions()
		opt.UnexpectedLimit, opt.Linger, opt.Timeout = 1<<16, time.Millisecond, 10*time.Millisecond
		n := newEndpoint(0, []Link{SameProcess, SameHost}, opt)
		h, err := newHub(n)
		if err != nil {
			t.Skip(err)
		}
		bell, err := newBell()
		if err != nil {
			t.Fatal(err)
		}
		defer bell.close()
		a, z := net.Pipe()
		go io.Copy(io.Discard, z)
		defer z.Close()
		theirs, in := ringPair(t, 1<<12)
		out, _ := ringPair(t, 1<<12)
		copy(theirs.data, records(said))
		theirs.head.Store(uint64(head))
		p := h.add(newTCPPeer(n, 1, []net.Conn{a}), &memory{in: in, out: out, bell: bell.ringer, pid: os.Getpid(),
			lends: true})
		n.transport = over(nil, p)
		n.Recv(1, key(0), Feature, make([]byte, 100))
		n.Send(1, key(1), Feature, make([]byte, offerFrom)) // so that there is something to answer
		exposeCalls(n)
		p.start()
		for range 3 {
			p.take()
			h.takeEarly()
		}
		n.Close()
		h.close()
		if held := n.inbox.mu.unexpected[1]; held > opt.UnexpectedLimit {
			t.Errorf("%d bytes were taken", held)
		}
	})
}

// FuzzMPI lets a peer send any frame over MPI.
func FuzzMPI(f *testing.F) {
	text := []byte(`{"Version":2,"Turn":0,"Job":"job"}`)
	f.Add(record(header{frame: frameAlive, length: int64(len(text)), chunk: len(text)}, text), true)
	f.Add(record(header{frame: frameAlive, length: 2, chunk: 2}, []byte("{}")), false)
	f.Add(record(header{kind: Feature, key: key(0), length: 100, chunk: 100}, make([]byte, 100)), true)
	f.Add(record(header{kind: Feature, key: key(0), length: maxMessage, chunk: 100, sum: 3}, make([]byte, 100)), true)
	f.Add(record(header{kind: Feature, key: key(0), length: 1 << 15, chunk: 100, sum: 1 << 20}, make([]byte, 100)),
		true)
	f.Add(record(header{frame: frameFailure, length: 3, chunk: 3, key: Key{Step: 1 << 31}}, []byte("why")), true)
	f.Add(record(header{frame: frameGoodbye}, nil), true)
	var calls []byte
	for _, c := range callFrames {
		h := c.h
		h.length, h.chunk = int64(len(c.chunk)), len(c.chunk)
		calls = append(calls, record(h, c.chunk)...)
	}
	f.Add(calls, true)
	f.Fuzz(func(t *testing.T, said []byte, greeted bool) {
		opt := DefaultOptions()
		opt.UnexpectedLimit, opt.Linger, opt.Timeout = 1<<16, time.Millisecond, 10*time.Millisecond
		net := newFakeMPI(2)
		w := &mpiWorld{mpi: net.ranks[0], size: 2}
		h := newMPIHub(w, &Config{Options: opt, Size: 2, Job: "job", Addrs: make([]string, 2)})
		p := h.peers[0]
		said = records(said)
		exposeCalls(h.endpoint)
		w.Lock()
		p.greeted = greeted
		for len(said) >= headerSize && !p.held && !p.over {
			clear(p.frame)
			n := copy(p.frame, said[:headerSize]) // without what a ring puts between
			copy(p.frame[n:], said[min(len(said), recordHead):])
			if !p.take() {
				break
			}
			said = said[min(len(said), int(recordSize(p.head.chunk&(maxChunk-1)))):]
		}
		w.Unlock()
		h.endpoint.transport.(*carriers).release = func() { <-h.ended }
		go h.attend()
		h.endpoint.Close()
		if held := h.endpoint.inbox.mu.unexpected[1]; held > opt.UnexpectedLimit {
			t.Errorf("%d bytes were taken", held)
		}
	})
}
