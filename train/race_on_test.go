//go:build race

package train_test

// heapPerEpoch under the race detector, which makes pools forget a quarter of what they
// are given: far from the matrices of an epoch still.
const heapPerEpoch = 2 << 20
