//go:build !linux && !darwin

package disk

import "os"

// Map reads a file where mapping is not available.
func Map(path string) ([]byte, error) { return os.ReadFile(path) }

// Unmap ends what Map began.
func Unmap([]byte) {}
