package train

import (
	"encoding/binary"
	"errors"
	"fmt"

	"starling/coflow"
	"starling/collective"
	"starling/graph"
	"starling/wire"
)

// ErrUnplanned: what the strategy sends depends on what the workers tell each other
// first, so there is no plan on paper.
var ErrUnplanned = errors.New("planned once the workers have met")

// lookup asks the owners of vertices about them, before training: what vertex a
// number stands for and its degrees, its in-edges, its features. Vertices go by their
// numbers in the partition, ascending and each once.
//
// All workers call the same methods in the same order, each with its own list, which
// may be empty. A list is asked for in rounds of bounded size: every worker sends each
// owner its numbers and is answered, until nobody has more to ask.
type lookup struct {
	*site
	comm *collective.Comm
	sent map[Sent]int64 // planned from the sizes of lists, as they become known
}

func newLookup(s *site) *lookup {
	return &lookup{site: s, comm: collective.New(s.end), sent: map[Sent]int64{}}
}

// preparing is the coflow of lookups; the batch tells it from the first layer's features.
var preparing = coflow.ID{Type: coflow.Bulk, Layer: -1, Batch: 1}

// mark is what is known of a vertex that others own.
type mark struct {
	id     uint32  // in the dataset
	degree uint32  // in-edges in the whole graph
	gcn    float64 // the same by weight and without self-loops
}

const markBytes = 16

func (m mark) append(b []byte) []byte {
	b, _ = binary.Append(b, binary.LittleEndian, []uint32{m.id, m.degree})
	b, _ = binary.Append(b, binary.LittleEndian, m.gcn)
	return b
}

// markOf is that of a local vertex, core or halo.
func (l *lookup) markOf(local uint32) mark {
	return mark{l.part.IDs[local], l.part.Degrees[local], l.part.GCNDegree(local)}
}

// marks are those of vertices anywhere.
func (l *lookup) marks(ids []uint32) ([]mark, error) {
	out := make([]mark, 0, len(ids))
	err := l.rounds(wire.Topology, ids, 1<<20/markBytes, l.marksOf, func(some []uint32, r *reader) {
		for range some {
			out = append(out, r.mark())
		}
	})
	return out, err
}

func (r *reader) mark() mark { return mark{r.number(), r.number(), take[float64](r, 1)[0]} }

func (l *lookup) marksOf(own []uint32) (b []byte) {
	for _, v := range own {
		b = l.markOf(v).append(b)
	}
	return b
}

// inEdges are the in-edges of vertices, from vertices by their numbers in the partition.
func (l *lookup) inEdges(ids []uint32) (*graph.CSR, error) {
	out := &graph.CSR{Indptr: []int64{0}, EdgeDim: l.part.In.EdgeDim}
	err := l.rounds(wire.Topology, ids, 1<<16, l.inEdgesOf, func(some []uint32, r *reader) {
		for _, n := range take[uint32](r, len(some)) {
			out.Indices = append(out.Indices, take[uint32](r, int(n))...)
			if l.part.Book.Weighted {
				out.Weights = append(out.Weights, take[float32](r, int(n))...)
			}
			out.EdgeFeatures = append(out.EdgeFeatures, take[float32](r, int(n)*out.EdgeDim)...)
			out.Indptr = append(out.Indptr, int64(len(out.Indices)))
		}
	})
	return out, err
}

func (l *lookup) inEdgesOf(own []uint32) (b []byte) {
	in := l.part.In
	b = counts(b, in.Indptr, own)
	for _, v := range own {
		lo, hi := in.Indptr[v], in.Indptr[v+1]
		for _, u := range in.Indices[lo:hi] {
			b = binary.LittleEndian.AppendUint32(b, l.global(u))
		}
		if in.Weights != nil {
			b, _ = binary.Append(b, binary.LittleEndian, in.Weights[lo:hi])
		}
		b, _ = binary.Append(b, binary.LittleEndian, in.EdgeRows(lo, hi))
	}
	return b
}

