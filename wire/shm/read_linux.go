package shm

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Whether processes may read each other's memory is up to the kernel's settings
// (they need the same user, and Yama's ptrace_scope 0 or a capability), and to
// containers. So peers try it when they exchange memory: each sends the address of a
// random number, and the other reads it. The kernel names the process at the
// other end of the socket.

// memoryVersion is the layout of the introduction.
const memoryVersion = 2

// landmark is what peers try to read. A variable does not move.
var landmark = randomNumber()

func randomNumber() *uint64 {
	var b [8]byte
	rand.Read(b[:])
	n := binary.LittleEndian.Uint64(b[:])
	return &n
}

// introduction is what goes with the descriptors: version, address and number.
func introduction() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{memoryVersion}, uint64(uintptr(unsafe.Pointer(landmark))))
	return binary.LittleEndian.AppendUint64(b, *landmark)
}

// readable is the peer's process, if its memory can be read; otherwise 0.
func readable(conn *net.UnixConn, hello []byte) int {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	var who *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		who, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failed != nil || who.Pid <= 0 {
		return 0
	}
	var number [8]byte
	if readFrom(int(who.Pid), binary.LittleEndian.Uint64(hello[1:]), number[:]) != nil ||
		string(number[:]) != string(hello[9:]) {
		return 0
	}
	return int(who.Pid)
}

// agree sends the peer whether we can read its memory, and receives whether it can
// read ours.
func agree(conn *net.UnixConn, can bool) (bool, error) {
	answer := [1]byte{0}
	if can {
		answer[0] = 1
	}
	if _, err := conn.Write(answer[:]); err != nil {
		return false, err
	}
	_, err := io.ReadFull(conn, answer[:])
	return answer[0] == 1, err
}

// readFrom fills into from the memory of a process. Go's scheduler does not know: a
// step takes less than giving this processor to another goroutine would.
func readFrom(pid int, at uint64, into []byte) error {
	for len(into) > 0 {
		local := unix.Iovec{Base: unsafe.SliceData(into)}
		local.SetLen(len(into))
		remote := unix.RemoteIovec{Base: uintptr(at), Len: len(into)}
		n, _, err := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1,
			uintptr(unsafe.Pointer(&remote)), 1, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ESRCH:
			return errGone
		case err != 0:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		at, into = at+uint64(n), into[n:]
	}
	return nil
}
