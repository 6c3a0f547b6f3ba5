package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"starling/coflow"
)

var sampleHeaders = []header{
	{},
	{kind: Gradient, from: 3, to: 65535, key: Key{coflow.ID{Epoch: 1 << 31, Batch: 65535, Layer: -1, Type: coflow.Bulk, Backward: true}, 1<<32 - 1},
		number: 7, length: maxMessage, offset: maxMessage - 5, chunk: 5, sum: 9},
	{frame: frameGoodbye, from: 1},
	{frame: frameFailure, length: 12, chunk: 12},
	{frame: frameAlive},
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
				t.Errorf("bit %d flipped: nobody noticed", bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// seal makes the checksum of a header right, so that a fuzzer gets past it.
func seal(b []byte) {
	copy(b, "SWF\x01")
	binary.LittleEndian.PutUint32(b[52:], crc32.Checksum(b[:52], castagnoli))
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

// FuzzConnection lets a peer that has been let in say anything: the endpoint fails
// or goes on, takes bounded memory, and ends.
func FuzzConnection(f *testing.F) {
	var b bytes.Buffer
	for _, h := range sampleHeaders {
		h.from, h.to = 1, 0
		h.length, h.offset = int64(h.chunk), 0
		var head [headerSize]byte
		h.put(head[:])
		b.Write(head[:])
		b.Write(make([]byte, h.chunk))
		f.Add(b.Bytes(), true)
	}
	f.Add([]byte("GET / HTTP/1.1"), false)
	f.Fuzz(func(t *testing.T, said []byte, mend bool) {
		opt := DefaultOptions()
		opt.EarlyLimit, opt.Linger, opt.Timeout = 1<<16, time.Millisecond, time.Second
		n := newNode(0, []Link{SameProcess, SameHost}, opt)
		a, z := net.Pipe()
		peer := newTCPPeer(n, 1, []net.Conn{a})
		n.carriers[0], n.carriers[1] = newInProcess(n, n), peer
		n.Recv(1, key(0), Feature, make([]byte, 100))
		peer.start()
		go io.Copy(io.Discard, z)
		go func() {
			if mend {
				mendFrames(said)
			}
			z.Write(said)
			z.Close()
		}()
		// A message that nobody asks for may hold the reader up: that is for Close to end.
		select {
		case <-n.Done():
		case <-peer.gone():
		case <-waitStalled(n):
		}
		n.Close()
		if held := n.box.mu.early[1]; held > opt.EarlyLimit {
			t.Errorf("%d bytes were taken", held)
		}
	})
}

// mendFrames makes headers right one after the other.
func mendFrames(b []byte) {
	for len(b) >= headerSize {
		b[8], b[9], b[10], b[11] = 1, 0, 0, 0
		seal(b)
		var h header
		if h.parse(b) != nil {
			return
		}
		rest := b[headerSize:]
		if len(rest) >= h.chunk {
			binary.LittleEndian.PutUint32(b[44:], checksum(rest[:h.chunk]))
			seal(b)
		}
		b = rest[min(len(rest), h.chunk):]
	}
}

// waitStalled is closed when the mailbox has somebody waiting for room.
func waitStalled(n *node) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		for ; n.Err() == nil; runtime.Gosched() {
			n.box.mu.Lock()
			full := n.box.mu.full
			n.box.mu.Unlock()
			if full {
				close(c)
				return
			}
		}
	}()
	return c
}
