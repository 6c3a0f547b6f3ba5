package partition

import "syscall"

// mlRelease lets the system have pages back; they read as zero from now on.
func mlRelease(raw []byte) { syscall.Madvise(raw, syscall.MADV_DONTNEED) }

// mlPopulate has the system put pages in place all at once: that takes half the time of
// touching one after the other. Where it cannot, they come when they are touched.
func mlPopulate(raw []byte) {
	const populateWrite = 23 // since Linux 5.14
	syscall.Madvise(raw, populateWrite)
}

// mlAdviseHuge asks for huge pages.
func mlAdviseHuge(raw []byte) { syscall.Madvise(raw, syscall.MADV_HUGEPAGE) }
