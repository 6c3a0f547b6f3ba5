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
				return aheadOf(s, d, ids, lists, store.LookaheadOptions{Window: 5, Held: held,
					Bytes: rows * s.RowBytes(ids[:1])})
			})
		}
	}
}

// aheadOf pulls batches as a pipeline does: each by a goroutine, given back in order.
func aheadOf(s *store.Store, d *graph.Dataset, ids []uint32, lists [][]uint32, o store.LookaheadOptions) error {
	o.Total = int64(len(lists))
	l := s.NewLookahead(o)
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
	if n := most.Load(); n > int64(o.Held) {
		return fmt.Errorf("%d batches had their rows at a time, %d may", n, o.Held)
	}
	return nil
}

// TestLookaheadGroups: batches that are asked for together have the dataset's rows, as those by themselves, in fewer
// requests, and fetch no more rows where the cache is small.
func TestLookaheadGroups(t *testing.T) {
	d := traintest.Communities(t, 600, false)
	parts := traintest.Cut(t, d, "random", 3)
	ids, _ := numbering(parts)
	lists := lookedAhead(24, 60, 600)
	for _, rows := range []int64{0, 20, 600} {
		fetched, requests := make([]int64, 4), make([]int64, 4)
		var mu sync.Mutex
		for i, group := range []int{1, 2, 4, 8} {
			onStores(t, parts, true, store.Options{}, func(s *store.Store, _ int) error {
				o := store.LookaheadOptions{Window: max(1, 8/group), Group: group, Held: group, Bytes: rows *
					s.RowBytes(ids[:1])}
				err := aheadOf(s, d, ids, lists, o)
				mu.Lock()
				defer mu.Unlock()
				_, remote, cached := s.Rows()
				fetched[i], requests[i] = fetched[i]+remote-cached, requests[i]+s.Requests()
				return err
			})
		}
		t.Logf("a cache of %d rows: %d rows in %d requests", rows, fetched, requests)
		for i := 1; i < 4; i++ {
			if requests[i] > requests[i-1] || rows < 600 && fetched[i] > fetched[i-1] || rows == 600 && fetched[i] !=
				fetched[0] {
				t.Errorf("a cache of %d rows: %d rows in %d requests", rows, fetched, requests)
			}
		}
	}
}
