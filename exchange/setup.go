package exchange

import (
	"encoding/binary"
	"fmt"
	"time"

	"starling/coflow"
	"starling/collective"
	"starling/wire"
)

// Setup is what workers send each other before training, all of them at the same time: all
// workers call the same methods in the same order.
type Setup struct {
	W    *Worker
	Sent wire.Bytes // planned from the sizes of lists, as they become known
	comm *collective.Comm
	// timed are the buffers of Exchange.
	timed []byte
}

// NewSetup is the setup of a worker.
func NewSetup(w *Worker) *Setup { return &Setup{W: w, comm: collective.New(w.End), Sent: wire.Bytes{}} }

// mostSwapped bounds what a peer may announce: lists are of vertices, with at most a wide row of each, or of edges.
func (s *Setup) mostSwapped() uint64 {
	const always, vertex, edge, most = 1 << 20, 16 << 10, 64, 1 << 36
	b := s.W.Part.Book
	return uint64(min(always+vertex*b.Nodes+edge*b.Edges, most))
}

// Swap gives every worker its bytes and returns theirs.
func (s *Setup) Swap(kind wire.Kind, out [][]byte) (in [][]byte, err error) {
	return s.SwapAmong(kind, func(int) bool { return true }, out)
}

// SwapAmong is Swap with the peers that this worker and they agree on: nothing travels between others.
func (s *Setup) SwapAmong(kind wire.Kind, agreed func(q int) bool, out [][]byte) (in [][]byte, err error) {
	n := s.W.End.Size()
	sizes, theirs, in := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for q := range out {
		if !agreed(q) {
			continue
		}
		sizes[q], theirs[q] = binary.LittleEndian.AppendUint64(nil, uint64(len(out[q]))), make([]byte, 8)
	}
	if err := s.allToAll(kind, sizes, theirs); err != nil {
		return nil, err
	}
	for q, b := range theirs {
		if b == nil {
			continue
		}
		size := binary.LittleEndian.Uint64(b)
		if size > s.mostSwapped() {
			return nil, fmt.Errorf("worker %d announces %d bytes before training, more than lists of this graph have",
				q, size)
		}
		in[q] = make([]byte, size)
	}
	return in, s.allToAll(kind, out, in)
}

func (s *Setup) allToAll(kind wire.Kind, out, in [][]byte) error {
	for q := range out {
		if q != s.W.End.Rank() {
			s.Sent.Add(s.W.Class(kind, -1, q), int64(len(out[q])))
		}
	}
	return s.comm.AllToAll(s.W.Ctx, coflow.Preparing, kind, out, in)
}

// Share gives every worker's numbers to all: row q of the result is worker q's.
func (s *Setup) Share(mine ...float64) ([][]float64, error) {
	n := s.W.End.Size()
	all := make([]float64, n*len(mine))
	copy(all[s.W.End.Rank()*len(mine):], mine)
	if err := s.W.AllReduce(0, 0, all); err != nil {
		return nil, err
	}
	for q, t := range collective.AllReduceSent(collective.Ordered, s.W.End.Rank(), n, len(all), 8) {
		s.Sent.Add(s.W.Class(wire.Control, -1, q), t.Bytes)
	}
	out := make([][]float64, n)
	for q := range out {
		out[q] = all[q*len(mine) : (q+1)*len(mine)]
	}
	return out, nil
}

// Exchange sends the given number of bytes to each of some peers, which all do the same. It reuses the buffers of the
// exchange before, so that a second one of equal length times the link alone.
func (s *Setup) Exchange(peers []int, bytes int) error {
	if need := 2 * bytes * len(peers); len(s.timed) < need {
		s.timed = make([]byte, need)
	}
	out, in := make([][]byte, s.W.End.Size()), make([][]byte, s.W.End.Size())
	for i, q := range peers {
		out[q], in[q] = s.timed[2*i*bytes:][:bytes], s.timed[(2*i+1)*bytes:][:bytes]
	}
	return s.allToAll(wire.Control, out, in)
}

// Peers are the other workers of the same server, or the workers of other servers.
func (s *Setup) Peers(otherServers bool) (peers []int) {
	book, me := s.W.Part.Book, s.W.End.Rank()
	for q := range s.W.End.Size() {
		if q != me && (book.Server(q) != book.Server(me)) == otherServers {
			peers = append(peers, q)
		}
	}
	return peers
}

// Now is the run's clock.
func (s *Setup) Now() time.Time { return s.W.Now() }

// TellServer sends the same bytes to workers first to last-1, itself among them, and returns theirs.
func (s *Setup) TellServer(first, last int, b []byte) ([][]byte, error) {
	out := make([][]byte, s.W.End.Size())
	for q := first; q < last; q++ {
		out[q] = b
	}
	return s.Swap(wire.Topology, out)
}
