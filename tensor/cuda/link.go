package cuda

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"starling/tensor"
)

// linkNamed is the variable that, with the value off, has rows go through the host's memory.
const linkNamed = "STARLING_CUDA_IPC"

// Memory that other workers read is of the driver's plain kind: that of its pools has no handles. In this process its
// address is enough; another process opens the handle of the whole region, once, and finds rows by their offset.

// region is such memory.
type region struct {
	p      uintptr
	bytes  int
	handle ipcHandle // zeros: it has none
}

// ipcHandle is the driver's CUipcMemHandle.
type ipcHandle [64]byte

// link is a device's part in what workers read of each other.
type link struct {
	hello  []byte
	probe  *region
	free   map[int][]*region // by size
	all    []*region
	abroad bool                  // other processes may have them open
	peers  map[int]bool          // that were met; true: in this process
	opened map[ipcHandle]uintptr // regions of other processes
	events struct {
		sync.Mutex
		free []uintptr
	}
	after chan later
	ended sync.WaitGroup
}

// later is what is called when the stream has come to an event.
type later struct {
	event uintptr
	f     func()
}

// retired are regions of devices that were closed. Those that others may have open are not freed, which the driver
// does not allow, but used again.
type retired struct {
	sync.Mutex
	free map[int][]*region
}

var _ tensor.Linker = (*Device)(nil)

// regionBytes is how much is taken for n bytes: whole pages of the card, so that a handle is of one region, of 8 sizes
// between two powers of two.
func regionBytes(n int) int {
	const page = 2 << 20
	step := max(page, 1<<bits.Len(uint(max(n, 1)-1))>>4)
	return (n + step - 1) / step * step
}

// region is one of at least n bytes; nil where the device failed.
func (d *Device) region(n int) *region {
	l, size := &d.link, regionBytes(n)
	if free := l.free[size]; len(free) > 0 {
		r := free[len(free)-1]
		l.free[size] = free[:len(free)-1]
		return r
	}
	r := d.card.retired.take(size)
	if r == nil {
		if r = d.newRegion(size); r == nil {
			return nil
		}
	}
	l.all = append(l.all, r)
	d.memory.hold(size)
	return r
}

func (d *Device) newRegion(size int) *region {
	d.bind()
	r := &region{bytes: size}
	code := call(d.card.allocShared, address(&r.p), uintptr(size))
	if code == outOfMemory {
		d.sync()
		d.trim(d.memory.times + 1)
		code = call(d.card.allocShared, address(&r.p), uintptr(size))
	}
	if !d.check("cuMemAlloc", code) {
		return nil
	}
	if call(d.card.shareHandle, address(&r.handle), r.p) != 0 {
		r.handle = ipcHandle{}
	}
	return r
}

func (t *retired) take(size int) *region {
	t.Lock()
	defer t.Unlock()
	free := t.free[size]
	if len(free) == 0 {
		return nil
	}
	t.free[size] = free[:len(free)-1]
	return free[len(free)-1]
}

func (t *retired) give(r *region) {
	t.Lock()
	defer t.Unlock()
	if t.free == nil {
		t.free = map[int][]*region{}
	}
	t.free[r.bytes] = append(t.free[r.bytes], r)
}

func (d *Device) Lend(t DType, rows, cols int) Matrix {
	n := rows * cols * t.Size()
	if n == 0 {
		return none(t, rows, cols)
	}
	d.enter()
	defer d.leave()
	r := d.region(n)
	if r == nil {
		return tensor.Unbacked(t, rows, cols)
	}
	d.memory.inUse.Add(int64(r.bytes))
	b := &block{p: r.p, bytes: n, lent: r}
	return tensor.MakeMatrix(tensor.NewBuffer(pointer(r.p), n, false, b), 0, t, rows, cols, cols)
}

// takeBack is release of what was lent.
func (d *Device) takeBack(r *region) {
	d.memory.inUse.Add(-int64(r.bytes))
	if d.link.free == nil {
		d.link.free = map[int][]*region{}
	}
	d.link.free[r.bytes] = append(d.link.free[r.bytes], r)
}

// A hello is who the process is and where to read its first bytes:
//
//	0 host | 16 process | 32 address u64 | 40 bytes u64 | 48 handle | 112 what is there
//
// and a reference is handle | 64 address u64 | 72 offset u64 | 80 bytes of the region u64 | 88 bytes of the matrix u64.
const (
	helloBytes = 128
	probeBytes = 16
)

