//go:build (linux || freebsd) && (amd64 || arm64) && !static

package driver

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// open finds the library and its functions.
func (d *Driver) open(name string) error {
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
	optional(handle, d.graphSymbols(), &d.CaptureBegin)
	optional(handle, d.mapSymbols(), &d.ReserveAddresses)
	optional(handle, d.linkSymbols(), &d.AllocShared)
	d.DeviceUUID, _ = purego.Dlsym(handle, "cuDeviceGetUuid_v2")
	d.StreamFirst, _ = purego.Dlsym(handle, "cuStreamCreateWithPriority")
	return nil
}

// optional finds functions that a driver may lack: without one of them, the first is 0.
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

// Call calls a function of a library.
func Call(f uintptr, args ...uintptr) uintptr {
	code, _, _ := purego.SyscallN(f, args...)
	return code & 0xffffffff
}

// Call64 is Call of a function that returns an address.
func Call64(f uintptr, args ...uintptr) uintptr {
	p, _, _ := purego.SyscallN(f, args...)
	return p
}

// OpenLibrary opens another library, and finds its functions.
func OpenLibrary(path string, symbols map[string]*uintptr) error {
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
