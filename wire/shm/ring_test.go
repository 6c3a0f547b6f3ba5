package shm

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"starling/wire"
	"starling/wire/wiretest"
)

// ringPair is the two ends of one ring in memory of this process.
func ringPair(t testing.TB, size int) (write, read *ring) {
	t.Helper()
	mem := make([]byte, ringHeader+size)
	write = newRing(mem)
	read, err := openRing(mem)
	if err != nil {
		t.Fatal(err)
	}
	return write, read
}

func TestRing(t *testing.T) {
	w, r := ringPair(t, 1<<14)
	rnd := rand.New(rand.NewPCG(3, 4))
	type record struct {
		h    wire.Header
		data []byte
	}
	var queue []record // the twin
	for i := range 20000 {
		if size := rnd.IntN(5000); rnd.IntN(2) == 0 && size <= w.space() {
			h := wire.Header{From: 1, Number: uint32(i), Length: int64(size), Chunk: size}
			data := wiretest.Payload(0, 1, i, size)
			w.push(&h, data)
			queue = append(queue, record{h, data})
		}
		var h wire.Header
		ok, err := r.peek(&h)
		if err != nil || ok != (len(queue) > 0) || r.empty() == ok {
			t.Fatal(ok, err)
		}
		if ok && rnd.IntN(2) == 0 {
			into := slices.Concat(r.chunk(h.Chunk))
			if h != queue[0].h || !bytes.Equal(into, queue[0].data) {
				t.Fatalf("record %d: %+v, expected %+v", i, h, queue[0].h)
			}
			r.pop(&h)
			queue = queue[1:]
		}
	}
}

func TestRingBetweenGoroutines(t *testing.T) {
	w, r := ringPair(t, 1<<12)
	const count = 20000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; i < count; {
			size := i % 1000
			if size <= w.space() {
				h := wire.Header{Number: uint32(i), Length: int64(size), Chunk: size}
				w.push(&h, bytes.Repeat([]byte{byte(i)}, size))
				i++
			} else {
				runtime.Gosched()
			}
		}
	})
	for i := 0; i < count; {
		var h wire.Header
		ok, err := r.peek(&h)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			runtime.Gosched()
			continue
		}
		into := slices.Concat(r.chunk(h.Chunk))
		if h.Number != uint32(i) || h.Chunk != i%1000 || bytes.Count(into, []byte{byte(i)}) != len(into) {
			t.Fatalf("record %d is %+v", i, h)
		}
		r.pop(&h)
		i++
	}
	wg.Wait()
}

// FuzzRing lets the other process write anything into the memory.
func FuzzRing(f *testing.F) {
	w, _ := ringPair(f, 1<<10)
	h := wire.Header{Length: 100, Chunk: 100}
	w.push(&h, make([]byte, 100))
	f.Add(w.mem[ringHeader:], uint64(192), uint64(0))
	f.Add([]byte{1}, uint64(1)<<63, uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, head, tail uint64) {
		w, r := ringPair(t, 1<<10)
		copy(w.data, data)
		if len(data) >= wire.HeaderSize {
			wiretest.Seal(w.data)
		}
		w.head.Store(head)
		w.tail.Store(tail)
		for range 100 {
			var h wire.Header
			ok, err := r.peek(&h)
			if err != nil || !ok {
				return
			}
			if first, rest := r.chunk(h.Chunk); len(first)+len(rest) != h.Chunk {
				t.Fatalf("a chunk of %d bytes has %d and %d", h.Chunk, len(first), len(rest))
			}
			r.pop(&h)
		}
	})
}
