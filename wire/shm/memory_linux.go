package shm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"starling/event"
	"starling/wire"
)

// Memory is shared as a file without a name (memfd), sent through a unix
// socket together with the wakeup (eventfd). Neither is in any folder, so the kernel
// frees both when the last process that has them is gone, however it went.

// wakeup is how peers notify this endpoint. Waiting for it holds no thread.
type wakeup struct {
	*notifier
	file *os.File
}

// notifier notifies a peer. Its lock keeps a goroutine from writing when it is
// closed, and its descriptor perhaps another file's.
type notifier struct {
	mu struct {
		sync.Mutex
		fd int // -1: closed
	}
}

func newNotifier(fd int) *notifier {
	r := &notifier{}
	r.mu.fd = fd
	return r
}

func newWakeup() (wakeup, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return wakeup{}, fmt.Errorf("eventfd: %w", err)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return wakeup{}, err
	}
	return wakeup{notifier: newNotifier(own), file: os.NewFile(uintptr(fd), "wakeup")}, nil
}

// wait returns after a notification since the last time, or when it is closed.
func (b *wakeup) wait() {
	var count [8]byte
	b.file.Read(count[:])
}

// waitFor is wait for some time; it reports whether there was a notification.
func (b *wakeup) waitFor(d time.Duration) bool {
	b.file.SetReadDeadline(wire.SocketTime(d))
	defer b.file.SetReadDeadline(time.Time{})
	var count [8]byte
	_, err := b.file.Read(count[:])
	return err == nil
}

func (b *wakeup) close() {
	b.file.Close()
	b.notifier.close()
}

func (r *notifier) notify() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.fd >= 0 {
		one := uint64(1)
		// It never blocks, so Go's scheduler need not know.
		unix.RawSyscall(unix.SYS_WRITE, uintptr(r.mu.fd), uintptr(unsafe.Pointer(&one)), 8)
	}
}

func (r *notifier) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	unix.Close(r.mu.fd)
	r.mu.fd = -1
}

// Memory is what two processes share.
type Memory struct {
	in, out  *ring
	notifier *notifier
	pid      int  // of the peer, if its memory can be read; otherwise 0
	lends    bool // the peer can read ours
}

// Close gives the memory back.
func (m *Memory) Close() {
	unmap(m.in.mem)
	unmap(m.out.mem)
	m.notifier.close()
}

// Listen opens the socket through which peers of this host exchange memory.
// Its name is in no folder; a process that guesses it must still pass the handshake.
func Listen(name string) (net.Listener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
}

// Dial connects to the socket of a peer, and bounds what follows.
func Dial(name string, within time.Duration) (*net.UnixConn, error) {
	conn, err := net.DialTimeout("unix", "@"+name, within)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(wire.SocketTime(within))
	return conn.(*net.UnixConn), nil
}

// Swap makes the ring that the peer will write to, sends it with our wakeup, and receives the peer's.
func (h *Hub) Swap(conn *net.UnixConn) (*Memory, error) {
	fd, in, err := makeRing()
	if err != nil {
		return nil, err
	}
	_, _, err = conn.WriteMsgUnix(introduction(), unix.UnixRights(fd, h.wakeup.mu.fd), nil)
	unix.Close(fd)
	if err == nil {
		var m *Memory
		if m, err = receivePeer(conn); err == nil {
			m.in = in
			if m.lends, err = agree(conn, m.pid != 0); err == nil {
				return m, nil
			}
			unmap(m.out.mem)
			m.notifier.close()
		}
	}
	unmap(in.mem)
	return nil, err
}

// makeRing returns a ring and the file that it is in, which cannot be made
// shorter: reading past the end of a file kills a process.
func makeRing() (int, *ring, error) {
	fd, err := unix.MemfdCreate("starling", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, nil, fmt.Errorf("memfd_create: %w", err)
	}
	mem, err := sealed(fd)
	if err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, newRing(mem), nil
}

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

func sealed(fd int) ([]byte, error) {
	if err := unix.Ftruncate(fd, ringHeader+ringSize); err != nil {
		return nil, fmt.Errorf("shared memory of %s: %w", event.Tally(ringSize, "byte"), err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL); err != nil {
		return nil, fmt.Errorf("sealing shared memory: %w", err)
	}
	return unix.Mmap(fd, 0, ringHeader+ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// receivePeer receives the peer's ring and wakeup.
func receivePeer(conn *net.UnixConn) (*Memory, error) {
	hello := make([]byte, len(introduction()))
	oob := make([]byte, unix.CmsgSpace(2*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(hello, oob)
	if err != nil {
		return nil, err
	}
	fds, err := rights(oob[:oobn])
	if err != nil {
		return nil, err
	}
	if n != len(hello) || hello[0] != memoryVersion || len(fds) != 2 {
		closeAllFDs(fds)
		return nil, fmt.Errorf("%w: %s and %s", wire.ErrFrame, event.Tally(n, "byte"),
			event.Tally(len(fds), "descriptor"))
	}
	unix.SetNonblock(fds[1], true) // an eventfd is; another descriptor must not block the notifying goroutine
	out, err := mapRing(fds[0])
	unix.Close(fds[0])
	if err != nil {
		unix.Close(fds[1])
		return nil, err
	}
	return &Memory{out: out, notifier: newNotifier(fds[1]), pid: readable(conn, hello)}, nil
}

func rights(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range messages {
		got, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

func closeAllFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// mapRing maps what a peer made.
func mapRing(fd int) (*ring, error) {
	has, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || has&seals != seals {
		return nil, errors.New("shared memory that could be made shorter")
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Size < ringHeader+minRing || st.Size > ringHeader+maxRing {
		return nil, fmt.Errorf("%w: shared memory of %s", wire.ErrFrame, event.Tally(st.Size, "byte"))
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	r, err := openRing(mem)
	if err != nil {
		unmap(mem)
	}
	return r, err
}

func unmap(mem []byte) { unix.Munmap(mem) }
