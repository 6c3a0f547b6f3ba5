package wire

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
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
		h    header
		data []byte
	}
	var queue []record // the twin
	for i := range 20000 {
		if size := rnd.IntN(5000); rnd.IntN(2) == 0 && size <= w.space() {
			h := header{from: 1, number: uint32(i), length: int64(size), chunk: size}
			data := payload(0, 1, i, size)
			w.push(&h, data)
			queue = append(queue, record{h, data})
		}
		var h header
		ok, err := r.peek(&h)
		if err != nil || ok != (len(queue) > 0) || r.empty() == ok {
			t.Fatal(ok, err)
		}
		if ok && rnd.IntN(2) == 0 {
			into := slices.Concat(r.chunk(h.chunk))
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
				h := header{number: uint32(i), length: int64(size), chunk: size}
				w.push(&h, bytes.Repeat([]byte{byte(i)}, size))
				i++
			} else {
				runtime.Gosched()
			}
		}
	})
	for i := 0; i < count; {
		var h header
		ok, err := r.peek(&h)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			runtime.Gosched()
			continue
		}
		into := slices.Concat(r.chunk(h.chunk))
		if h.number != uint32(i) || h.chunk != i%1000 || bytes.Count(into, []byte{byte(i)}) != len(into) {
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
	h := header{length: 100, chunk: 100}
	w.push(&h, make([]byte, 100))
	f.Add(w.mem[ringHeader:], uint64(192), uint64(0))
	f.Add([]byte{1}, uint64(1)<<63, uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, head, tail uint64) {
		w, r := ringPair(t, 1<<10)
		copy(w.data, data)
		if len(data) >= headerSize {
			seal(w.data)
		}
		w.head.Store(head)
		w.tail.Store(tail)
		for range 100 {
			var h header
			ok, err := r.peek(&h)
			if err != nil || !ok {
				return
			}
			if first, rest := r.chunk(h.chunk); len(first)+len(rest) != h.chunk {
				t.Fatalf("a chunk of %d bytes has %d and %d", h.chunk, len(first), len(rest))
			}
			r.pop(&h)
		}
	})
}
