package partition

import "syscall"

// mlRelease lets the system have pages back; they read as zero from now on.
func mlRelease(raw []byte) { syscall.Madvise(raw, syscall.MADV_DONTNEED) }

// mlAdviseHuge asks for huge pages.
func mlAdviseHuge(raw []byte) { syscall.Madvise(raw, syscall.MADV_HUGEPAGE) }
