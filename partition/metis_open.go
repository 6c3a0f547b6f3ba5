//go:build (darwin || linux) && !static

package partition

import (
	"errors"
	"runtime"

	"github.com/ebitengine/purego"
)

// metisNames are what the library may be called.
func metisNames() []string {
	if runtime.GOOS == "darwin" {
		return []string{"libmetis.dylib", "/opt/homebrew/lib/libmetis.dylib", "/usr/local/lib/libmetis.dylib"}
	}
	return []string{"libmetis.so.5", "libmetis.so"}
}

// open finds the library and its two functions.
func (l *metisLib) open() error {
	var tried error
	for _, name := range metisNames() {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			tried = errors.Join(tried, err)
			continue
		}
		kway, err := purego.Dlsym(handle, "METIS_PartGraphKway")
		if err != nil {
			return err
		}
		options, err := purego.Dlsym(handle, "METIS_SetDefaultOptions")
		if err != nil {
			return err
		}
		purego.RegisterFunc(&l.kway, kway)
		purego.RegisterFunc(&l.options, options)
		return nil
	}
	return tried
}
