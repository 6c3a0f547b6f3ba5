package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/wire"
)

// Walks are counted before training, each by the owners of the vertices that it visits:
//
//	count walks   of each walk: n uint32, numbers [n] uint32 → nothing
const countService = "count walks"

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

// appendWalk appends a walk to a request.
func appendWalk(list, path []uint32) []uint32 {
	return append(append(list, uint32(len(path))), path...)
}

// mostWalk is the most vertices of a walk: counting one takes more than their square.
const mostWalk = 1 << 10

// parseWalks reads what appendWalk appended.
func parseWalks(b []byte) (paths [][]uint32, err error) {
	r := reader{b: b}
	for len(r.b) > 0 {
		n := r.one()
		if n < 1 || n > mostWalk {
			return nil, fmt.Errorf("a walk of %d vertices, expected 1 to %d", n, mostWalk)
		}
		paths = append(paths, r.numbers(int(n)))
	}
	if r.short {
		return nil, fmt.Errorf("walks in %d bytes, fewer than their vertices take", len(b))
	}
	return paths, nil
}

// serveCount counts walks at this worker's vertices.
func (s *Store) serveCount(_ context.Context, r *wire.Request) (wire.Response, error) {
	return wire.Response{Kind: wire.Topology}, s.count(r.Body)
}

func (s *Store) count(body []byte) error {
	paths, err := parseWalks(body)
	for _, path := range paths {
		s.walkCounts().add(s.own(), path)
	}
	return err
}

// walkCounts are this worker's, made when first needed.
func (s *Store) walkCounts() *walkCounts {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	own := s.own()
	if own.counts == nil {
		own.counts = &walkCounts{again: make([]uint32, s.Part.Core()), apart: make([]int32, s.Part.In.Edges())}
	}
	return own.counts
}

// CountWalks finds how often GraphSAINT's walks are expected to visit each vertex and go on from it,
// and counts walks, each worker the walks of its share of batches. It gives all workers the probability
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
	w := newDraws(s, Options{})
	f := newFollowers(&w)
	each := max(1, countedAtOnce/(walks*(length+1)))
	var some []int
	for i := s.Part.Meta.Part; i < batches; i += len(s.here) {
		if some = append(some, i); len(some) == each || i+len(s.here) >= batches {
			if err := s.countSome(ctx, &f, ids, key, some, walks, length); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return nil
}

// countedAtOnce is about the number of visits that one message counts.
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
			q := s.Book.Owner(v)
			if last[q] > i {
				continue
			}
			if last[q] = i + 1; 4*(len(messages[q])+1+len(path)) > maxRequest {
				if err := s.countAt(ctx, messages); err != nil {
					return err
				}
				clear(messages)
			}
			messages[q] = appendWalk(messages[q], path)
		}
	}
	return s.countAt(ctx, messages)
}

// countAt gives each owner its message.
func (s *Store) countAt(ctx context.Context, messages [][]uint32) error {
	calls := s.newCalls(countService, "counting walks at")
	for q, m := range messages {
		if len(m) > 0 && !s.isOwn(q) {
			calls.send(sharedOnce, q, nil, bytesOf(m), noReply)
		}
	}
	return errors.Join(s.count(bytesOf(messages[s.Part.Meta.Part])), calls.wait(ctx))
}
