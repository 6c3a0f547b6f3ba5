package wire

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"starling/coflow"
)

// sizes are those at which something changes.
var sizes = []int{0, 1, 55, 1000, ChunkSize - 1, ChunkSize, ChunkSize + 1, 3*ChunkSize + 7, MaxChunk, MaxChunk + 1,
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

func closeAll(eps []Endpoint) {
	var wg sync.WaitGroup
	for _, e := range eps {
		wg.Go(func() { e.Close() })
	}
	wg.Wait()
}

// discard is a Transport from which nothing arrives.
type discard struct{}

func (discard) Carry(m *Message) { m.Left(nil) }
func (discard) Fail(error)       {}
func (discard) Close()           {}
func (discard) Wait()            {}
