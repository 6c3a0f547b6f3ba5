package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/train"
	"starling/wire"
)

// processBytes is what a process of ours takes whatever it does: the runtime, its
// threads' stacks, buffers of the wire.
const processBytes = 10 << 20

// need is the memory that a rehearsal found a worker to need.
type need struct {
	train.Rehearsed
	matrices, peak int64 // of its device: altogether, and at once
	small          int64 // of them, on the heap
	heap           int64 // beside them
}

// graph is the heap and its garbage. Buffers of batches grow as larger ones come than the few
// that were drawn, and so do small matrices: by a quarter, as slices do. Small matrices are
// counted once among all.
func (n *need) graph(mini bool) int64 {
	if mini {
		live := n.heap + n.small
		return withGarbage(live+live/4) - n.small + n.matrices/16
	}
	return withGarbage(n.heap)
}

// weights are what states of the model take, as doubles: the best one and the one that
// replaces it, the last, and for a checkpoint the optimiser's two numbers a weight.
func (n *need) weights() int64 { return 5 * 8 * int64(n.Parameters) }

// rehearse runs a rehearsal and takes stock after the first epoch, when everything is
// there: on the device, and on the heap, which has the graph in all forms that were made
// of it.
func (s *Spec) rehearse(run func(dev *dry, opt train.Options, events event.Listener) (*train.Rehearsed, error), data *graph.Meta) (n *need, err error) {
	defer func() { err = errors.Join(err, unplannable(recover())) }()
	opt, err := s.rehearsed(data)
	if err != nil {
		return nil, err
	}
	dev := newDry(s)
	defer dev.Close()
	before, after := liveHeap(), int64(0)
	r, err := run(dev, opt, afterFirst(func() { after = liveHeap() }))
	if err != nil {
		return nil, err
	}
	return stock(r, dev, after-before), nil
}

// rehearseTogether is the same for workers that look at each other's parts first.
func (c *clusterRun) rehearseTogether(parts []*partition.Part, s *Spec) ([]*need, error) {
	opt, err := s.rehearsed(&c.parts.meta)
	if err != nil {
		return nil, err
	}
	n := len(parts)
	ends, devs, done, errs := wire.NewGroup(n, wire.DefaultOptions()), make([]*dry, n), make([]*train.Rehearsed, n), make([]error, n)
	before, after := liveHeap(), int64(0)
	var all, first sync.WaitGroup // workers; those that have not ended their first epoch
	first.Add(n)
	taken := make(chan struct{})
	for r, part := range parts {
		devs[r] = newDry(s)
		all.Go(func() {
			there := sync.OnceFunc(first.Done)
			defer there()
			defer func() {
				if errs[r] = errors.Join(errs[r], unplannable(recover())); errs[r] != nil {
					ends[r].Fail(errs[r])
				}
			}()
			end := c.onPaper(r)
			end.Endpoint = ends[r]
			peers := train.NewGroup(context.Background(), ends[r], devs[r], part.Book.Servers)
			done[r], errs[r] = train.Rehearse(context.Background(), devs[r], part, end, peers, opt, afterFirst(func() {
				there()
				<-taken
			}))
		})
	}
	first.Wait()
	after = liveHeap()
	close(taken)
	all.Wait()
	heap, smalls := after-before, make([]int64, n)
	for r, dev := range devs {
		_, smalls[r] = dev.Footprint()
		heap -= smalls[r]
	}
	needs := make([]*need, n)
	for r := range parts {
		ends[r].Close()
		if done[r] != nil {
			needs[r] = stock(done[r], devs[r], heap/int64(n)+smalls[r]) // an equal share of what is not of a device
		}
		devs[r].Close()
	}
	return needs, firstOf(errs)
}

// rehearsed are the options of a rehearsal. To scale features takes a while, and its memory
// is known: see scaledBytes.
func (s *Spec) rehearsed(data *graph.Meta) (train.Options, error) {
	opt, err := s.options(data)
	opt.RowNormalise = false
	return opt, err
}

// afterFirst calls f at the end of the first epoch.
func afterFirst(f func()) event.Listener {
	return event.Func(func(e event.Event) {
		if x, ok := e.(event.Epoch); ok && x.Epoch == 0 {
			f()
		}
	})
}

// unplannable is the error of a device that panics where there is no end, or where even
// addresses are refused.
func unplannable(r any) error {
	switch r := r.(type) {
	case nil:
		return nil
	case tooLarge:
		return r
	}
	return fmt.Errorf("the plan of this run failed: %v", r)
}

// stock is what a rehearsal has on its device and on the heap.
func stock(r *train.Rehearsed, dev *dry, heap int64) *need {
	large, small := dev.Footprint()
	return &need{Rehearsed: *r, matrices: large + small, small: small, peak: dev.Peak(), heap: max(heap-small, 0)}
}

// liveHeap is the bytes of the heap that are in use.
func liveHeap() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
