package train

import (
	"sync"
	"sync/atomic"

	"starling/sample"
)

// ahead samples batches before they are needed, on several goroutines, in a
// bounded number of buffers that go round. Batches come out in order.
type ahead struct {
	free  chan *ready
	slots []chan *ready // batch i arrives in slot i mod len
	taken atomic.Int64  // batches that someone samples or has sampled
	total int64
	given int64 // batches handed out by next

	done chan struct{}
	wg   sync.WaitGroup
}

// newAhead samples the batches of epochs first to last-1.
func newAhead(m sample.Method, host *hostSide, first, last, threads int) *ahead {
	total := int64(m.Batches()) * int64(max(last-first, 0))
	// Each thread samples one while another is ready, and one is trained on.
	depth := max(1, min(2*int64(threads)+1, total))
	a := &ahead{free: make(chan *ready, depth), done: make(chan struct{}), total: total}
	for range depth {
		a.free <- &ready{hostSide: host}
		a.slots = append(a.slots, make(chan *ready, 1))
	}
	for range threads {
		s := m.Sampler()
		a.wg.Go(func() { a.work(m, s, first) })
	}
	return a
}

// work takes a buffer before it takes a number, so that the lowest number under
// way always has one and nobody waits for ever.
func (a *ahead) work(m sample.Method, s sample.Sampler, first int) {
	for {
		var b *ready
		select {
		case b = <-a.free:
		case <-a.done:
			return
		}
		i := a.taken.Add(1) - 1
		if i >= a.total {
			return
		}
		s.Sample(&b.Batch, first+int(i)/m.Batches(), int(i)%m.Batches())
		b.prepare()
		a.slots[i%int64(len(a.slots))] <- b
	}
}

// next is the next batch, to be given back with release.
func (a *ahead) next() *ready {
	b := <-a.slots[a.given%int64(len(a.slots))]
	a.given++
	return b
}

func (a *ahead) release(b *ready) { a.free <- b }

// fill waits until all that can be sampled ahead is there. Buffers go round, so each of
// them has then held a batch. The batch at hand must have been released.
func (a *ahead) fill() {
	for i := a.given; i < min(a.given+int64(len(a.slots)), a.total); i++ {
		slot := a.slots[i%int64(len(a.slots))]
		slot <- <-slot // nobody else fills it: that takes the buffer which is in it
	}
}

// stop ends the goroutines.
func (a *ahead) stop() {
	close(a.done)
	a.wg.Wait()
}
