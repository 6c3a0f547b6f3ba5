package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"starling/coflow"
	"starling/partition"
	"starling/wire"
)

// AppendNumber writes a number in 4 or 8 bytes.
func AppendNumber(b []byte, n float64, size int) []byte {
	if size == 8 {
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(n)))
}

// MostBlock bounds the bytes of a block that a peer may announce: those of all vertices, each with many edges that are
// drawn, or of all edges.
func MostBlock(b *partition.Book) uint64 {
	const always, vertex, edge, most = 1 << 20, 1 << 10, 64, 1 << 32
	return uint64(min(always+vertex*b.Nodes+edge*b.Edges, most))
}

// WaitAll waits for messages, all of them also where one fails.
func WaitAll(ctx context.Context, pending []*wire.Pending) (err error) {
	for _, p := range pending {
		err = errors.Join(err, p.Wait(ctx))
	}
	return err
}

// Others are the workers from first to last-1 but one, beginning with the next.
func Others(me, first, last int) (peers []int) {
	n := last - first
	for i := 1; i < n; i++ {
		peers = append(peers, first+(me-first+i)%n)
	}
	return peers
}

// Swap gives peers a message each, in step+1 after its size in step, and returns theirs, of at most most bytes.
func Swap(ctx context.Context, end wire.Endpoint, peers []int, id coflow.ID, step uint32, most uint64,
	out [][]byte) ([][]byte, error) {
	size, body := wire.Key{Coflow: id, Step: step}, wire.Key{Coflow: id, Step: step + 1}
	sizes, in := make([][]byte, len(out)), make([][]byte, len(out))
	var pending, first []*wire.Pending
	for _, q := range peers {
		sizes[q] = make([]byte, 8)
		first = append(first, end.Recv(q, size, wire.Topology, sizes[q]))
		n := binary.LittleEndian.AppendUint64(nil, uint64(len(out[q])))
		pending = append(pending, end.Send(q, size, wire.Topology, n))
		if len(out[q]) > 0 {
			pending = append(pending, end.Send(q, body, wire.Topology, out[q]))
		}
	}
	if err := WaitAll(ctx, first); err != nil {
		return nil, errors.Join(err, WaitAll(ctx, pending))
	}
	for _, q := range peers {
		n := binary.LittleEndian.Uint64(sizes[q])
		if n > most {
			return nil, fmt.Errorf("worker %d announces a block of %d bytes, more than one of this graph has", q, n)
		}
		if in[q] = make([]byte, n); n > 0 {
			pending = append(pending, end.Recv(q, body, wire.Topology, in[q]))
		}
	}
	return in, WaitAll(ctx, pending)
}
