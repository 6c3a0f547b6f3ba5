package tensor

import "time"

// Reducer is a device that sums matrices over the devices of all workers with a library of its maker. The order of
// additions is the library's.
type Reducer interface {
	// ReducerCard tells GPUs apart, of all hosts; an error says why there is no such library.
	ReducerCard() ([]byte, error)
	// NewReduction names a group of workers, for all of which one calls it.
	NewReduction() ([]byte, error)
	// JoinReduction joins it, and returns when all have.
	JoinReduction(id []byte, rank, size int, within time.Duration) error
	// Reduce: each matrix = its sum over all workers, which give the same sizes. It waits; where that ends early, by
	// stop or by time, the group can no longer be used.
	Reduce(all []Matrix, stop <-chan struct{}, within time.Duration) error
	// LeaveReduction gives the group up.
	LeaveReduction()
}
