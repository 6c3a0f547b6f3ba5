package shm

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"time"

	"starling/wire"
	"starling/wire/wiretest"
)

// records are frames as a ring holds them, with as much made right as a fuzzer would
// never guess.
func records(sent []byte) []byte {
	out := bytes.Clone(sent)
	for b := out; len(b) >= recordHead; {
		copy(b[8:12], []byte{1, 0, 0, 0})
		wiretest.Seal(b)
		var h wire.Header
		if h.Parse(b) != nil {
			break
		}
		b = b[min(uint64(len(b)), recordSize(h.Chunk)):]
	}
	return out
}

// record is a frame as a fuzzer may begin with it.
func record(h wire.Header, chunk []byte) []byte {
	h.From, h.To = 1, 0
	b := make([]byte, recordSize(len(chunk)))
	h.Put(b)
	copy(b[recordHead:], chunk)
	return b
}

// FuzzMemory lets the process that shares memory write anything into it: messages,
// offers of memory that it has or has not, answers to what was never offered.
func FuzzMemory(f *testing.F) {
	here := make([]byte, wire.OfferSize)
	binary.LittleEndian.PutUint64(here, 1<<20)
	f.Add(record(wire.Header{Kind: wire.Feature, Key: wiretest.Key(0), Length: 100, Chunk: 100, Number: 1}, make([]byte, 100)),
		uint16(192))
	f.Add(record(wire.Header{Offered: true, Kind: wire.Feature, Key: wiretest.Key(0), Length: 100, Chunk: wire.OfferSize}, here), uint16(128))
	f.Add(record(wire.Header{Offered: true, Kind: wire.Feature, Key: wiretest.Key(5), Length: 1 << 36, Chunk: wire.OfferSize}, here),
		uint16(128))
	f.Add(record(wire.Header{Frame: wire.FrameTaken, Number: 1}, nil), uint16(64))
	f.Add(record(wire.Header{Frame: wire.FrameTaken, Number: 7}, nil), uint16(64))
	f.Add(record(wire.Header{Frame: wire.FrameGoodbye}, nil), uint16(64))
	var calls []byte
	for _, c := range wiretest.CallFrames() {
		calls = append(calls, record(c.Header, c.Chunk)...)
	}
	f.Add(calls, uint16(len(calls)))
	f.Add([]byte{1}, uint16(65535))
	f.Fuzz(func(t *testing.T, sent []byte, head uint16) {
		opt := wire.DefaultOptions()
		opt.UnexpectedLimit, opt.Linger, opt.Timeout = 1<<16, time.Millisecond, 10*time.Millisecond
		var h *Hub
		to := &alone{}
		n := wire.NewEndpoint(0, []wire.Link{wire.SameProcess, wire.SameHost}, opt, func(in *wire.Inbox) wire.Transport {
			var err error
			if h, err = NewHub(in); err != nil {
				t.Skip(err)
			}
			return to
		})
		bell, err := newWakeup()
		if err != nil {
			t.Fatal(err)
		}
		defer bell.close()
		theirs, in := ringPair(t, 1<<12)
		out, _ := ringPair(t, 1<<12)
		copy(theirs.data, records(sent))
		theirs.head.Store(uint64(head))
		p := h.Add(1, wire.NewQueue(opt), &Memory{in: in, out: out, notifier: bell.notifier, pid: os.Getpid(), lends: true}, false)
		to.Peer = p
		n.Recv(1, wiretest.Key(0), wire.Feature, make([]byte, 100))
		n.Send(1, wiretest.Key(1), wire.Feature, make([]byte, offerFrom)) // so that there is something to answer
		wiretest.ExposeCalls(n)
		for range 3 {
			p.take()
			h.takeEarly()
		}
		n.Close()
		h.Close()
	})
}

// alone is a Transport with one peer, and no connection beside the memory.
type alone struct{ *Peer }

func (a *alone) Fail(cause error) {
	a.queue.Fail(cause)
	a.Withdraw(cause)
}

func (a *alone) Close() { a.Fail(wire.ErrClosed) }
func (a *alone) Wait()  {}
