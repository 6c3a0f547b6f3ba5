//go:build (linux || freebsd) && (amd64 || arm64) && !static

package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// open finds the library and its functions.
func (d *driver) open(name string) error {
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("%w (%w)", errNoDriver, err)
	}
	for symbol, to := range d.symbols() {
		if *to, err = purego.Dlsym(handle, symbol); err != nil {
			return fmt.Errorf("%w: found a driver without %s; update NVIDIA's driver, or use --device cpu", ErrUnavailable,
				symbol)
		}
	}
	for symbol, to := range d.graphSymbols() {
		if *to, err = purego.Dlsym(handle, symbol); err != nil {
			d.captureBegin = 0 // without one of them there are no graphs
			break
		}
	}
	for symbol, to := range d.linkSymbols() {
		if *to, err = purego.Dlsym(handle, symbol); err != nil {
			d.allocShared = 0 // without one of them others cannot read
			break
		}
	}
	return nil
}

// call calls a function of a library.
func call(f uintptr, args ...uintptr) uintptr {
	code, _, _ := purego.SyscallN(f, args...)
	return code & 0xffffffff
}

// openLibrary opens another library, and finds its functions.
func openLibrary(path string, symbols map[string]*uintptr) error {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	for symbol, to := range symbols {
		if *to, err = purego.Dlsym(handle, symbol); err != nil {
			return err
		}
	}
	return nil
}
