package shm

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processor is the one that this thread runs on; -1: not known.
func processor() int {
	var cpu uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); err != 0 {
		return -1
	}
	return int(cpu)
}

// processors lists those that this thread may run on.
func processors() (all []int) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil
	}
	for cpu := range len(may) * int(unsafe.Sizeof(may[0])) * 8 {
		if may.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all
}

// moveTo moves this thread to a processor, and lets it go anywhere from there. It reports
// whether it could.
func moveTo(cpu int) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var may, only unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return false
	}
	only.Set(cpu)
	moved := unix.SchedSetaffinity(0, &only) == nil
	return unix.SchedSetaffinity(0, &may) == nil && moved
}
