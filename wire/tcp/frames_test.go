package tcp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"starling/wire"
	"starling/wire/wiretest"
)

// frame is a header and a chunk as a socket carries them.
func frame(h wire.Header, chunk []byte) []byte {
	b := make([]byte, frameHead, frameHead+len(chunk))
	h.Sum = wire.Checksum(chunk)
	h.Put(b)
	new(linkHeader).put(b[wire.HeaderSize:])
	return append(b, chunk...)
}

// FuzzConnection lets an authenticated peer send anything: the endpoint fails
// or goes on, and ends.
func FuzzConnection(f *testing.F) {
	var b bytes.Buffer
	for _, h := range []wire.Header{{Kind: wire.Gradient, Length: 5, Chunk: 5, Number: 7}, {Frame: wire.FrameGoodbye},
		{Frame: wire.FrameFailure, Length: 12, Chunk: 12}, {Frame: wire.FrameAlive},
		{Frame: wire.FrameResponse, Offered: true, Length: 8, Chunk: wire.OfferSize}} {
		h.From = 1
		b.Write(frame(h, make([]byte, h.Chunk)))
		f.Add(bytes.Clone(b.Bytes()), true)
	}
	b.Reset()
	for _, c := range wiretest.CallFrames() {
		b.Write(frame(c.Header, c.Chunk))
	}
	f.Add(bytes.Clone(b.Bytes()), true)
	f.Add([]byte("GET / HTTP/1.1"), false)
	f.Fuzz(func(t *testing.T, sent []byte, mend bool) {
		opt := wire.DefaultOptions()
		opt.UnexpectedLimit, opt.Linger, opt.Timeout = 1<<16, time.Millisecond, time.Second
		a, z := net.Pipe()
		e, peer := open(0, 1, 2, opt, a)
		e.Recv(1, wiretest.Key(0), wire.Feature, make([]byte, 100))
		wiretest.ExposeCalls(e)
		peer.run()
		go io.Copy(io.Discard, z)
		go func() {
			if mend {
				mendFrames(sent)
			}
			z.Write(sent)
			z.Close()
		}()
		select {
		case <-e.Done():
		case <-peer.Gone():
		case <-time.After(10 * time.Millisecond): // a message without a receive blocks the reader until Close
		}
		e.Close()
	})
}

// mendFrames makes headers right one after the other.
func mendFrames(b []byte) {
	for len(b) >= frameHead {
		b[8], b[9], b[10], b[11] = 1, 0, 0, 0
		wiretest.Seal(b)
		new(linkHeader).put(b[wire.HeaderSize:])
		var h wire.Header
		if h.Parse(b) != nil {
			return
		}
		rest := b[frameHead:]
		if len(rest) >= h.Chunk {
			binary.LittleEndian.PutUint32(b[52:], wire.Checksum(rest[:h.Chunk]))
			wiretest.Seal(b)
		}
		b = rest[min(len(rest), h.Chunk):]
	}
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
		a, b, toB, toA := carriers(t, wire.DefaultOptions(), 1)
		time.Sleep(time.Millisecond)
		for step := range 3 {
			a.Send(1, wiretest.Key(step), wire.Feature, make([]byte, 10))
			if err := b.Recv(0, wiretest.Key(step), wire.Feature, make([]byte, 10)).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.Send(0, wiretest.Key(step), wire.Feature, make([]byte, 10))
			if err := a.Recv(1, wiretest.Key(step), wire.Feature, make([]byte, 10)).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		out, back := toB.conns[0], toA.conns[0]
		if n := back.out.acked; n != 3 || out.frames.Load() != 3 || back.out.echo != uint64(time.Millisecond)|1 {
			t.Errorf("%d of 3 frames acknowledged, %d read, echo %d", n, out.frames.Load(), back.out.echo)
		}
		wiretest.CloseAll([]wire.Endpoint{a, b})
	})
}
