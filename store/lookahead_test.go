package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"starling/coflow"
	"starling/graph"
	"starling/rng"
	"starling/store"
	"starling/train/traintest"
)

// lookedAhead are batches of some vertices, more often of those with low numbers.
func lookedAhead(batches, size, nodes int) (lists [][]uint32) {
	key := rng.New(7)
	for k := range batches {
		var list []uint32
		for i := range size {
			x := key.Float64(uint64(k*size + i))
			list = append(list, uint32(x*x*float64(nodes)))
		}
		lists = append(lists, slices.Compact(slices.Sorted(slices.Values(list))))
	}
	return lists
}

// TestLookaheadHoldsRowsOfFewBatches: batches that wait for their turn hold no rows, however many are known, and all
// have the dataset's rows in the end, with a cache of any size.
func TestLookaheadHoldsRowsOfFewBatches(t *testing.T) {
	d := traintest.Communities(t, 600, false)
	parts := traintest.Cut(t, d, "random", 3)
	ids, _ := numbering(parts)
	lists := lookedAhead(24, 60, 600)
	for _, held := range []int{1, 2, 5} {
		for _, rows := range []int64{0, 1, 40, 600} {
			onStores(t, parts, true, store.Options{}, func(s *store.Store, _ int) error {
				return aheadOf(s, d, ids, lists, held, rows*s.RowBytes(ids[:1]))
			})
		}
	}
}

// aheadOf pulls batches as a pipeline does: each by a goroutine, given back in order.
func aheadOf(s *store.Store, d *graph.Dataset, ids []uint32, lists [][]uint32, held int, bytes int64) error {
	const window = 5
	l := s.NewLookahead(store.LookaheadOptions{Bytes: bytes, Window: window, Held: held, Total: int64(len(lists))})
	var having, most atomic.Int64
	var wg sync.WaitGroup
	errs, rows := make([]error, len(lists)), make([]graph.Features, len(lists))
	ready := make([]chan struct{}, len(lists))
	for k, list := range lists {
		ready[k] = make(chan struct{})
		wg.Go(func() {
			defer close(ready[k])
			p := l.Puller()
			p.Begin(int64(k))
			errs[k] = p.Features(context.Background(), coflow.ID{}, &rows[k], list)
			if n := having.Add(1); n > most.Load() {
				most.Store(n)
			}
			errs[k] = p.End(context.Background(), errs[k])
		})
	}
	defer wg.Wait()
	got, want := make([]float32, d.Features.Cols), make([]float32, d.Features.Cols)
	for k, list := range lists {
		<-ready[k]
		if errs[k] != nil {
			return errs[k]
		}
		for i, v := range list {
			rows[k].CopyRow(got, uint32(i))
			if d.Features.CopyRow(want, ids[v]); !slices.Equal(got, want) {
				return fmt.Errorf("batch %d: other features of vertex %d than the dataset's", k, v)
			}
		}
		having.Add(-1)
		l.Return(&rows[k])
	}
	if n := most.Load(); n > int64(held) {
		return fmt.Errorf("%d batches had their rows at a time, %d may", n, held)
	}
	return nil
}
