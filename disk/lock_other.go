//go:build !unix || solaris || illumos || aix

package disk

import "os"

const noFollow = 0

const locks = false

// lock is not available: nothing counts as free.
func lock(*os.File) (free bool, err error) { return false, nil }