// global is a local vertex's number in the partition.
func (s *site) global(local uint32) uint32 {
	if core := uint32(s.part.Core()); local >= core {
		return s.part.Halo[local-core]
	}
	return uint32(s.part.Book.Offsets[s.part.Meta.Part]) + local
}

// own is the local number of a vertex of this worker.
func (s *site) own(v uint32) (uint32, bool) {
	local := v - uint32(s.part.Book.Offsets[s.part.Meta.Part])
	return local, local < uint32(s.part.Core())
}

// counts appends how many entries each of some rows has.
func counts(b []byte, ptr []int64, rows []uint32) []byte {
	for _, v := range rows {
		b = binary.LittleEndian.AppendUint32(b, uint32(ptr[v+1]-ptr[v]))
	}
	return b
}

// features are rows of features, in the form that all parts have them in.
func (l *lookup) features(ids []uint32) (*graph.Features, error) {
	f := l.part.Features
	out := &graph.Features{Rows: len(ids), Cols: f.Cols}
	if f.Kind() == graph.Sparse {
		out.Indptr = []int64{0}
	}
	chunk := max(1, (16<<20)/max(4*f.Cols, 1))
	err := l.rounds(wire.Feature, ids, chunk, l.featuresOf, func(some []uint32, r *reader) {
		switch f.Kind() {
		case graph.Dense:
			out.F32 = append(out.F32, take[float32](r, len(some)*f.Cols)...)
		case graph.BFloat16:
			out.BF16 = append(out.BF16, take[uint16](r, len(some)*f.Cols)...)
		case graph.Sparse:
			for _, n := range take[uint32](r, len(some)) {
				out.Indices = append(out.Indices, take[uint32](r, int(n))...)
				out.Values = append(out.Values, take[float32](r, int(n))...)
				out.Indptr = append(out.Indptr, int64(len(out.Indices)))
			}
		}
	})
	return out, err
}

func (l *lookup) featuresOf(own []uint32) (b []byte) {
	f := l.part.Features
	if f.Kind() == graph.Sparse {
		b = counts(b, f.Indptr, own)
	}
	for _, v := range own {
		lo, hi := int(v)*f.Cols, int(v+1)*f.Cols
		switch f.Kind() {
		case graph.Dense:
			b, _ = binary.Append(b, binary.LittleEndian, f.F32[lo:hi])
		case graph.BFloat16:
			b, _ = binary.Append(b, binary.LittleEndian, f.BF16[lo:hi])
		case graph.Sparse:
			b, _ = binary.Append(b, binary.LittleEndian, f.Indices[f.Indptr[v]:f.Indptr[v+1]])
			b, _ = binary.Append(b, binary.LittleEndian, f.Values[f.Indptr[v]:f.Indptr[v+1]])
		}
	}
	return b
}

// rounds asks the owners of ids, at most chunk vertices a round. answer is what this
// worker replies about vertices of its own; accept reads a reply about some of ids,
// which come in order.
func (l *lookup) rounds(kind wire.Kind, ids []uint32, chunk int, answer func(own []uint32) []byte, accept func(some []uint32, r *reader)) error {
	for more := true; more; {
		now := ids[:min(chunk, len(ids))]
		ids = ids[len(now):]
		mine, err := l.split(now)
		if err != nil {
			return err
		}
		asked, others, err := l.swap(wire.Topology, mine, len(ids) > 0)
		if err != nil {
			return err
		}
		replies := make([][]byte, l.end.Size())
		for q := range replies {
			own, err := l.asked(q, asked[q])
			if err != nil {
				return err
			}
			if len(own) > 0 {
				replies[q] = answer(own)
			}
		}
		got, _, err := l.swap(kind, replies, false)
		if err != nil {
			return err
		}
		for q, b := range got {
			n := len(mine[q]) / 4
			r := &reader{b: b}
			accept(now[:n], r)
			now = now[n:]
			if r.short || len(r.b) > 0 {
				return fmt.Errorf("worker %d answered %d vertices with %d bytes, which is not what they take", q, n, len(b))
			}
		}
		more = others || len(ids) > 0
	}
	return nil
}

