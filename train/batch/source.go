package batch

import (
	"sync"
	"sync/atomic"

	"starling/sample"
	"starling/train"
)

// Source gives batches in order, each to be given back with Release.
type Source interface {
	Next() *Batch
	Release(*Batch)
	// Fill waits until all buffers have held a batch, for a dry run.
	Fill()
	// Unfilled is the number of buffers that a run of some batches has more than this one, a dry run of a few.
	Unfilled(batches int) int
	Stop()
}

// Drawer draws batches and prepares them, one at a time.
type Drawer interface {
	Draw(b *Batch, epoch, number int) error
}

// localDrawer draws from a graph that is all here.
type localDrawer struct{ sample.Sampler }

func (d localDrawer) Draw(b *Batch, epoch, number int) error {
	d.Sample(&b.Batch, epoch, number)
	b.Prepare()
	b.pack()
	return nil
}

// Prefetcher samples batches before they are needed, on several goroutines, in a bounded
// number of buffers that are reused. Batches come out in order.
type Prefetcher struct {
	free  chan *Batch
	slots []chan *Batch // batch i arrives in slot i mod len
	taken atomic.Int64  // batches that someone samples or has sampled
	total int64
	given int64 // batches returned by next
	most  int64 // buffers, where there are batches enough

	done chan struct{}
	wg   sync.WaitGroup
}

// NewPrefetcher samples the batches of epochs, from where a run is to the end of epoch last-1. Each drawer
// draws one at a time; there is one per thread, and more where drawing also waits.
func NewPrefetcher(batches, threads int, drawers []Drawer, host *Host, at train.State, last int) *Prefetcher {
	first := at.Epoch*batches + at.Batch
	total := max(int64(last)*int64(batches)-int64(first), 0)
	// Each drawer samples one while others, one per thread, are prepared, and one is trained on.
	most := int64(len(drawers)+threads) + 1
	depth := max(1, min(most, total))
	a := &Prefetcher{free: make(chan *Batch, depth), done: make(chan struct{}), total: total, most: most}
	for range depth {
		a.free <- &Batch{Host: host}
		a.slots = append(a.slots, make(chan *Batch, 1))
	}
	for _, d := range drawers {
		a.wg.Go(func() { a.work(batches, d, first) })
	}
	return a
}

// work takes a buffer before it takes a number, so that the lowest number under
// way always has one and no wait is for ever.
func (a *Prefetcher) work(batches int, d Drawer, first int) {
	for {
		var b *Batch
		select {
		case b = <-a.free:
		case <-a.done:
			return
		}
		i := a.taken.Add(1) - 1
		if i >= a.total {
			return
		}
		b.Err = d.Draw(b, (first+int(i))/batches, (first+int(i))%batches)
		a.slots[i%int64(len(a.slots))] <- b
	}
}

// Next is the next batch, to be given back with Release.
func (a *Prefetcher) Next() *Batch {
	b := <-a.slots[a.given%int64(len(a.slots))]
	a.given++
	return b
}

func (a *Prefetcher) Release(b *Batch) {
	if b.Host != nil && b.returned != nil {
		b.returned(b)
	}
	a.free <- b
}

// Fill waits until all that can be prefetched is there. Buffers are reused, so each of
// them has then held a batch. The batch at hand must have been released.
func (a *Prefetcher) Fill() {
	for i := a.given; i < min(a.given+int64(len(a.slots)), a.total); i++ {
		slot := a.slots[i%int64(len(a.slots))]
		slot <- <-slot // no other goroutine fills it: this takes the buffer which is in it
	}
}

func (a *Prefetcher) Unfilled(batches int) int {
	return int(min(a.most, int64(batches))) - len(a.slots)
}

// Stop ends the goroutines.
func (a *Prefetcher) Stop() {
	close(a.done)
	a.wg.Wait()
}
