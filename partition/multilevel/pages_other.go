//go:build !linux

package multilevel

// releasePages keeps the pages: only Linux promises to take them back at once.
func releasePages([]byte) {}

// populate leaves pages to be touched.
func populate([]byte) {}

// adviseHuge leaves the size of pages to the system.
func adviseHuge([]byte) {}
