//go:build linux && (amd64 || arm64)

package graph

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// sigaction is the kernel's struct.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// goHandler is the runtime's handler of SIGBUS, where everything else goes.
//
//lint:ignore U1000 onBus, which is assembly, calls it
var goHandler uintptr

// exitOnFault is above 0 while faults end the process.
var exitOnFault uintptr

// faulted is 1 when a thread has found a fault.
//
//lint:ignore U1000 onBus sets it
var faulted uintptr

// onBus is the signal handler. The kernel calls it on the thread that faulted, with a C ABI.
//
//lint:ignore U1000 onBusAddress returns where it begins
func onBus()

// onBusAddress is where onBus begins; Go's own pointer to it would lead to a wrapper.
func onBusAddress() uintptr

var installFault = sync.OnceFunc(func() {
	var a sigaction
	if rtSigaction(nil, &a) != 0 || a.handler <= 1 { // default or ignored: not Go's
		return
	}
	goHandler = a.handler
	a.handler = onBusAddress()
	rtSigaction(&a, nil)
})

// ExitOnFault makes a mapped file that is shortened end the process with status 1 and a line that names the file,
// until the returned function is called.
func ExitOnFault() (stop func()) {
	installFault()
	atomic.AddUintptr(&exitOnFault, 1)
	return sync.OnceFunc(func() { atomic.AddUintptr(&exitOnFault, ^uintptr(0)) })
}

func rtSigaction(set, old *sigaction) syscall.Errno {
	_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGBUS), uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(old)), unsafe.Sizeof(set.mask), 0, 0)
	return e
}
