package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
)

var sampleHeaders = []header{
	{},
	{kind: Gradient, from: 3, to: 65535, key: Key{coflow.ID{Epoch: 1 << 31, Batch: 1<<32 - 1, Layer: -1,
		Type: coflow.Bulk, Backward: true}, 1<<32 - 1},
		number: 7, length: maxMessage, offset: maxMessage - 5, chunk: 5, sum: 9},
	{frame: frameGoodbye, from: 1},
	{frame: frameFailure, length: 12, chunk: 12},
	{frame: frameAlive},
	{frame: frameRequest, kind: Topology, from: 1, key: Key{coflow.ID{Batch: 1 << 20}, 77}, service: 65535,
		limit: 1<<32 - 1, length: 12, chunk: 12},
	{frame: frameResponse, offered: true, from: 1, length: maxBody, chunk: offerSize},
	{frame: frameRefusal, from: 1, length: 3, chunk: 3},
	{frame: frameServed, from: 1, service: 9, length: 20, chunk: 20},
}

func TestHeaderRoundTrip(t *testing.T) {
	for _, want := range sampleHeaders {
		var b [headerSize]byte
		want.put(b[:])
		var got header
		if err := got.parse(b[:]); err != nil || got != want {
			t.Errorf("%+v, expected %+v: %v", got, want, err)
		}
		for bit := range 8 * headerSize {
			b[bit/8] ^= 1 << (bit % 8)
			if err := got.parse(b[:]); err == nil {
				t.Errorf("bit %d flipped: no error", bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// frame is a header and a chunk as a socket carries them.
func frame(h header, chunk []byte) []byte {
	b := make([]byte, frameHead, frameHead+len(chunk))
	h.sum = checksum(chunk)
	h.put(b)
	new(linkHeader).put(b[headerSize:])
	return append(b, chunk...)
}

// seal makes the checksum of a header right, so that a fuzzer gets past it.
func seal(b []byte) {
	copy(b, []byte{'S', 'W', 'F', version})
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

func FuzzHeader(f *testing.F) {
	for _, h := range sampleHeaders {
		var b [headerSize]byte
		h.put(b[:])
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		seal(b)
		var h header
		if h.parse(b) != nil {
			return
		}
		if h.chunk > maxChunk || h.offset < 0 || h.length > maxMessage || h.offset+int64(h.chunk) > h.length {
			t.Errorf("out of bounds: %+v", h)
		}
		var again [headerSize]byte
		h.put(again[:])
		if !bytes.Equal(again[:], b[:headerSize]) {
			t.Errorf("%+v is not the only way to write it", h)
		}
	})
}

// FuzzConnection lets an authenticated peer send anything: the endpoint fails
// or goes on, takes bounded memory, and ends.
func FuzzConnection(f *testing.F) {
	var b bytes.Buffer
	for _, h := range sampleHeaders {
		h.from, h.to = 1, 0
		h.length, h.offset = int64(h.chunk), 0
		b.Write(frame(h, make([]byte, h.chunk)))
		f.Add(bytes.Clone(b.Bytes()), true)
	}
	b.Reset()
	for _, c := range callFrames {
		h := c.h
		h.from, h.length, h.chunk = 1, int64(len(c.chunk)), len(c.chunk)
		b.Write(frame(h, c.chunk))
	}
	f.Add(bytes.Clone(b.Bytes()), true)
	f.Add([]byte("GET / HTTP/1.1"), false)
	f.Fuzz(func(t *testing.T, said []byte, mend bool) {
		opt := DefaultOptions()
		opt.UnexpectedLimit, opt.Linger, opt.Timeout = 1<<16, time.Millisecond, time.Second
		n := newEndpoint(0, []Link{SameProcess, SameHost}, opt)
		a, z := net.Pipe()
		peer := newTCPPeer(n, 1, []net.Conn{a})
		n.transport = over(nil, peer)
		n.Recv(1, key(0), Feature, make([]byte, 100))
		exposeCalls(n)
		peer.start()
		go io.Copy(io.Discard, z)
		go func() {
			if mend {
				mendFrames(said)
			}
			z.Write(said)
			z.Close()
		}()
		// A message without a receive may block the reader: that is for Close to end.
		select {
		case <-n.Done():
		case <-peer.gone():
		case <-waitStalled(n):
		}
		n.Close()
		if held := n.inbox.mu.unexpected[1]; held > opt.UnexpectedLimit {
			t.Errorf("%d bytes were taken", held)
		}
	})
}

// mendFrames makes headers right one after the other.
func mendFrames(b []byte) {
	for len(b) >= frameHead {
		b[8], b[9], b[10], b[11] = 1, 0, 0, 0
		seal(b)
		new(linkHeader).put(b[headerSize:])
		var h header
		if h.parse(b) != nil {
			return
		}
		rest := b[frameHead:]
		if len(rest) >= h.chunk {
			binary.LittleEndian.PutUint32(b[52:], checksum(rest[:h.chunk]))
			seal(b)
		}
		b = rest[min(len(rest), h.chunk):]
	}
}

// waitStalled is closed when the mailbox has a reader waiting for space.
func waitStalled(n *endpoint) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		for ; n.Err() == nil; runtime.Gosched() {
			n.inbox.mu.Lock()
			full := n.inbox.mu.full
			n.inbox.mu.Unlock()
			if full {
				close(c)
				return
			}
		}
	}()
	return c
}

func TestLinkHeader(t *testing.T) {
	want := linkHeader{sequence: 1 << 31, acked: 7, sent: 1 << 63, echo: 12345}
	var b [linkSize]byte
	want.put(b[:])
	var got linkHeader
	if err := got.parse(b[:]); err != nil || got != want {
		t.Errorf("%+v, expected %+v: %v", got, want, err)
	}
	for bit := range 8 * linkSize {
		b[bit/8] ^= 1 << (bit % 8)
		if err := got.parse(b[:]); err == nil {
			t.Errorf("bit %d flipped: no error", bit)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
}

// Frames on a socket tell when they left and what has arrived: of all that a peer has
// answered, everything before the last answer was acknowledged.
func TestAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipes(t, DefaultOptions(), 1)
		time.Sleep(time.Millisecond)
		for step := range 3 {
			a.Send(1, key(step), Feature, make([]byte, 10))
			if err := b.Recv(0, key(step), Feature, make([]byte, 10)).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.Send(0, key(step), Feature, make([]byte, 10))
			if err := a.Recv(1, key(step), Feature, make([]byte, 10)).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		conn := func(e *endpoint, peer int) *tcpConn { return e.transport.(*carriers).to[peer].(*tcpPeer).conns[0] }
		out, back := conn(a, 1), conn(b, 0)
		if n := back.out.acked; n != 3 || out.frames.Load() != 3 || back.out.echo != uint64(time.Millisecond)|1 {
			t.Errorf("%d of 3 frames acknowledged, %d read, echo %d", n, out.frames.Load(), back.out.echo)
		}
		closeAll([]Endpoint{a, b})
	})
}
