//go:build !race

package train_test

// heapPerEpoch is the bytes that an epoch may take from the heap.
const heapPerEpoch = 100 << 10
