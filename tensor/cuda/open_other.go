//go:build !((linux || freebsd) && (amd64 || arm64) && !static)

package cuda

import (
	"errors"
	"fmt"
)

// open fails: this build opens no libraries.
func (d *driver) open(string) error {
	return fmt.Errorf("%w: this build of starling opens no libraries; use one that is not static, on Linux, or "+
		"--device cpu", ErrUnavailable)
}

func call(uintptr, ...uintptr) uintptr { panic("cuda: a call without a library") }

func call64(uintptr, ...uintptr) uintptr { panic("cuda: a call without a library") }

func openLibrary(string, map[string]*uintptr) error {
	return errors.New("this build opens no libraries")
}
