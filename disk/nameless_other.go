//go:build !linux

package disk

import "os"

// Nameless makes a file that has no name in its folder, so that it goes with its process.
func Nameless(dir, _ string, _ int) (*os.File, error) { return unlinked(dir) }
