package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"starling/coflow"
	"starling/rng"
	"starling/sample"
	"starling/wire"
)

// Walks, of GraphSAINT and of unsupervised pairs, and GraphSAINT's draws of edges follow an in-edge
// of a vertex, which its owner chooses:
//
//	follow edges   how, step uint32, numbers [n] uint32, what each chooses by [n] uint64 → numbers [n] uint32
const (
	followService = "follow edges"
	followHead    = 8
	followEach    = 12
)

// How an in-edge is chosen.
const (
	byWalk   uint32 = iota // by the walk's key
	byWeight               // where weights sum to over a float64
)

const nowhere = math.MaxUint32 // after a vertex without in-edges

// follow is the source of the in-edge that a vertex of the part chooses. By weight, a vertex without any chooses
// itself.
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

// following is a request: the vertices at places, and what each chooses by.
func following(how, step uint32, vertices []uint32, by []uint64, places []uint32) []byte {
	put := binary.LittleEndian
	b := put.AppendUint32(make([]byte, 0, followHead+followEach*len(places)), how)
	b = put.AppendUint32(b, step)
	b = appendAt(b, vertices, places)
	for _, i := range places {
		b = put.AppendUint64(b, by[i])
	}
	return b
}

// parseFollowing reads what following wrote.
func parseFollowing(b []byte) (how, step uint32, numbers []uint32, by []uint64, err error) {
	r := reader{b: b}
	how, step = r.one(), r.one()
	n := len(r.b) / followEach
	numbers, by = r.numbers(n), listOf[uint64](r.take(n, 8))
	if r.short || len(r.b) > 0 || how > byWeight {
		err = fmt.Errorf("edges to follow in %d bytes, chosen by %d", len(b), how)
	}
	return how, step, numbers, by, err
}

// serveFollow answers with the sources of edges of this worker's vertices.
func (s *Store) serveFollow(_ context.Context, r *wire.Request) (wire.Response, error) {
	how, step, numbers, by, err := parseFollowing(r.Body)
	own := s.own()
	if err == nil {
		err = own.local(numbers)
	}
	if err != nil {
		return wire.Response{}, err
	}
	for i, v := range numbers {
		numbers[i] = own.follow(how, step, v, by[i])
	}
	return wire.Response{Kind: wire.Topology, Body: bytesOf(numbers)}, nil
}

// parseFollowed reads the reply to a request about n vertices of a graph.
func parseFollowed(b []byte, n int, nodes int64) ([]uint32, error) {
	if len(b) != 4*n {
		return nil, fmt.Errorf("%d bytes for %d edges", len(b), n)
	}
	sources := numbersOf(b)
	for _, v := range sources {
		if v != nowhere && int64(v) >= nodes {
			return nil, fmt.Errorf("vertex %d of %d", v, nodes)
		}
	}
	return sources, nil
}

// followers follow edges of vertices wherever these are. It is used by one goroutine.
type followers struct {
	w     *draws // counts bytes
	by    split
	calls calls
}

func newFollowers(w *draws) followers {
	return followers{w: w, calls: w.s.newCalls(followService, "following edges of the vertices of")}
}

// follow puts the sources of the edges that vertices choose in their places.
func (f *followers) follow(ctx context.Context, id coflow.ID, how, step uint32, vertices []uint32, by []uint64) error {
	if err := errors.Join(f.ask(id, how, step, vertices, by), f.wait(ctx)); err != nil {
		return err
	}
	return f.take(vertices)
}

// ask has the owners of vertices follow edges: remote ones are called, and those that are here are followed now.
func (f *followers) ask(id coflow.ID, how, step uint32, vertices []uint32, by []uint64) error {
	s := f.w.s
	s.split(&f.by, s.Book.Offsets, vertices)
	f.calls.list = f.calls.list[:0]
	return s.remoteFirst(&f.by, s.drawsHere, func(q int, places []uint32) error {
		for some := range slices.Chunk(places, (maxRequest-followHead)/followEach) {
			request := following(how, step, vertices, by, some)
			f.w.sent[q] += int64(len(request))
			f.calls.send(id, q, some, request, 4*len(some))
		}
		return nil
	}, func(q int, places []uint32) error {
		for _, i := range places {
			vertices[i] = s.here[q].follow(how, step, vertices[i]-s.here[q].first, by[i])
		}
		return nil
	})
}

// wait waits for the replies of remote owners. None is under way after it.
func (f *followers) wait(ctx context.Context) error {
	err := f.calls.wait(ctx)
	for _, c := range f.calls.list {
		f.w.received[c.part] += int64(c.bytes())
	}
	return err
}

// take puts these in their places.
func (f *followers) take(vertices []uint32) error {
	for _, c := range f.calls.list {
		sources, err := parseFollowed(c.body, len(c.places), f.w.s.Book.Nodes)
		if err != nil {
			return fmt.Errorf("following edges of the vertices of worker %d: %w", c.part, err)
		}
		for k, i := range c.places {
			vertices[i] = sources[k]
		}
	}
	return nil
}

// walk goes along walks that begin at some vertices (numbers), until each has taken its steps or has no in-edges, and
// gives visit every vertex that a walk reaches.
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

// paths are the vertices of walks of equal length, in their order.
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

// Walks is where walks from some vertices end, each after its steps or at a vertex without
// in-edges: step i by draw 1+i of its key.
func (s *Store) Walks(ctx context.Context, id coflow.ID, from []uint32, keys []rng.Key, steps []int) ([]uint32, error) {
	by, ends := make([]uint64, len(keys)), slices.Clone(from)
	for i, key := range keys {
		by[i] = uint64(key)
	}
	w := newDraws(s, Options{})
	f := newFollowers(&w)
	err := f.walk(ctx, id, from, by, func(walk int) int { return steps[walk] },
		func(walk int, v uint32) { ends[walk] = v })
	return ends, err
}
