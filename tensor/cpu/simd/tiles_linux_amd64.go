package simd

import "golang.org/x/sys/unix"

// requestTiles asks the kernel to keep this process's tile registers.
func requestTiles() bool {
	const reqXcompPerm, tileData = 0x1023, 18
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, reqXcompPerm, tileData, 0)
	return errno == 0
}
