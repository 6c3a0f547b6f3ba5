package multilevel

import "syscall"

// releasePages gives pages back to the system; they read as zero from now on.
func releasePages(raw []byte) { syscall.Madvise(raw, syscall.MADV_DONTNEED) }

// populate faults pages in all at once, which takes half the time of touching them one by
// one. Where the kernel cannot, they are faulted in when touched.
func populate(raw []byte) {
	const populateWrite = 23 // since Linux 5.14
	syscall.Madvise(raw, populateWrite)
}

// adviseHuge asks for huge pages.
func adviseHuge(raw []byte) { syscall.Madvise(raw, syscall.MADV_HUGEPAGE) }
