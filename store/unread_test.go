package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"starling/coflow"
	"starling/graph"
	"starling/store"
	"starling/train/traintest"
)

// TestUnreadRowsDoNotTravel: where no one looks at rows they have their memory, which stays as it was taken, and none
// is sent, by a pull or by a look-ahead.
func TestUnreadRowsDoNotTravel(t *testing.T) {
	d := traintest.Communities(t, 600, false)
	parts := traintest.Cut(t, d, "random", 3)
	lists := lookedAhead(6, 60, 600)
	sent := sentByStores(t, parts, true, store.Options{Unread: true}, func(s *store.Store, _ int) error {
		var rows graph.Features
		if err := s.Puller().Features(context.Background(), coflow.ID{}, &rows, lists[0]); err != nil {
			return err
		}
		if err := untouched(&rows, len(lists[0])); err != nil {
			return err
		}
		l := s.NewLookahead(store.LookaheadOptions{Bytes: 1 << 20, Window: 2, Held: len(lists), Total: int64(len(lists))})
		var wg sync.WaitGroup
		errs := make([]error, len(lists))
		for k, list := range lists {
			wg.Go(func() {
				p, rows := l.Puller(), graph.Features{}
				p.Begin(int64(k))
				if errs[k] = p.Features(context.Background(), coflow.ID{}, &rows, list); errs[k] == nil {
					errs[k] = untouched(&rows, len(list))
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	})
	for k, bytes := range sent {
		if bytes > 0 {
			t.Errorf("worker %d sent %d bytes", k, bytes)
		}
	}
}

func untouched(f *graph.Features, rows int) error {
	if len(f.F32) != rows*f.Cols || f.Cols == 0 {
		return fmt.Errorf("memory for %d numbers, expected %d rows of %d", len(f.F32), rows, f.Cols)
	}
	for i, x := range f.F32 {
		if x != 0 {
			return fmt.Errorf("number %d is %v", i, x)
		}
	}
	return nil
}
