//go:build race

package train

// heapAnEpoch under the race detector, which makes pools forget a quarter of what they
// are given: far from the matrices of an epoch still.
const heapAnEpoch = 2 << 20
