package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/train/traintest"
)

// keptDraws are batches by all samplers that draw edges, as text.
func keptDraws(s *store.Store, opt store.Options, rank int, seed uint64) (list []string, err error) {
	var b sample.Batch
	var known store.Known
	n, fanouts, ctx := int(s.Book.Nodes), []int{3, sample.All, 2}, context.Background()
	add := func(err error) error {
		list = append(list, fmt.Sprint(b.Vertices, b.Seeds, b.Blocks, known))
		return err
	}
	for batch := range 2 {
		seeds := rng.New(seed).Fold(uint64(rank)).Fold(uint64(batch)).Perm(n)[:10]
		m := s.Sampler(fanouts, seed, opt)
		if err := add(m.Sample(ctx, &b, &known, seeds, 3, batch)); err != nil {
			return nil, err
		}
		if !opt.Weighted { // pairs are not drawn by weight
			m.Exclude(edgesTo(&b))
			if err := add(m.Sample(ctx, &b, &known, seeds, 3, batch)); err != nil {
				return nil, err
			}
		}
		chunks := s.Chunks(fanouts, seed, opt)
		chunks.Least = 4
		chunks.Begin(&b, &known, 3, batch)
		if err := add(chunks.Sample(ctx, seeds)); err != nil {
			return nil, err
		}
		if s.Book.Schema != nil || opt.Weighted {
			continue
		}
		if err := add(s.Expansion(2, 3).Sample(ctx, &b, &known, seeds, 3, batch)); err != nil {
			return nil, err
		}
		if err := add(s.LADIES([]int{20, 10}, seed).Sample(ctx, &b, &known, seeds, nil, 3, batch)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// edgesTo are edges of a batch's last layer, which are left out of another.
func edgesTo(b *sample.Batch) (list []store.Excluded) {
	x := &b.Blocks[len(b.Blocks)-1]
	for i := range x.Dst {
		if e := x.Indptr[i]; e < x.Indptr[i+1] && len(x.Relations) == 0 {
			list = append(list, store.Excluded{Vertex: b.Vertices[i], Source: b.Vertices[x.Indices[e]], Weight: 1})
		} else if e < x.Indptr[i+1] {
			list = append(list, store.Excluded{Vertex: b.Vertices[i], Source: b.Vertices[x.Indices[e]],
				Relation: int(x.Relations[e])})
		}
	}
	return list
}

// TestKeptEdgesDrawTheSame: with in-edges of vertices of other hosts kept, in much or little memory, every sampler draws
// what owners draw, to the bit, and asks owners for what is not kept. Memory stays within its bound.
func TestKeptEdgesDrawTheSame(t *testing.T) {
	seed := testseed.New(t)
	plain := func(weighted bool) *graph.Dataset {
		d := traintest.WithLoops(t, traintest.Communities(t, 90, false), false)
		if weighted {
			weigh(d.Graph)
		}
		return d
	}
	for name, c := range map[string]struct {
		d   *graph.Dataset
		opt store.Options
	}{
		"plain":                     {plain(false), store.Options{}},
		"replace":                   {plain(false), store.Options{Replace: true}},
		"weights":                   {plain(true), store.Options{}},
		"by weight":                 {plain(true), store.Options{Weighted: true}},
		"by weight, with repeats":   {plain(true), store.Options{Weighted: true, Replace: true}},
		"features of edges":         {traintest.WithEdgeFeatures(plain(false)), store.Options{}},
		"types":                     {traintest.Typed(t, 40), store.Options{}},
		"types, fanouts of each":    {traintest.Typed(t, 40), store.Options{RelationFanouts: [][]int{{1, 0, sample.All}}}},
		"draws by calls, same host": {plain(false), store.Options{DrawByCalls: true}},
	} {
		parts := traintest.Cut(t, c.d, "random", 3)
		for _, most := range []int64{0, 6000, 1 << 30} {
			t.Run(fmt.Sprint(name, " ", most), func(t *testing.T) {
				sentByStores(t, parts, !c.opt.DrawByCalls, c.opt, func(s *store.Store, rank int) error {
					return sameKept(s, c.opt, rank, seed, most)
				})
			})
		}
	}
}

// sameKept draws batches before and after edges are kept.
func sameKept(s *store.Store, opt store.Options, rank int, seed uint64, most int64) error {
	s.CountDraws()
	want, err := keptDraws(s, opt, rank, seed)
	if err != nil {
		return err
	}
	before := s.Traffic()
	if err := s.KeepEdges(context.Background(), store.KeepOptions{Bytes: []int64{most}, Times: 1e6, Draws: opt}); err != nil {
		return err
	}
	between := s.Traffic()
	kept, bytes := s.KeptEdges()
	if bytes > most || (kept > 0) != (most > 0) {
		return fmt.Errorf("edges of %d vertices are kept in %d bytes, with %d", kept, bytes, most)
	}
	got, err := keptDraws(s, opt, rank, seed)
	if err != nil {
		return err
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("batch %d:\n%s, expected\n%s", i, got[i], want[i])
		}
	}
	sum := func(list []store.Traffic) (n int64) {
		for _, t := range list {
			n += t.Requests + t.Edges
		}
		return n
	}
	first, then := sum(before), sum(s.Traffic())-sum(between)
	if most == 0 && then != first || most > 0 && then >= first || most == 1<<30 && then > 0 {
		return fmt.Errorf("%d bytes of draws, %d before %d bytes of edges were kept", then, first, bytes)
	}
	return nil
}

// TestKeptEdgesMustPay: no edges are brought that take more than they save.
func TestKeptEdgesMustPay(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 90, false), "random", 3)
	onStores(t, parts, true, store.Options{}, func(s *store.Store, rank int) error {
		s.CountDraws()
		if _, err := keptDraws(s, store.Options{}, rank, 1); err != nil {
			return err
		}
		before := s.Traffic()
		err := s.KeepEdges(context.Background(), store.KeepOptions{Bytes: []int64{1 << 30}, Times: 0.01})
		if kept, _ := s.KeptEdges(); kept > 0 || !slices.Equal(s.Traffic(), before) {
			return fmt.Errorf("edges of %d vertices are kept: %w", kept, err)
		}
		return err
	})
}
