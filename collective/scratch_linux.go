package collective

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages. Without them memory is only slower, so a refusal
// is not an error.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
