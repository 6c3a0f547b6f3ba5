package switchgnn

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"starling/exchange"
	"starling/graph"
	"starling/innet"
	"starling/nn"
	"starling/partition/multilevel"
	"starling/tensor"
	"starling/wire"
)

// servers are the ranks that a worker exchanges halo rows with, its own among them: those of
// its server. On a single server every worker counts as one, as in the paper.
func servers(w *exchange.Worker) (first, last int) {
	if w.Part.Book.Servers <= 1 {
		return w.End.Rank(), w.End.Rank() + 1
	}
	return w.Server()
}

// inside is the plan of a part without what comes from other servers. Halo rows are by
// owner, so that those of one server are together.
func inside(w *exchange.Worker) *exchange.HaloPlan {
	p := exchange.PartHalo(w.Part)
	first, last := servers(w)
	lo, hi := p.HaloPtr[first], p.HaloPtr[last]
	core := int64(p.Src)
	out := &exchange.HaloPlan{Src: p.Src, In: &graph.CSR{Indptr: make([]int64, p.In.Nodes()+1)}, Halo: p.Halo[lo:hi]}
	for v := range p.In.Nodes() {
		for _, u := range p.In.Neighbors(uint32(v)) {
			switch far := int64(u) - core; {
			case far < 0:
				out.In.Indices = append(out.In.Indices, u)
			case far >= lo && far < hi:
				out.In.Indices = append(out.In.Indices, u-uint32(lo))
			}
		}
		out.In.Indptr[v+1] = int64(len(out.In.Indices))
	}
	out.IDs = slices.Concat(p.IDs[:core], p.IDs[core+lo:core+hi])
	out.Degrees = &nn.Degrees{All: slices.Concat(p.Degrees.All[:core], p.Degrees.All[core+lo:core+hi])}
	if d := p.Degrees.NoLoops; d != nil {
		out.Degrees.NoLoops = slices.Concat(d[:core], d[core+lo:core+hi])
	}
	out.HaloPtr = between(p.HaloPtr, first, last)
	out.Send, out.SendPtr = p.Send[p.SendPtr[first]:p.SendPtr[last]], between(p.SendPtr, first, last)
	return out
}

// between are the bounds of ranks first to last-1 of a list by rank; others have nothing.
func between(ptr []int64, first, last int) []int64 {
	out := make([]int64, len(ptr))
	for q := range ptr {
		out[q] = ptr[min(max(q, first), last)] - ptr[first]
	}
	return out
}

// boundary is the edges between servers, the same on all workers.
type boundary struct {
	graph    *innet.Graph
	vertices []uint32 // numbers in the partition, ascending
	plan     *innet.Plan
	forward  [2]int // blocks
	backward [2]int // the same ones, where every edge has its reverse
}

// gather tells all workers of all edges between servers.
func gather(s *exchange.Setup) (*boundary, error) {
	w := s.W
	first, last := servers(w)
	var mine []uint32
	for v := range uint32(w.Part.Core()) {
		for _, u := range w.Part.In.Neighbors(v) {
			if from := w.Global(u); int(u) >= w.Part.Core() {
				if owner := w.Part.Book.Owner(from); owner < first || owner >= last {
					mine = append(mine, from, w.Global(v))
				}
			}
		}
	}
	b, _ := binary.Append(nil, binary.LittleEndian, mine)
	out := make([][]byte, w.End.Size())
	for q := range out {
		out[q] = b
	}
	in, err := s.Swap(wire.Topology, out)
	if err != nil {
		return nil, err
	}
	var src, dst []uint32
	for q, b := range in {
		r := exchange.NewReader(b)
		pairs := r.Numbers(len(b) / 4)
		if r.Below("vertex", w.Part.Book.Nodes, pairs...); r.Err() != nil {
			return nil, fmt.Errorf("an edge of worker %d has %w", q, r.Err())
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			src, dst = append(src, pairs[i]), append(dst, pairs[i+1])
		}
	}
	return newBoundary(w, src, dst), nil
}

func newBoundary(w *exchange.Worker, src, dst []uint32) *boundary {
	b := &boundary{graph: &innet.Graph{}}
	b.vertices = slices.Concat(src, dst)
	slices.Sort(b.vertices)
	b.vertices = slices.Compact(b.vertices)
	for _, v := range b.vertices {
		b.graph.Host = append(b.graph.Host, uint16(w.Part.Book.Owner(v)))
	}
	b.graph.Src, b.graph.Dst = b.numbers(src), b.numbers(dst)
	return b
}

// numbers are vertices by their places among those of the boundary.
func (b *boundary) numbers(list []uint32) []uint32 {
	out := make([]uint32, len(list))
	for i, v := range list {
		place, _ := slices.BinarySearch(b.vertices, v)
		out[i] = uint32(place)
	}
	return out
}

