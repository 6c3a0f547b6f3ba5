package wire

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"starling/coflow"
)

// sizes are those at which something changes.
var sizes = []int{0, 1, 55, 1000, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7, maxChunk, maxChunk + 1,
	1 << 20, 8 << 20}

func key(step int) Key {
	return Key{Coflow: coflow.ID{Type: coflow.Rows, Epoch: 1, Layer: int16(step / 4)}, Step: uint32(step)}
}

// payload is bytes that depend on everything that could be mixed up.
func payload(from, to, step, size int) []byte {
	b := make([]byte, size+8)
	x := rand.NewPCG(uint64(from)<<32|uint64(to), uint64(step)).Uint64() | 1
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], x*uint64(i+1))
	}
	return b[:size:size]
}

// hang is how long a test waits for what must come: a slow machine takes its time.
const hang = 3 * time.Minute

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

// exposeCalls makes an endpoint serve rank 1, and call it, for what it may send.
func exposeCalls(e *endpoint) {
	e.Serve(Service{Name: "s", MaxRequest: 1000, MaxResponse: 1000, Window: 4},
		func(_ context.Context, r *Request) (Response, error) {
			return Response{Body: r.Body}, nil
		})
	for range 3 {
		e.Call(1, Call{Service: "p", Limit: 1000, Request: make([]byte, 10)})
	}
}

// callFrames are seeds for those who send anything.
var callFrames = []struct {
	h     header
	chunk []byte
}{
	{header{frame: frameServed, service: 1}, (&service{Service: Service{Name: "p", MaxRequest: 100, MaxResponse: 100,
		Window: 2}}).limits()},
	{header{frame: frameResponse, key: callKey(first)}, make([]byte, 100)},
	{header{frame: frameRefusal, key: callKey(first + 1)}, []byte("\x00no")},
	{header{frame: frameRequest, service: 1, key: callKey(first)}, make([]byte, 30)},
	{header{frame: frameCancel, key: callKey(first)}, nil},
	{header{frame: frameWant}, []byte("s")},
}
