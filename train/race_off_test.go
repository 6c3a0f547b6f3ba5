//go:build !race

package train

// heapAnEpoch is the bytes that an epoch may take from the heap.
const heapAnEpoch = 100 << 10
