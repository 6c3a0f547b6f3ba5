//go:build !linux

package graph

// newArray is make; only Linux is asked for huge pages.
func newArray[T element](n int64) []T { return make([]T, n) }
