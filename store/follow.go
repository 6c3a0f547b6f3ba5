package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"starling/coflow"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/wire"
)

// Walks, of GraphSAINT and of unsupervised pairs, and GraphSAINT's draws of edges follow an in-edge
// of a vertex, which its owner chooses:
//
//	follow edges    how, step, numbers [n] uint32, what each chooses by [n] uint64 → numbers [n]
//	count walks     of each walk how many vertices it visits and their numbers → nothing
const (
	followService = "follow edges"
	countService  = "count walks"
)

// How an in-edge is chosen.
const (
	byWalk   uint32 = iota // by the walk's key
	byWeight               // where weights sum to over a float64
)

const nowhere = math.MaxUint32 // after a vertex without in-edges

// follow is the source of the in-edge that a vertex of the part chooses. By weight a vertex without any chooses itself.
func (o *Owner) follow(how, step, v uint32, by uint64) uint32 {
	p := o.part
	row, first := p.In.Neighbors(v), p.In.Indptr[v]
	if len(row) == 0 {
		if how == byWeight {
			return o.number(v)
		}
		return nowhere
	}
	source := func(i int) uint32 { return row[p.DatasetOrder.At(first+int64(i))] }
	if how == byWalk {
		return o.number(source(sample.WalkStep(rng.Key(by), int(step), len(row))))
	}
	x := math.Float64frombits(by)
	for i := range row {
		u := source(i)
		if x -= sample.EdgeWeight(int(p.Degrees[u]), int(p.Degrees[v])); x < 0 {
			return o.number(u)
		}
	}
	return o.number(source(len(row) - 1))
}

func (s *Store) serveFollow(_ context.Context, r *wire.Request) (wire.Response, error) {
	if len(r.Body) < 8 || (len(r.Body)-8)%12 != 0 {
		return wire.Response{}, fmt.Errorf("edges to follow in %d bytes", len(r.Body))
	}
	how, step, n := binary.LittleEndian.Uint32(r.Body), binary.LittleEndian.Uint32(r.Body[4:]), (len(r.Body)-8)/12
	own := s.here[s.Part.Meta.Part]
	local, err := own.local(nil, numbersOf(r.Body[8:8+4*n]))
	if err != nil {
		return wire.Response{}, err
	}
	by, out := r.Body[8+4*n:], make([]uint32, n)
	for i, v := range local {
		out[i] = own.follow(how, step, v, binary.LittleEndian.Uint64(by[8*i:]))
	}
	return wire.Response{Kind: wire.Topology, Body: bytesOf(out)}, nil
}

// followers follow edges of vertices wherever these are. It is used by one goroutine.
type followers struct {
	w    *draws // counts bytes
	by   split
	list []uint32
}

// follow puts the sources of the edges that vertices choose in their places.
func (f *followers) follow(ctx context.Context, id coflow.ID, how, step uint32, vertices []uint32, by []uint64) error {
	s := f.w.s
	f.w.grow()
	s.split(&f.by, s.Book.Offsets, vertices)
	type asked struct {
		part   int
		places []uint32
		reply  *wire.Reply
	}
	var calls []asked
	err := s.remoteFirst(&f.by, s.drawsHere, func(q int, places []uint32) error {
		for some := range slices.Chunk(places, (maxRequest-8)/12) {
			body, _ := binary.Append(nil, binary.LittleEndian, []uint32{how, step})
			for _, i := range some {
				body = binary.LittleEndian.AppendUint32(body, vertices[i])
			}
			for _, i := range some {
				body = binary.LittleEndian.AppendUint64(body, by[i])
			}
			f.w.count(q, len(body), 4*len(some))
			calls = append(calls, asked{q, some, s.end.Call(q, wire.Call{Service: followService, Coflow: id,
				Kind: wire.Topology, Request: body})})
		}
		return nil
	}, func(q int, places []uint32) error {
		for _, i := range places {
			vertices[i] = s.here[q].follow(how, step, vertices[i]-s.here[q].first, by[i])
		}
		return nil
	})
	for _, c := range calls {
		body, failed := c.reply.Wait(ctx)
		if failed == nil && len(body) != 4*len(c.places) {
			failed = fmt.Errorf("%d bytes for %d edges", len(body), len(c.places))
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("following edges of worker %d's vertices: %w", c.part, failed))
			continue
		}
		for k, v := range numbersOf(body) {
			if v != nowhere && int64(v) >= s.Book.Nodes {
				return fmt.Errorf("vertex %d of %d", v, s.Book.Nodes)
			}
			vertices[c.places[k]] = v
		}
	}
	return err
}

