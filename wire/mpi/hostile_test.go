package mpi

import (
	"testing"
	"time"

	"starling/wire"
	"starling/wire/wiretest"
)

// FuzzMPI lets a peer send any frame over MPI.
func FuzzMPI(f *testing.F) {
	text := []byte(`{"Version":2,"Turn":0,"Job":"job"}`)
	f.Add(frame(wire.Header{Frame: wire.FrameAlive, Length: int64(len(text)), Chunk: len(text)}, text), true)
	f.Add(frame(wire.Header{Frame: wire.FrameAlive, Length: 2, Chunk: 2}, []byte("{}")), false)
	f.Add(frame(wire.Header{Kind: wire.Feature, Key: wiretest.Key(0), Length: 100, Chunk: 100}, make([]byte, 100)), true)
	f.Add(frame(wire.Header{Kind: wire.Feature, Key: wiretest.Key(0), Length: 1 << 36, Chunk: 100, Sum: 3}, make([]byte, 100)), true)
	f.Add(frame(wire.Header{Kind: wire.Feature, Key: wiretest.Key(0), Length: 1 << 15, Chunk: 100, Sum: 1 << 20}, make([]byte, 100)),
		true)
	f.Add(frame(wire.Header{Frame: wire.FrameFailure, Length: 3, Chunk: 3, Key: wire.Key{Step: 1 << 31}}, []byte("why")), true)
	f.Add(frame(wire.Header{Frame: wire.FrameGoodbye}, nil), true)
	var calls []byte
	for _, c := range wiretest.CallFrames() {
		calls = append(calls, frame(c.Header, c.Chunk)...)
	}
	f.Add(calls, true)
	f.Fuzz(func(t *testing.T, sent []byte, greeted bool) {
		opt := wire.DefaultOptions()
		opt.UnexpectedLimit, opt.Linger, opt.Timeout = 1<<16, time.Millisecond, 10*time.Millisecond
		net := newFakeMPI(2)
		w := &world{api: net.ranks[0], size: 2}
		h := newHub(w, &wire.Config{Options: opt, Size: 2, Job: "job", Addrs: make([]string, 2)})
		p := h.peers[0]
		wiretest.ExposeCalls(h.endpoint)
		w.Lock()
		p.greeted = greeted
		for len(sent) >= wire.HeaderSize && !p.held && !p.over {
			clear(p.frame)
			copy(p.frame, sent)
			copy(p.frame[8:12], []byte{1, 0, 0, 0}) // from rank 1 to rank 0
			wiretest.Seal(p.frame)
			if !p.take() {
				break
			}
			sent = sent[min(len(sent), wire.HeaderSize+p.head.Chunk&(wire.MaxChunk-1)):]
		}
		w.Unlock()
		h.carriers.Release = func() { <-h.ended }
		go h.progress()
		h.endpoint.Close()
	})
}

// frame is a header and a chunk as MPI carries them.
func frame(h wire.Header, chunk []byte) []byte {
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	return append(b, chunk...)
}
