package plan

import (
	"sync"

	"starling/cost"
	"starling/tensor"
)

// workCounter is the device of a dry run that counts what an epoch's training does.
type workCounter struct {
	tensor.Device
	mu struct {
		sync.Mutex
		now, began, epoch cost.Work
	}
}

// newWorkCounter counts the operations of a device that computes nothing.
func newWorkCounter(dev tensor.Device) *workCounter {
	w := &workCounter{}
	w.Device = cost.Counted(dev, func(one cost.Work) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.now.Add(one)
	})
	return w
}

// DryRun says that nothing is computed: see nn.Topology.
func (*workCounter) DryRun() {}

// Training implements train.Phased: the last epoch counts, as the first also does what is done once.
func (w *workCounter) Training(begins bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if begins {
		w.mu.began = w.mu.now
		return
	}
	w.mu.epoch = w.mu.now.Since(w.mu.began)
}

// epoch is the work of the last one.
func (w *workCounter) epoch() cost.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.epoch
}

// sum is all work so far.
func (w *workCounter) sum() cost.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.now
}
