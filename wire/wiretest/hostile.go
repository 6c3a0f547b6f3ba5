package wiretest

import (
	"context"
	"encoding/binary"

	"starling/wire"
)

// ExposeCalls makes an endpoint serve rank 1, and call it, as CallFrames expect.
func ExposeCalls(e wire.Endpoint) {
	e.Serve(wire.Service{Name: "s", MaxRequest: 1000, MaxResponse: 1000, Window: 4},
		func(_ context.Context, r *wire.Request) (wire.Response, error) {
			return wire.Response{Body: r.Body}, nil
		})
	for range 3 {
		e.Call(1, wire.Call{Service: "p", Limit: 1000, Request: make([]byte, 10)})
	}
}

// CallFrame is a frame of rank 1 to rank 0 that belongs to a call.
type CallFrame struct {
	Header wire.Header
	Chunk  []byte
}

// CallFrames are what a fuzzer of an endpoint that ExposeCalls has prepared may begin with.
func CallFrames() []CallFrame {
	call := func(number uint32) wire.Key { return wire.Key{Step: 1<<12 + number} }
	limits := binary.LittleEndian.AppendUint32(nil, 100)
	limits = binary.LittleEndian.AppendUint32(limits, 100)
	limits = append(binary.LittleEndian.AppendUint32(limits, 2), 'p')
	frames := []CallFrame{
		{wire.Header{Frame: wire.FrameServed, Service: 1}, limits},
		{wire.Header{Frame: wire.FrameResponse, Key: call(0)}, make([]byte, 100)},
		{wire.Header{Frame: wire.FrameRefusal, Key: call(1)}, []byte("\x00no")},
		{wire.Header{Frame: wire.FrameRequest, Service: 1, Key: call(0)}, make([]byte, 30)},
		{wire.Header{Frame: wire.FrameCancel, Key: call(0)}, nil},
		{wire.Header{Frame: wire.FrameWant}, []byte("s")},
	}
	for i := range frames {
		f := &frames[i]
		f.Header.From, f.Header.Length, f.Header.Chunk = 1, int64(len(f.Chunk)), len(f.Chunk)
	}
	return frames
}

// Seal makes the start and the checksum of a header right, so that a fuzzer gets past them.
func Seal(b []byte) {
	copy(b, []byte{'S', 'W', 'F', wire.Version})
	binary.LittleEndian.PutUint32(b[60:], wire.Checksum(b[:60]))
}
