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
	optional(handle, d.graphSymbols(), &d.captureBegin)
	optional(handle, d.mapSymbols(), &d.reserveAddresses)
	optional(handle, d.linkSymbols(), &d.allocShared)
	d.deviceUUID, _ = purego.Dlsym(handle, "cuDeviceGetUuid_v2")
	return nil
}

// optional finds functions that a driver may lack: without one of them, the first is none.
func optional(handle uintptr, symbols map[string]*uintptr, first *uintptr) {
	all := true
	for symbol, to := range symbols {
		var err error
		*to, err = purego.Dlsym(handle, symbol)
		all = all && err == nil
	}
	if !all {
		*first = 0
	}
}

// call calls a function of a library.
func call(f uintptr, args ...uintptr) uintptr {
	code, _, _ := purego.SyscallN(f, args...)
	return code & 0xffffffff
}

// call64 is call of a function that returns an address.
func call64(f uintptr, args ...uintptr) uintptr {
	p, _, _ := purego.SyscallN(f, args...)
	return p
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
