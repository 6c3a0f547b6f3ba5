//go:build !linux

package partition

// mlRelease keeps the pages: only Linux promises to take them back at once.
func mlRelease([]byte) {}

// mlPopulate leaves pages to be touched.
func mlPopulate([]byte) {}

// mlAdviseHuge leaves the size of pages to the system.
func mlAdviseHuge([]byte) {}
