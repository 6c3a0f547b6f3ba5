package sample

import (
	"sync"

	"starling/rng"
)

// Order divides the training vertices into batches: slices of a permutation
// keyed by the epoch.
type Order struct {
	ids  []uint32
	size int
	seed uint64

	mu struct {
		sync.Mutex
		epochs [2]shuffled // by parity: samplers ahead may be in the next epoch
	}
}

type shuffled struct {
	made  bool
	epoch int
	ids   []uint32
}

// NewOrder is the order of batches of a size.
func NewOrder(ids []uint32, size int, seed uint64) *Order {
	return &Order{ids: ids, size: max(1, min(size, len(ids))), seed: seed}
}

// Batches is how many there are in an epoch.
func (o *Order) Batches() int { return (len(o.ids) + o.size - 1) / o.size }

// Size is how many make a batch.
func (o *Order) Size() int { return o.size }

// Batch is the ids of one. Each counts 1/size, so that those of a smaller last
// batch count no more than others.
func (o *Order) Batch(epoch, number int) []uint32 {
	all := o.epoch(epoch)
	return all[number*o.size : min((number+1)*o.size, len(all))]
}

func (o *Order) epoch(n int) []uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.mu.epochs[n%2]
	if !s.made || s.epoch != n {
		perm := rng.New(o.seed).Fold(useOrder).Fold(uint64(n)).Perm(len(o.ids))
		for i, p := range perm {
			perm[i] = o.ids[p]
		}
		*s = shuffled{made: true, epoch: n, ids: perm}
	}
	return s.ids
}