// process tells processes and hosts apart.
var process = sync.OnceValue(func() (id struct{ host, process [16]byte }) {
	rand.Read(id.process[:])
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	copy(id.host[:], bytes.ReplaceAll(bytes.TrimSpace(boot), []byte("-"), nil))
	return id
})

func (d *Device) Hello() []byte {
	l := &d.link
	if l.hello != nil || d.card.allocShared == 0 || os.Getenv(linkNamed) == "off" {
		return l.hello
	}
	d.enter()
	defer d.leave()
	if l.probe = d.region(probeBytes); l.probe == nil {
		return nil
	}
	id, mark := process(), make([]byte, probeBytes)
	rand.Read(mark)
	d.copyIn(l.probe.p, unsafe.Pointer(unsafe.SliceData(mark)), probeBytes)
	d.wait()
	h := append(id.host[:], id.process[:]...)
	h = binary.LittleEndian.AppendUint64(h, uint64(l.probe.p))
	h = binary.LittleEndian.AppendUint64(h, uint64(l.probe.bytes))
	l.hello = append(append(h, l.probe.handle[:]...), mark...)
	return l.hello
}

// Why a worker's memory cannot be read.
var (
	errNoHello  = errors.New("it has no card, or " + linkNamed + "=off")
	errNoHandle = errors.New("its driver gives no handles of memory")
	errDiffers  = errors.New("its memory has other numbers than it wrote")
)

func (d *Device) Meet(peer int, hello []byte) error {
	id := process()
	switch {
	case d.failed():
		return d.Err()
	case d.Hello() == nil || len(hello) != helloBytes:
		return errNoHello
	case !bytes.Equal(hello[:16], id.host[:]):
		return tensor.ErrElsewhere
	}
	here := bytes.Equal(hello[16:32], id.process[:])
	d.link.abroad = d.link.abroad || !here
	handle := ipcHandle(hello[48:112])
	if !here && handle == (ipcHandle{}) {
		return errNoHandle
	}
	ref := make([]byte, tensor.ReferenceBytes)
	copy(ref, handle[:])
	copy(ref[64:], hello[32:40])
	copy(ref[80:], hello[40:48])
	binary.LittleEndian.PutUint64(ref[88:], probeBytes)
	d.enter()
	defer d.leave()
	from, err := d.locate(here, ref, probeBytes)
	if err != nil {
		return err
	}
	found := make([]uint64, probeBytes/8)
	d.settle()
	code := call(d.card.copyOut, address(&found[0]), from, probeBytes, d.stream)
	if code == 0 {
		code = call(d.card.streamSync, d.stream)
	}
	seen := unsafe.Slice((*byte)(unsafe.Pointer(&found[0])), probeBytes)
	switch {
	case code != 0:
		return d.card.failure("cuMemcpyDtoHAsync", code)
	case !bytes.Equal(seen, hello[112:]):
		return errDiffers
	}
	if d.link.peers == nil {
		d.link.peers = map[int]bool{}
	}
	d.link.peers[peer] = here
	return nil
}

func (d *Device) Part(peer int) { delete(d.link.peers, peer) }

func (d *Device) Met(peer int) bool {
	_, ok := d.link.peers[peer]
	return ok
}

func (d *Device) Refer(m Matrix) []byte {
	if m.Unbacked() {
		return make([]byte, tensor.ReferenceBytes)
	}
	b, ok := tensor.BufferOf(m).Owner().(*block)
	tensor.Need(ok && b.lent != nil && !b.freed && m.Contiguous(), "cuda: Refer to %v, which Lend did not make", m)
	r := b.lent
	ref := append(make([]byte, 0, tensor.ReferenceBytes), r.handle[:]...)
	for _, n := range []uint64{uint64(r.p), uint64(tensor.Offset(m)), uint64(r.bytes), uint64(m.Bytes())} {
		ref = binary.LittleEndian.AppendUint64(ref, n)
	}
	return ref
}

