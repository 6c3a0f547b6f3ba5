package collective

import (
	"math"
	"testing"
	"time"

	"starling/coflow"
	"starling/wire"
)

// fuzzCollective runs a collective of rank 0 while rank 1 answers with messages of its own: it ends well or with an
// error, and never in a panic.
func fuzzCollective(f *testing.F, valid int, kind wire.Kind, run func(t *testing.T, c *Comm, id coflow.ID) error) {
	f.Add(make([]byte, valid), uint32(0))
	f.Add(make([]byte, valid), uint32(1))
	f.Add(make([]byte, valid+4), uint32(0))
	f.Add([]byte{}, uint32(math.MaxUint32))
	f.Fuzz(func(t *testing.T, b []byte, at uint32) {
		opt := wire.DefaultOptions()
		opt.Timeout = 5 * time.Millisecond
		ends := wire.NewGroup(2, opt)
		id := coflow.ID{Epoch: 1, Type: coflow.Control}
		for nth := range uint32(2) {
			ends[1].Send(0, wire.Key{Coflow: id, Step: step(0, at+nth)}, kind, b)
		}
		if err := run(t, New(ends[0]), id); err != nil {
			ends[0].Fail(err)
		}
		ends[0].Close()
		ends[1].Close()
	})
}

func FuzzAllReduce(f *testing.F) {
	fuzzCollective(f, 64, wire.Parameter, func(t *testing.T, c *Comm, id coflow.ID) error {
		return c.AllReduce64(t.Context(), id, wire.Parameter, make([]float64, 8), Auto)
	})
}

func FuzzAllToAll(f *testing.F) {
	fuzzCollective(f, 16, wire.Topology, func(t *testing.T, c *Comm, id coflow.ID) error {
		rows := func() [][]byte { return [][]byte{make([]byte, 16), make([]byte, 16)} }
		return c.AllToAll(t.Context(), id, wire.Topology, rows(), rows())
	})
}

func FuzzBroadcast(f *testing.F) {
	fuzzCollective(f, 16, wire.Control, func(t *testing.T, c *Comm, id coflow.ID) error {
		return c.Broadcast(t.Context(), id, wire.Control, 1, make([]byte, 16))
	})
}

func FuzzAllGather(f *testing.F) {
	fuzzCollective(f, 16, wire.Control, func(t *testing.T, c *Comm, id coflow.ID) error {
		return c.AllGather(t.Context(), id, wire.Control, [][]byte{make([]byte, 16), make([]byte, 16)})
	})
}