// count adds bytes that are sent to an owner and received from it.
func (w *draws) count(q, sent, received int) {
	w.sent[q] += int64(sent)
	w.received[q] += int64(received)
	w.s.traffic[q].requests.Add(int64(sent))
	w.s.traffic[q].edges.Add(int64(received))
}

// walk goes along walks that begin at some vertices (numbers), so many steps of each or until one
// has no in-edges, and gives visit where each comes by.
func (f *followers) walk(ctx context.Context, id coflow.ID, begin []uint32, keys []uint64, steps func(walk int) int,
	visit func(walk int, number uint32)) error {
	at, by := slices.Clone(begin), slices.Clone(keys)
	going := make([]int, len(begin)) // walks that have not ended
	for i := range going {
		going[i] = i
	}
	keep := func(stays func(k int) bool) {
		n := 0
		for k := range going {
			if stays(k) {
				going[n], at[n], by[n] = going[k], at[k], by[k]
				n++
			}
		}
		going, at, by = going[:n], at[:n], by[:n]
	}
	for step := 0; ; step++ {
		if keep(func(k int) bool { return steps(going[k]) > step }); len(going) == 0 {
			return nil
		}
		if err := f.follow(ctx, id, byWalk, uint32(step), at, by); err != nil {
			return err
		}
		keep(func(k int) bool { return at[k] != nowhere })
		for k, v := range at {
			visit(going[k], v)
		}
	}
}

// paths are those of walks of equal length, each from where it begins.
func (f *followers) paths(ctx context.Context, id coflow.ID, begin []uint32, keys []uint64, length int) ([][]uint32,
	error) {
	out := make([][]uint32, len(begin))
	for i, v := range begin {
		out[i] = append(make([]uint32, 0, length+1), v)
	}
	err := f.walk(ctx, id, begin, keys, func(int) int { return length },
		func(walk int, v uint32) { out[walk] = append(out[walk], v) })
	return out, err
}

// Walks is where walks from some vertices end, after so many steps of each or at a vertex without
// in-edges: step i by draw 1+i of its key.
func (s *Store) Walks(ctx context.Context, id coflow.ID, from []uint32, keys []rng.Key, steps []int) ([]uint32, error) {
	by, ends := make([]uint64, len(keys)), slices.Clone(from)
	for i, key := range keys {
		by[i] = uint64(key)
	}
	f := &followers{w: &draws{s: s}}
	err := f.walk(ctx, id, from, by, func(walk int) int { return steps[walk] },
		func(walk int, v uint32) { ends[walk] = v })
	return ends, err
}

// walkCounts are what GraphSAINT's probabilities need to know of walks that were drawn before
// training, of a part's vertices and in-edges: see sample.SAINTWalkDraws.
type walkCounts struct {
	again []uint32
	apart []int32
}

// add counts a walk.
func (c *walkCounts) add(o *Owner, visited []uint32) {
	own := func(number uint32) (uint32, bool) {
		v := number - o.first
		return v, v < uint32(o.part.Core())
	}
	sample.CountWalk(visited, func(number uint32) {
		if v, ok := own(number); ok {
			atomic.AddUint32(&c.again[v], 1)
		}
	}, func(from, to uint32, n int32) {
		v, ok := own(to)
		if !ok {
			return
		}
		for e := o.part.In.Indptr[v]; e < o.part.In.Indptr[v+1]; e++ {
			if o.number(o.part.In.Indices[e]) == from {
				atomic.AddInt32(&c.apart[e], n)
			}
		}
	})
}

// of is what was counted at in-edge i, in the dataset's order, of a vertex.
func (c *walkCounts) of(p *partition.Part, v uint32, i int64) int32 {
	first := p.In.Indptr[v]
	return c.apart[first+int64(p.DatasetOrder.At(first+i))]
}

func (s *Store) serveCount(_ context.Context, r *wire.Request) (wire.Response, error) {
	own, list := s.here[s.Part.Meta.Part], numbersOf(r.Body)
	for len(list) > 0 {
		n := int(list[0])
		if n >= len(list) {
			return wire.Response{}, fmt.Errorf("a walk of %d vertices in %d bytes", n, 4*len(list))
		}
		s.walkCounts().add(own, list[1:1+n])
		list = list[1+n:]
	}
	return wire.Response{Kind: wire.Topology}, nil
}