// divide makes the blocks of both directions, each of which fits the switch. All workers make the
// same ones.
func (b *boundary) divide(ctx context.Context, s *exchange.Setup, room innet.Budget) error {
	cut := func(vertices int, src, dst []uint32, parts, limit int) ([]uint32, error) {
		return cutBy(ctx, vertices, src, dst, parts, limit)
	}
	blocks, err := innet.Blocks(b.graph, room, cut)
	if err != nil {
		return err
	}
	b.forward = [2]int{0, len(blocks)}
	b.backward = b.forward
	if !mirrored(b.graph) {
		reverse := &innet.Graph{Host: b.graph.Host, Src: b.graph.Dst, Dst: b.graph.Src, Shuffled: b.graph.Shuffled,
			Division: b.graph.Division}
		more, err := innet.Blocks(reverse, room, cut)
		if err != nil {
			return err
		}
		b.backward = [2]int{len(blocks), len(blocks) + len(more)}
		blocks = append(blocks, more...)
	}
	b.plan = &innet.Plan{Blocks: blocks, Hosts: s.W.End.Size()}
	return nil
}

// cutBy is our multilevel partitioner.
func cutBy(ctx context.Context, vertices int, src, dst []uint32, parts, limit int) ([]uint32, error) {
	if parts < 2 {
		return make([]uint32, vertices), nil
	}
	g, err := graph.FromEdges(vertices, src, dst, nil,
		graph.BuildOptions{Symmetrize: true, DropDuplicates: true, DropSelfLoops: true})
	if err != nil {
		return nil, err
	}
	part, _, err := multilevel.Partition(ctx, &multilevel.Problem{Graph: g, Symmetric: true, Parts: parts, Seed: 1,
		Constraints: []multilevel.Constraint{{Limit: int64(limit)}}})
	return part, err
}

// mirrored reports whether every edge has its reverse, as often.
func mirrored(g *innet.Graph) bool {
	there, back := make([]uint64, len(g.Src)), make([]uint64, len(g.Src))
	for i, u := range g.Src {
		v := g.Dst[i]
		there[i], back[i] = uint64(u)<<32|uint64(v), uint64(v)<<32|uint64(u)
	}
	slices.Sort(there)
	slices.Sort(back)
	return slices.Equal(there, back)
}

// compare fails unless all workers have made the same blocks.
func (b *boundary) compare(s *exchange.Setup) error {
	sum := crc32.NewIEEE()
	for _, k := range b.plan.Blocks {
		binary.Write(sum, binary.LittleEndian, k.Rows)
		binary.Write(sum, binary.LittleEndian, k.Into)
		binary.Write(sum, binary.LittleEndian, k.Slots)
	}
	all, err := s.Share(float64(sum.Sum32()))
	if err != nil {
		return err
	}
	for q := range all {
		if all[q][0] != float64(sum.Sum32()) {
			return fmt.Errorf("workers %d and %d divide the boundary into other blocks; all need the same version of "+
				"starling", s.W.End.Rank(), q)
		}
	}
	return nil
}

// side is what a worker sends and receives in one direction: boundary vertices of its own.
type side struct {
	lo, hi     int
	sends      tensor.Index // local rows
	receives   tensor.Index
	sendsLocal []uint32
	recvLocal  []uint32
	place      []uint32 // of boundary vertices, among those that are sent or received
	recvPlace  []uint32
	rows       int64 // that leave, over all blocks
}

// side is a worker's part in blocks lo to hi.
func (b *boundary) side(w *exchange.Worker, blocks [2]int) *side {
	s := &side{lo: blocks[0], hi: blocks[1], rows: int64(b.plan.RowsFrom(w.End.Rank(), blocks[0], blocks[1]))}
	var sends, receives []uint32
	for _, k := range b.plan.Blocks[s.lo:s.hi] {
		sends, receives = append(sends, k.Rows...), append(receives, k.Slots...)
	}
	s.sendsLocal, s.place = b.own(w, sends)
	s.recvLocal, s.recvPlace = b.own(w, receives)
	s.sends, s.receives = tensor.Indices(w.Dev, s.sendsLocal), tensor.Indices(w.Dev, s.recvLocal)
	return s
}

// own are the local numbers of this worker's vertices among some, and where each is.
func (b *boundary) own(w *exchange.Worker, some []uint32) (local, place []uint32) {
	place = make([]uint32, len(b.vertices))
	seen := make([]bool, len(b.vertices))
	for _, v := range some {
		seen[v] = true
	}
	for v, yes := range seen {
		if !yes {
			continue
		}
		if at, mine := w.Own(b.vertices[v]); mine {
			place[v] = uint32(len(local))
			local = append(local, at)
		}
	}
	return local, place
}
