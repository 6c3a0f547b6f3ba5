package cuda

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cuda/driver"
	"starling/tensor/cuda/memory"
)

// linkNamed is the variable that, with the value off, has rows go through the host's memory.
const linkNamed = "STARLING_CUDA_IPC"

// link is a device's part in what workers read of each other.
type link struct {
	hello  []byte
	probe  *memory.Region
	peers  map[int]bool              // that were met; true: in this process
	opened map[memory.Handle]uintptr // regions of other processes
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

var _ tensor.Linker = (*Device)(nil)

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
	if l.hello != nil || d.run.GPU.AllocShared == 0 || os.Getenv(linkNamed) == "off" {
		return l.hello
	}
	defer d.enter()()
	if l.probe = d.mem.Region(probeBytes); l.probe == nil {
		return nil
	}
	id, mark := process(), make([]byte, probeBytes)
	rand.Read(mark)
	d.mem.CopyIn(l.probe.P, unsafe.Pointer(unsafe.SliceData(mark)), probeBytes)
	d.run.Wait()
	h := append(id.host[:], id.process[:]...)
	h = binary.LittleEndian.AppendUint64(h, uint64(l.probe.P))
	h = binary.LittleEndian.AppendUint64(h, uint64(l.probe.Bytes))
	l.hello = append(append(h, l.probe.Handle[:]...), mark...)
	return l.hello
}

// Why a worker's memory cannot be read.
var (
	errNoHello  = errors.New("it has no GPU, or " + linkNamed + "=off")
	errNoHandle = errors.New("its driver gives no handles of memory")
	errDiffers  = errors.New("its memory has other numbers than it wrote")
)

func (d *Device) Meet(peer int, hello []byte) error {
	id := process()
	switch {
	case d.run.Failed():
		return d.Err()
	case d.Hello() == nil || len(hello) != helloBytes:
		return errNoHello
	case !bytes.Equal(hello[:16], id.host[:]):
		return tensor.ErrElsewhere
	}
	here := bytes.Equal(hello[16:32], id.process[:])
	if !here {
		d.mem.Abroad()
	}
	handle := memory.Handle(hello[48:112])
	if !here && handle == (memory.Handle{}) {
		return errNoHandle
	}
	ref := make([]byte, tensor.ReferenceBytes)
	copy(ref, handle[:])
	copy(ref[64:], hello[32:40])
	copy(ref[80:], hello[40:48])
	binary.LittleEndian.PutUint64(ref[88:], probeBytes)
	defer d.enter()()
	from, err := d.locate(here, ref, probeBytes)
	if err != nil {
		return err
	}
	found := make([]uint64, probeBytes/8)
	d.run.Settle()
	code := driver.Call(d.run.GPU.CopyOut, driver.Address(&found[0]), from, probeBytes, d.run.Handle)
	if code == 0 {
		code = driver.Call(d.run.GPU.StreamSync, d.run.Handle)
	}
	seen := unsafe.Slice((*byte)(unsafe.Pointer(&found[0])), probeBytes)
	switch {
	case code != 0:
		return d.run.GPU.Failure("cuMemcpyDtoHAsync", code)
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
	r := memory.Lent(m)
	tensor.Need(r != nil && m.Contiguous(), "cuda: Refer to %v, which Lend did not make", m)
	ref := append(make([]byte, 0, tensor.ReferenceBytes), r.Handle[:]...)
	for _, n := range []uint64{uint64(r.P), uint64(tensor.Offset(m)), uint64(r.Bytes), uint64(m.Bytes())} {
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
	defer d.enter()()
	from, err := d.locate(here, ref, n)
	if err != nil {
		return fmt.Errorf("rows of worker %d on its GPU: %w", peer, err)
	}
	d.run.Settle()
	defer d.run.Timed("copy between GPUs")()
	d.run.Do("cuMemcpyDtoDAsync", d.run.GPU.CopyBetween, at(dst), from, uintptr(n), d.run.Handle)
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
	base, err := d.open(memory.Handle(ref[:64]))
	return base + uintptr(offset), err
}

// open is where a region of another process is in this one.
func (d *Device) open(h memory.Handle) (p uintptr, err error) {
	if p, ok := d.link.opened[h]; ok {
		return p, nil
	}
	d.run.Bind()
	if code := openHandle(d.run.GPU.OpenHandle, &p, &h); code != 0 {
		return 0, d.run.GPU.Failure("cuIpcOpenMemHandle", code)
	}
	if d.link.opened == nil {
		d.link.opened = map[memory.Handle]uintptr{}
	}
	d.link.opened[h] = p
	return p, nil
}

// openHandle calls cuIpcOpenMemHandle, whose second argument is a struct by value: on x86-64 its words are behind
// those arguments that do not fit registers, on ARM it is the address of a copy.
func openHandle(f uintptr, p *uintptr, h *memory.Handle) uintptr {
	const peerAccess = 1
	own := *h
	defer runtime.KeepAlive(&own)
	if runtime.GOARCH != "amd64" {
		return driver.Call(f, driver.Address(p), driver.Address(&own), peerAccess)
	}
	args := []uintptr{driver.Address(p), peerAccess, 0, 0, 0, 0}
	for i := 0; i < len(own); i += 8 {
		args = append(args, uintptr(binary.NativeEndian.Uint64(own[i:])))
	}
	return driver.Call(f, args...)
}

func (d *Device) After(f func()) {
	defer d.enter()()
	d.run.Settle()
	l := &d.link
	e := d.event()
	if !d.run.Record(e, d.run.Handle) {
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
	d.run.Bind()
	return d.run.Event(true)
}

// callAfter waits for one event after the other.
func (d *Device) callAfter(list <-chan later) {
	d.run.GPU.OnThread(d.run.GPU.Context, func() error {
		for w := range list {
			code := driver.Call(d.run.GPU.EventSync, w.event)
			d.link.events.Lock()
			d.link.events.free = append(d.link.events.free, w.event)
			d.link.events.Unlock()
			if d.run.Check("cuEventSynchronize", code) {
				w.f()
			}
		}
		return nil
	})
}

// close ends what workers read of each other. REQUIRES: the thread is the GPU's, and the stream is done.
func (l *link) close(gpu *driver.GPU) {
	if l.after != nil {
		close(l.after)
		l.ended.Wait()
	}
	for _, e := range l.events.free {
		driver.Call(gpu.EventDestroy, e)
	}
	for _, p := range l.opened {
		driver.Call(gpu.CloseHandle, p)
	}
}
