//go:build !((linux || freebsd) && (amd64 || arm64) && !static)

package driver

import (
	"errors"
	"fmt"
)

// open fails: this build opens no libraries.
func (d *Driver) open(string) error {
	return fmt.Errorf("%w: this build of starling opens no libraries; use one that is not static, on Linux, or "+
		"--device cpu", ErrUnavailable)
}

func Call(uintptr, ...uintptr) uintptr { panic("cuda: a call without a library") }

func Call64(uintptr, ...uintptr) uintptr { panic("cuda: a call without a library") }

func OpenLibrary(string, map[string]*uintptr) error {
	return errors.New("this build opens no libraries")
}
