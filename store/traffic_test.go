package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"starling/coflow"
	"starling/graph"
	"starling/internal/testseed"
	"starling/rng"
	"starling/store"
	"starling/train/traintest"
)

// TestPlannedIsCounted: what pulling rows and labels and pushing gradients is planned to take, by owner, is what is
// counted; and draws count what a batch's sampler reports.
func TestPlannedIsCounted(t *testing.T) {
	seed := testseed.New(t)
	d := traintest.Communities(t, 90, false)
	parts := traintest.Cut(t, d, "random", 3)
	for _, c := range []struct {
		packed  store.Packed
		columns int
		cache   int
		bf16    bool
	}{{}, {packed: store.BF16}, {packed: store.Int8}, {columns: 5}, {packed: store.Int8, columns: 3}, {cache: 9},
		{cache: 9, packed: store.BF16}, {bf16: true}, {bf16: true, columns: 4}} {
		if c.bf16 && d.Features.BF16 == nil {
			d.Features = traintest.Rounded(d.Features)
			d.Meta.Features.Kind = graph.BFloat16
			parts = traintest.Cut(t, d, "random", 3)
		}
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			onStores(t, parts, true, store.Options{Rows: c.packed}, func(s *store.Store, rank int) error {
				p := s.Puller()
				if c.cache > 0 {
					if err := s.UseStatic(context.Background(), c.cache, s.HaloDegrees()); err != nil {
						return err
					}
				}
				if c.columns > 0 {
					s.PlanColumns(c.columns)
					if err := p.Keep(store.NewColumns(count(c.columns), d.Features.Cols)); err != nil {
						return err
					}
				}
				for round := range 3 {
					numbers := rng.New(seed).Fold(uint64(rank)).Fold(uint64(round)).Perm(90)[:40]
					if err := checkPlanned(s, p, numbers); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// checkPlanned pulls rows and labels of some vertices.
func checkPlanned(s *store.Store, p *store.Puller, numbers []uint32) error {
	plan, before := make([]store.Traffic, s.Book.Parts), s.Traffic()
	s.AddFeatures(plan, numbers)
	s.AddLabels(plan, numbers)
	var f graph.Features
	var l graph.Labels
	if err := p.Features(context.Background(), coflow.ID{}, &f, numbers); err != nil {
		return err
	}
	if err := p.Labels(context.Background(), coflow.ID{}, &l, numbers); err != nil {
		return err
	}
	return sameTraffic(plan, before, s.Traffic())
}

func sameTraffic(plan, before, after []store.Traffic) error {
	for q := range plan {
		if got := after[q].Since(before[q]); got != plan[q] {
			return fmt.Errorf("%+v with worker %d, planned %+v", got, q, plan[q])
		}
	}
	return nil
}

// TestPlannedEmbeddings: pulling learnt rows and pushing their gradients takes what was planned, in both ways.
func TestPlannedEmbeddings(t *testing.T) {
	seed := testseed.New(t)
	for _, size := range []int{4, 8} {
		parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 3)
		var ready sync.WaitGroup
		ready.Add(len(parts))
		onStores(t, parts, true, store.Options{}, func(s *store.Store, rank int) error {
			e, err := s.AddEmbeddings(5, size, false, seed)
			ready.Done()
			if ready.Wait(); err != nil {
				return err
			}
			p := s.Puller()
			for step, async := range []bool{false, true, false} {
				numbers := rng.New(seed).Fold(uint64(rank)).Fold(uint64(step)).Perm(60)[:25]
				plan, before := make([]store.Traffic, s.Book.Parts), s.Traffic()
				e.AddPull(plan, numbers)
				e.AddPush(plan, numbers, async)
				if err := e.Pull(context.Background(), p, coflow.ID{}, make([]byte, 25*5*size), numbers); err != nil {
					return err
				}
				gradients := make([]float64, 25*5)
				if async {
					err = e.Async(context.Background(), coflow.ID{}, 0.1, numbers, e.Bytes(gradients))
				} else {
					err = e.Step(context.Background(), coflow.ID{}, step, 0.1, numbers, e.Bytes(gradients))
				}
				if err != nil {
					return err
				}
				if err := sameTraffic(plan, before, s.Traffic()); err != nil {
					return fmt.Errorf("step %d: %w", step, err)
				}
			}
			return nil
		})
	}
}

// TestPullInParts: a pull in three steps fills what a pull in one fills, for dense and for sparse rows.
func TestPullInParts(t *testing.T) {
	seed := testseed.New(t)
	for _, sparse := range []bool{false, true} {
		parts := traintest.Cut(t, traintest.Communities(t, 60, sparse), "random", 3)
		onStores(t, parts, true, store.Options{}, func(s *store.Store, rank int) error {
			numbers := rng.New(seed).Fold(uint64(rank)).Perm(60)[:30]
			var got, want graph.Features
			if err := s.Puller().Features(context.Background(), coflow.ID{}, &want, numbers); err != nil {
				return err
			}
			p := s.Puller()
			for range 2 { // memory is used again
				if err := p.AskFeatures(coflow.ID{}, &got, numbers); err != nil {
					return err
				}
				if err := p.Wait(context.Background()); err != nil {
					return err
				}
				if err := p.Take(); err != nil {
					return err
				}
				if !slices.Equal(got.F32, want.F32) || !slices.Equal(got.Indices, want.Indices) ||
					!slices.Equal(got.Values, want.Values) || !slices.Equal(got.Indptr, want.Indptr) {
					return fmt.Errorf("%+v, want %+v", got, want)
				}
			}
			return nil
		})
	}
}