func (d *Device) Fetch(dst Matrix, peer int, ref []byte) error {
	here, ok := d.link.peers[peer]
	n := int(dst.Bytes())
	tensor.Need(ok && dst.Contiguous(), "cuda: Fetch of %v from worker %d", dst, peer)
	if n == 0 {
		return nil
	}
	d.enter()
	defer d.leave()
	from, err := d.locate(here, ref, n)
	if err != nil {
		return fmt.Errorf("rows of worker %d on its card: %w", peer, err)
	}
	d.settle()
	defer d.timed("copy between cards")()
	d.do("cuMemcpyDtoDAsync", d.card.copyCards, at(dst), from, uintptr(n), d.stream)
	return d.Err()
}

// locate is where a reference to n bytes points, here.
func (d *Device) locate(here bool, ref []byte, n int) (uintptr, error) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(ref[at:]) }
	base, offset, size := uintptr(word(64)), word(72), word(80)
	if word(88) != uint64(n) || offset > size || size-offset < uint64(n) {
		return 0, fmt.Errorf("found a reference to %d bytes from %d on of %d, want %d; use one version of starling on "+
			"all workers", word(88), offset, size, n)
	}
	if here {
		return base + uintptr(offset), nil
	}
	base, err := d.open(ipcHandle(ref[:64]))
	return base + uintptr(offset), err
}

// open is where a region of another process is in this one.
func (d *Device) open(h ipcHandle) (p uintptr, err error) {
	if p, ok := d.link.opened[h]; ok {
		return p, nil
	}
	d.bind()
	if code := openHandle(d.card.openHandle, &p, &h); code != 0 {
		return 0, d.card.failure("cuIpcOpenMemHandle", code)
	}
	if d.link.opened == nil {
		d.link.opened = map[ipcHandle]uintptr{}
	}
	d.link.opened[h] = p
	return p, nil
}

// openHandle calls cuIpcOpenMemHandle, whose second argument is a struct by value: on x86-64 its words are behind
// those arguments that do not fit registers, on ARM it is the address of a copy.
func openHandle(f uintptr, p *uintptr, h *ipcHandle) uintptr {
	const peerAccess = 1
	own := *h
	defer runtime.KeepAlive(&own)
	if runtime.GOARCH != "amd64" {
		return call(f, address(p), address(&own), peerAccess)
	}
	args := []uintptr{address(p), peerAccess, 0, 0, 0, 0}
	for i := 0; i < len(own); i += 8 {
		args = append(args, uintptr(binary.NativeEndian.Uint64(own[i:])))
	}
	return call(f, args...)
}

func (d *Device) After(f func()) {
	d.enter()
	defer d.leave()
	d.settle()
	l := &d.link
	e := d.event()
	if !d.do("cuEventRecord", d.card.eventRecord, e, d.stream) {
		return
	}
	if l.after == nil {
		l.after = make(chan later, 256)
		l.ended.Go(func() { d.callAfter(l.after) })
	}
	l.after <- later{e, f}
}

// event is one that a thread can sleep on.
func (d *Device) event() (e uintptr) {
	l := &d.link
	l.events.Lock()
	defer l.events.Unlock()
	if n := len(l.events.free); n > 0 {
		e, l.events.free = l.events.free[n-1], l.events.free[:n-1]
		return e
	}
	const blockingNoTiming = 3
	d.bind()
	d.do("cuEventCreate", d.card.eventCreate, address(&e), blockingNoTiming)
	return e
}

// callAfter waits for one event after the other.
func (d *Device) callAfter(list <-chan later) {
	d.card.onThread(d.card.context, func() error {
		for w := range list {
			code := call(d.card.eventSync, w.event)
			d.link.events.Lock()
			d.link.events.free = append(d.link.events.free, w.event)
			d.link.events.Unlock()
			if d.check("cuEventSynchronize", code) {
				w.f()
			}
		}
		return nil
	})
}

// close ends what workers read of each other. REQUIRES: the thread is the card's, and the stream is done.
func (l *link) close(d *Device) {
	if l.after != nil {
		close(l.after)
		l.ended.Wait()
	}
	for _, e := range l.events.free {
		call(d.card.eventDestroy, e)
	}
	for _, p := range l.opened {
		call(d.card.closeHandle, p)
	}
	for _, r := range l.all {
		if l.abroad {
			d.card.retired.give(r)
		} else {
			call(d.card.freeShared, r.p)
		}
	}
}
