package sample

import (
	"sync"

	"starling/rng"
)

// order deals out the training vertices in batches: a slice each of a permutation
// keyed by the epoch.
type order struct {
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

func newOrder(ids []uint32, size int, seed uint64) *order {
	return &order{ids: ids, size: max(1, min(size, len(ids))), seed: seed}
}

func (o *order) batches() int { return (len(o.ids) + o.size - 1) / o.size }

// batch is the ids of one. Every one counts 1/size, so that those of a smaller last
// batch weigh no more than others.
func (o *order) batch(epoch, number int) []uint32 {
	all := o.epoch(epoch)
	return all[number*o.size : min((number+1)*o.size, len(all))]
}

func (o *order) epoch(n int) []uint32 {
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
