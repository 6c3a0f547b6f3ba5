package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"starling/coflow"
	"starling/wire/calls"
)

var sampleHeaders = []Header{
	{},
	{Kind: Gradient, From: 3, To: 65535, Key: Key{coflow.ID{Epoch: 1 << 31, Batch: 1<<32 - 1, Layer: -1,
		Type: coflow.Bulk, Backward: true}, 1<<32 - 1},
		Number: 7, Length: maxMessage, Offset: maxMessage - 5, Chunk: 5, Sum: 9},
	{Frame: FrameGoodbye, From: 1},
	{Frame: FrameFailure, Length: 12, Chunk: 12},
	{Frame: FrameAlive},
	{Frame: FrameRequest, Kind: Topology, From: 1, Key: Key{coflow.ID{Batch: 1 << 20}, 77}, Service: 65535,
		Limit: 1<<32 - 1, Length: 12, Chunk: 12},
	{Frame: FrameResponse, Offered: true, From: 1, Length: calls.MaxBody, Chunk: OfferSize},
	{Frame: FrameRefusal, From: 1, Length: 3, Chunk: 3},
	{Frame: FrameServed, From: 1, Service: 9, Length: 20, Chunk: 20},
}

func TestHeaderRoundTrip(t *testing.T) {
	for _, want := range sampleHeaders {
		var b [HeaderSize]byte
		want.Put(b[:])
		var got Header
		if err := got.Parse(b[:]); err != nil || got != want {
			t.Errorf("%+v, expected %+v: %v", got, want, err)
		}
		for bit := range 8 * HeaderSize {
			b[bit/8] ^= 1 << (bit % 8)
			if err := got.Parse(b[:]); err == nil {
				t.Errorf("bit %d flipped: no error", bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// seal makes the checksum of a header right, so that a fuzzer gets past it.
func seal(b []byte) {
	copy(b, []byte{'S', 'W', 'F', Version})
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

func FuzzHeader(f *testing.F) {
	for _, h := range sampleHeaders {
		var b [HeaderSize]byte
		h.Put(b[:])
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderSize {
			return
		}
		seal(b)
		var h Header
		if h.Parse(b) != nil {
			return
		}
		if h.Chunk > MaxChunk || h.Offset < 0 || h.Length > maxMessage || h.Offset+int64(h.Chunk) > h.Length {
			t.Errorf("out of bounds: %+v", h)
		}
		var again [HeaderSize]byte
		h.Put(again[:])
		if !bytes.Equal(again[:], b[:HeaderSize]) {
			t.Errorf("%+v is not the only way to write it", h)
		}
	})
}
