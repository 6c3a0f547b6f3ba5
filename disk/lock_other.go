//go:build !unix || solaris || illumos || aix

package disk

import "os"

const noFollow = 0

const locks = false

// lock is not there: nothing is ever taken to be free.
func lock(*os.File) (free bool, err error) { return false, nil }