// split is ascending numbers of vertices as bytes, by owner.
func (l *lookup) split(ids []uint32) ([][]byte, error) {
	out := make([][]byte, l.end.Size())
	for i, v := range ids {
		if int64(v) >= l.part.Book.Nodes || i > 0 && v <= ids[i-1] {
			return nil, fmt.Errorf("looking up vertex %d: numbers must ascend and be below %d", v, l.part.Book.Nodes)
		}
		q := l.part.Book.Owner(v)
		out[q] = binary.LittleEndian.AppendUint32(out[q], v)
	}
	return out, nil
}

// asked turns numbers that a peer sent into local vertices.
func (l *lookup) asked(q int, b []byte) ([]uint32, error) {
	ids := take[uint32](&reader{b: b}, len(b)/4)
	for i, v := range ids {
		var ok bool
		if ids[i], ok = l.own(v); !ok {
			return nil, fmt.Errorf("worker %d asks this one about vertex %d, which is not its own; do all workers have parts of the same partition?", q, v)
		}
	}
	return ids, nil
}

// mostSwapped bounds what a peer may announce.
const mostSwapped = 1 << 36

// swap gives every worker its bytes and returns theirs. more travels with the sizes:
// whether any other worker set it is returned, so that all agree when rounds end.
func (l *lookup) swap(kind wire.Kind, out [][]byte, more bool) (in [][]byte, others bool, err error) {
	n := l.end.Size()
	sizes, theirs, in := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for q := range out {
		word := uint64(len(out[q])) << 1
		if more {
			word |= 1
		}
		sizes[q], theirs[q] = binary.LittleEndian.AppendUint64(nil, word), make([]byte, 8)
	}
	if err := l.allToAll(kind, sizes, theirs); err != nil {
		return nil, false, err
	}
	for q, b := range theirs {
		word := binary.LittleEndian.Uint64(b)
		if word>>1 > mostSwapped {
			return nil, false, fmt.Errorf("worker %d wants to send %d bytes before training", q, word>>1)
		}
		others = others || word&1 != 0
		in[q] = make([]byte, word>>1)
	}
	return in, others, l.allToAll(kind, out, in)
}

func (l *lookup) allToAll(kind wire.Kind, out, in [][]byte) error {
	for q := range out {
		if q != l.end.Rank() {
			add(l.sent, Sent{kind, -1, l.end.Link(q)}, int64(len(out[q])))
		}
	}
	return l.comm.AllToAll(l.ctx, preparing, kind, out, in)
}

// agree shares some numbers of every worker: row q of the result is worker q's.
func (l *lookup) agree(mine ...float64) ([][]float64, error) {
	n := l.end.Size()
	all := make([]float64, n*len(mine))
	copy(all[l.end.Rank()*len(mine):], mine)
	if err := l.peers.AddUp(0, all); err != nil {
		return nil, err
	}
	for q, t := range collective.AllReduceSent(collective.Ordered, l.end.Rank(), n, len(all), 8) {
		add(l.sent, Sent{wire.Control, -1, l.end.Link(q)}, t.Bytes)
	}
	out := make([][]float64, n)
	for q := range out {
		out[q] = all[q*len(mine) : (q+1)*len(mine)]
	}
	return out, nil
}

// reader takes numbers off bytes; short is set once there were too few.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) number() uint32 { return take[uint32](r, 1)[0] }

// take is the next n numbers, zeros if there are not so many: callers check short.
func take[T uint16 | uint32 | uint64 | float32 | float64](r *reader, n int) []T {
	size := binary.Size(*new(T))
	if n > len(r.b)/size {
		r.short = true
		return make([]T, min(n, 1))
	}
	out := make([]T, n)
	binary.Decode(r.b, binary.LittleEndian, out)
	r.b = r.b[n*size:]
	return out
}