// walkCounts are this worker's, made when first needed.
func (s *Store) walkCounts() *walkCounts {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	own := s.here[s.Part.Meta.Part]
	if own.counts == nil {
		own.counts = &walkCounts{again: make([]uint32, s.Part.Core()), apart: make([]int32, s.Part.In.Edges())}
	}
	return own.counts
}

// CountWalks finds how often GraphSAINT's walks are expected to visit each vertex and go on from it,
// and counts walks, each worker those of its share of batches. It gives all workers the probability
// that a walk visits a vertex, how often one goes on from it, and how many in-edges it has; and how
// many walks were counted. All workers call it.
func (s *Store) CountWalks(ctx context.Context, walks, length, batches int, seed uint64) (*Vertices, int, error) {
	ids, err := s.share(ctx, nil, func([]sample.Sum) [][]float64 { return nil })
	if err != nil {
		return nil, 0, err
	}
	expected := sample.NewExpectedVisits(s.Part.In)
	for range length {
		sums, err := s.addUp(ctx, expected.Leave(len(s.Part.IDs)))
		if err != nil {
			return nil, 0, err
		}
		expected.Arrive(sums)
	}
	all, key := sample.CountingBatches(batches, seed)
	if err := s.countAll(ctx, ids, key, all, walks, length); err != nil {
		return nil, 0, err
	}
	v, err := s.share(ctx, nil, func([]sample.Sum) [][]float64 {
		visits, steps := expected.Of(int(s.Book.Nodes))
		degrees, counts := make([]float64, len(visits)), s.walkCounts()
		for v := range visits {
			visits[v] = sample.WalkVisits(visits[v], counts.again[v], float64(all*walks), length)
			degrees[v] = float64(s.Part.Degrees[v])
		}
		return [][]float64{visits, steps, degrees}
	})
	return v, all * walks, err
}

// countAll counts the walks of this worker's share of batches.
func (s *Store) countAll(ctx context.Context, ids *Vertices, key rng.Key, batches, walks, length int) error {
	f := &followers{w: &draws{s: s}}
	each := max(1, countedAtOnce/(walks*(length+1)))
	var some []int
	for i := s.Part.Meta.Part; i < batches; i += len(s.here) {
		if some = append(some, i); len(some) == each || i+len(s.here) >= batches {
			if err := s.countSome(ctx, f, ids, key, some, walks, length); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return nil
}

// countedAtOnce is about how many visits are counted by one message.
const countedAtOnce = 1 << 18

// countSome has the owners of their vertices count the walks of some batches.
func (s *Store) countSome(ctx context.Context, f *followers, ids *Vertices, key rng.Key, batches []int, walks,
	length int) (err error) {
	var begin []uint32
	var keys []uint64
	for _, b := range batches {
		for i := range uint64(walks) {
			walk, v := sample.WalkBegins(key.Fold(uint64(b)), i, len(ids.Number))
			begin, keys = append(begin, ids.Number[v]), append(keys, uint64(walk))
		}
	}
	paths, err := f.paths(ctx, sharedOnce, begin, keys, length)
	if err != nil {
		return err
	}
	messages := make([][]uint32, len(s.here))
	last := make([]int, len(s.here)) // the last walk in a message
	for i, path := range paths {
		for _, v := range path {
			if q := s.Book.Owner(v); last[q] <= i {
				last[q] = i + 1
				messages[q] = append(append(messages[q], uint32(len(path))), path...)
			}
		}
	}
	return s.countAt(ctx, f, messages)
}

// countAt gives each owner its message.
func (s *Store) countAt(ctx context.Context, f *followers, messages [][]uint32) (err error) {
	var calls []*wire.Reply
	for q, m := range messages {
		if len(m) > 0 && q != s.Part.Meta.Part {
			f.w.count(q, 4*len(m), 0)
			calls = append(calls, s.end.Call(q, wire.Call{Service: countService, Coflow: sharedOnce,
				Kind: wire.Topology, Request: bytesOf(m)}))
		}
	}
	_, err = s.serveCount(ctx, &wire.Request{Body: bytesOf(messages[s.Part.Meta.Part])})
	for _, c := range calls {
		_, failed := c.Wait(ctx)
		err = errors.Join(err, failed)
	}
	return err
}
