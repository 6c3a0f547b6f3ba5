//go:build !linux

package cpu

// hugePage is what regions are counted in.
const hugePage = 2 << 20

// Elsewhere the heap serves: the collector never moves a block of this size.
func reserve(n int) ([]byte, error) { return alignedBytes(n), nil }

func writable([]byte) error { return nil }

func release([]byte) {}
