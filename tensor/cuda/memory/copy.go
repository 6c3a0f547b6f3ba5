package memory

import (
	"runtime"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cuda/driver"
)

// rounded is a size in whole pieces of 256 bytes.
func rounded(n int) int { return (n + 255) &^ 255 }

// ring is memory of the host that the GPU reads by itself, through which what is handed over goes: the driver
// would wait for the stream before it reads other memory. It has parts, each with an event that tells when the GPU has
// read it, so that the host fills one while the GPU is at those before.
type ring struct {
	p      uintptr
	part   int
	used   int // of the part
	events [ringParts]uintptr
}

// What is larger than a part goes the driver's way.
const (
	ringParts = 4
	ringBytes = 16 << 20 // of a part
)

// through is where bytes of the host can be read by the GPU when it comes to that: in the ring, or where they are;
// wait: the GPU has to read them before they change. Staging stays as it is until it is freed.
func (mem *Memory) through(from unsafe.Pointer, n int) (own unsafe.Pointer, wait bool) {
	r := &mem.ring
	switch {
	case mem.isStaging(uintptr(from)):
		return from, false
	case n > ringBytes:
		return from, true
	case r.p == 0 && !mem.run.Do("cuMemAllocHost", mem.run.GPU.AllocHost, driver.Address(&r.p), ringParts*ringBytes):
		return from, true
	}
	if r.used+n > ringBytes {
		mem.turn(r)
	}
	to := unsafe.Add(driver.Pointer(r.p), r.part*ringBytes+r.used)
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	r.used += rounded(n)
	return to, false
}

// turn goes on to the ring's next part, when the GPU has read what was there.
func (mem *Memory) turn(r *ring) {
	if r.events[r.part] == 0 {
		r.events[r.part] = mem.run.Event(false)
	}
	mem.run.Record(r.events[r.part], mem.run.Handle)
	r.part, r.used = (r.part+1)%ringParts, 0
	if e := r.events[r.part]; e != 0 {
		mem.run.Do("cuEventSynchronize", mem.run.GPU.EventSync, e)
	}
}

func (r *ring) close(gpu *driver.GPU) {
	if r.p != 0 {
		driver.Call(gpu.FreeHost, r.p)
	}
	for _, e := range r.events {
		if e != 0 {
			driver.Call(gpu.EventDestroy, e)
		}
	}
}

// CopyIn queues a copy to the GPU, and is done with the host's memory when it returns.
func (mem *Memory) CopyIn(to uintptr, from unsafe.Pointer, n int) {
	mem.run.Settle()
	own, wait := mem.through(from, n)
	if wait {
		defer mem.run.Wait()
	}
	mem.queueIn(to, own, n)
}

func (mem *Memory) queueIn(to uintptr, from unsafe.Pointer, n int) {
	defer mem.run.Timed("copy in")()
	mem.run.Do("cuMemcpyHtoDAsync", mem.run.GPU.CopyIn, to, uintptr(from), uintptr(n), mem.run.Handle)
}

// CopyOut waits.
func (mem *Memory) CopyOut(to unsafe.Pointer, from uintptr, n int) {
	mem.run.Settle()
	mem.run.Do("cuMemcpyDtoHAsync", mem.run.GPU.CopyOut, uintptr(to), from, uintptr(n), mem.run.Handle)
	mem.run.Wait()
}

// copy2D is the driver's CUDA_MEMCPY2D.
type copy2D struct {
	srcX, srcY               uintptr
	srcKind                  uint64
	srcHost, srcCard, srcArr uintptr
	srcPitch                 uintptr
	dstX, dstY               uintptr
	dstKind                  uint64
	dstHost, dstCard, dstArr uintptr
	dstPitch                 uintptr
	bytes, rows              uintptr
}

const kindHost, kindCard = 1, 2

// MoveRows copies rows between the host, where they have no gaps, and the GPU.
func (mem *Memory) MoveRows(m tensor.Matrix, host unsafe.Pointer, in bool) {
	size := m.Type().Size()
	row := uintptr(m.Cols * size)
	if m.Contiguous() {
		if n := int(m.Bytes()); in {
			mem.CopyIn(At(m), host, n)
		} else {
			mem.CopyOut(host, At(m), n)
		}
		return
	}
	mem.run.Settle()
	wait := !in
	if in {
		host, wait = mem.through(host, int(m.Bytes()))
	}
	pitch := uintptr(m.Stride() * size)
	c := &copy2D{bytes: row, rows: uintptr(m.Rows)}
	if in {
		c.srcKind, c.srcHost, c.srcPitch, c.dstKind, c.dstCard, c.dstPitch = kindHost, uintptr(host), row, kindCard, At(m), pitch
	} else {
		c.dstKind, c.dstHost, c.dstPitch, c.srcKind, c.srcCard, c.srcPitch = kindHost, uintptr(host), row, kindCard, At(m), pitch
	}
	mem.run.Do("cuMemcpy2DAsync", mem.run.GPU.CopyRows, driver.Address(c), mem.run.Handle)
	runtime.KeepAlive(c)
	if wait {
		mem.run.Wait()
	}
}

// HostBytes is memory of the host for the rows of m.
func HostBytes(m tensor.Matrix) (tensor.Matrix, unsafe.Pointer) {
	b := make([]uint64, (m.Bytes()+7)/8)
	buf := tensor.HostBuffer(b)
	return tensor.MakeMatrix(buf, 0, m.Type(), m.Rows, m.Cols, m.Cols), buf.Addr()
}

func (mem *Memory) Upload(dst tensor.Matrix, host any) {
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer mem.Enter()()
	h, p := HostBytes(dst)
	tensor.CopyIn(h, host)
	mem.MoveRows(dst, p, true)
	runtime.KeepAlive(h)
}

func (mem *Memory) Download(host any, m tensor.Matrix) {
	defer mem.Enter()()
	if m.Rows*m.Cols == 0 {
		mem.run.Sync()
		return
	}
	h, p := HostBytes(m)
	if mem.MoveRows(m, p, false); !mem.run.Failed() {
		tensor.CopyOut(host, h)
	}
}
