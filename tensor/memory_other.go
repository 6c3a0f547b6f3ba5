//go:build !linux

package tensor

// Elsewhere the heap serves: the collector never moves a block of this size.
func mapHuge(n int) ([]byte, error) { return alignedBytes(n), nil }

func unmap([]byte) {}
