//go:build !linux

package poll

// Yield does nothing here.
func Yield() {}
