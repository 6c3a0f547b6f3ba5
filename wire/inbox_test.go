package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
)

// newTestBox is a mailbox of rank 1 of two.
func newTestBox() *Inbox { return newEndpoint(1, make([]Link, 2), DefaultOptions()).inbox }

func newTestPending() *Pending { return &Pending{endpoint: newTestBox().endpoint} }

// receiveInPieces places chunks of a message in any order, some at a time, and asks for it
// before one of them. It returns what the asker has.
func receiveInPieces(t *testing.T, rnd *rand.Rand, data []byte, askBefore int, add func(into, part []byte)) []byte {
	t.Helper()
	b := newTestBox()
	into := make([]byte, len(data))
	for i := range into {
		into[i] = 1
	}
	p := &Pending{endpoint: b.endpoint}
	ask := func() {
		if err := b.post(0, Key{}, &receive{into: into, add: add, pending: p}); err != nil {
			t.Fatal(err)
		}
	}
	type open struct {
		at Place
		h  Header
	}
	var writing []open
	const chunk = 64
	for i, k := range rnd.Perm(len(data) / chunk) {
		if i == askBefore {
			ask()
		}
		h := Header{To: 1, Length: int64(len(data)), Offset: int64(k * chunk), Chunk: chunk}
		at, err := b.Place(&h)
		if err != nil {
			t.Fatal(err)
		}
		writing = append(writing, open{at, h})
		for len(writing) > rnd.IntN(4) {
			w := writing[0]
			writing = writing[1:]
			w.at.Put(0, data[w.h.Offset:w.h.Offset+chunk])
			b.Release(w.at, &w.h, nil)
		}
	}
	for _, w := range writing {
		w.at.Put(0, data[w.h.Offset:w.h.Offset+chunk])
		b.Release(w.at, &w.h, nil)
	}
	if !p.IsDone() {
		if askBefore < len(data)/chunk {
			t.Fatal("all has come, but the message is not done")
		}
		ask()
	}
	if err := p.Err(); !p.IsDone() || err != nil {
		t.Fatal(p.IsDone(), err)
	}
	return into
}

// A message that is asked for before, while or after it comes is the same message.
func TestAskedWhileItComes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	sum := func(into, part []byte) {
		for i := range into {
			into[i] += part[i]
		}
	}
	for range 300 {
		chunks := 1 + rnd.IntN(12)
		data := payload(0, 1, chunks, 64*chunks)
		ask := rnd.IntN(chunks + 1)
		if got := receiveInPieces(t, rnd, data, ask, nil); !bytes.Equal(got, data) {
			t.Fatalf("%d chunks, asked for before %d: other bytes", chunks, ask)
		}
		got := receiveInPieces(t, rnd, data, ask, sum)
		for i := range got {
			if got[i] != data[i]+1 {
				t.Fatalf("%d chunks, asked for before %d: byte %d is %d, expected %d", chunks, ask, i, got[i], data[i]+
					1)
			}
		}
	}
}

// A chunk that begins within a number is refused also when it came before the asker
// who wants it added.
func TestAskToAddWithinNumber(t *testing.T) {
	b := newTestBox()
	h := Header{To: 1, Length: 16, Offset: 4, Chunk: 12}
	if _, err := b.Place(&h); err != nil {
		t.Fatal(err)
	}
	err := b.post(0, Key{}, &receive{into: make([]byte, 16), add: func(_, _ []byte) {},
		pending: &Pending{endpoint: b.endpoint}})
	if !errors.Is(err, ErrFrame) {
		t.Errorf("error %v, expected %v", err, ErrFrame)
	}
}

// TestAnnouncedBytesTakeNoMemory: of a message without a receive, what has come is held, not what was announced.
func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	ends := NewGroup(2, DefaultOptions())
	defer ends[0].Close()
	in := ends[0].(*endpoint).inbox
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for step := range uint32(4) {
		h := Header{Frame: FrameMessage, From: 1, Length: 200 << 20, Chunk: 8, Key: Key{Step: step}}
		if err := in.Deliver(&h, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes for 32 that came", took)
	}
}
