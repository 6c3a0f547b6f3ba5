//go:build linux

// Package elsewhere is a device for tests whose memory the host cannot touch, and whose
// operations run some time after they were called, as those of a GPU do. Handles hold
// addresses in a mapping without access, so that who looks into them ends with a fault; the
// device finds the same pages in a mapping of its own, and has the CPU's kernels work there,
// on a goroutine that takes operations from a queue.
package elsewhere

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cpu"
)

// Device is memory elsewhere.
type Device struct {
	tensor.Intercepted
	*stream
	cpu         *cpu.Device
	mem         *memory
	inUse, peak atomic.Int64
}

var _ tensor.Device = (*Device)(nil)

// New is a device that computes on a number of threads.
func New(threads int) (*Device, error) {
	mem, err := newMemory()
	if err != nil {
		return nil, err
	}
	d := &Device{stream: newStream(), cpu: cpu.New(threads), mem: mem}
	d.Intercepted = tensor.Intercept(d.cpu, d.operation)
	return d, nil
}

// operation finds its matrices where the device can reach them, and queues. Slices of the host are copied.
func (d *Device) operation(c *tensor.Call) {
	c.Replace(d.in)
	if p := tensor.Arg[tensor.Packing](c); p != nil {
		p.Mask = slices.Clone(p.Mask)
	}
	if c.Op == "Unpack" {
		src := tensor.Arg[[]byte](c)
		*src = slices.Clone(*src)
	}
	d.do(func() { c.Run(d.cpu) })
	if c.Op == "Pack" { // the host reads what it writes
		d.sync()
	}
}

// block is what owns a buffer: pages, and the buffer by which the device reaches them. Of a
// staging buffer it is only how many bytes that has.
type block struct {
	pages span
	inner *tensor.Buffer
	bytes int
	freed bool
}

// buffer is n bytes of pages, for handles.
func (d *Device) buffer(n int) (*tensor.Buffer, *block) {
	s := d.mem.take(n)
	b := &block{pages: s, bytes: s.to - s.from, inner: tensor.NewBuffer(at(d.mem.own, s.from), n, true, nil)}
	return tensor.NewBuffer(at(d.mem.host, s.from), n, false, b), b
}

func (d *Device) Type() tensor.DType                  { return d.cpu.Type() }
func (d *Device) Chunk() int                          { return d.cpu.Chunk() }
func (d *Device) RowType(t tensor.DType) tensor.DType { return d.cpu.RowType(t) }
func (d *Device) Usage() (inUse, peak int64)          { return d.inUse.Load(), d.peak.Load() }
func (d *Device) Sync()                               { d.sync() }
func (d *Device) note(n int)                          { d.peak.Store(max(d.peak.Load(), d.inUse.Add(int64(n)))) }
func (d *Device) empty(t tensor.DType, r, c int) tensor.Matrix {
	return tensor.MakeMatrix(tensor.HostBuffer[byte](nil), 0, t, r, c, c)
}

func (d *Device) New(t tensor.DType, rows, cols int) tensor.Matrix {
	m := d.Scratch(t, rows, cols)
	d.Zero(m)
	return m
}

// Scratch is filled with what is not a number, so that a result that was not written is seen at once.
func (d *Device) Scratch(t tensor.DType, rows, cols int) tensor.Matrix {
	n := rows * cols * t.Size()
	if n == 0 {
		return d.empty(t, rows, cols)
	}
	buf, b := d.buffer(n)
	d.note(b.bytes)
	bytes := unsafe.Slice((*byte)(b.inner.Addr()), n)
	d.do(func() {
		for i := range bytes {
			bytes[i] = 0xff
		}
	})
	return tensor.MakeMatrix(buf, 0, t, rows, cols, cols)
}

func (d *Device) Free(m tensor.Matrix) {
	if m.Rows*m.Cols == 0 {
		return
	}
	b, ok := tensor.BufferOf(m).Owner().(*block)
	if !ok || b.freed {
		panic("elsewhere: Free of a matrix that New did not make, or twice")
	}
	b.freed = true
	d.inUse.Add(-int64(b.bytes))
	if b.inner != nil { // operations that are queued still find it before those of its next user
		d.mem.give(b.pages)
	}
}

func (d *Device) FromHost(rows, cols int, host any) tensor.Matrix {
	from := d.cpu.FromHost(rows, cols, clone(host))
	if from.Rows*from.Cols == 0 {
		return from
	}
	buf, b := d.buffer(int(from.Bytes()))
	runtime.AddCleanup(buf, d.mem.give, b.pages)
	m := tensor.MakeMatrix(buf, 0, from.Type(), rows, cols, cols)
	to := d.in(m)
	d.do(func() { copy(tensor.Memory(to), tensor.Memory(from)) })
	return m
}

func (d *Device) Upload(dst tensor.Matrix, host any) {
	to, from := d.in(dst), clone(host)
	d.do(func() { d.cpu.Upload(to, from) })
}

func (d *Device) Download(host any, m tensor.Matrix) {
	from := d.in(m)
	d.do(func() { d.cpu.Download(host, from) })
	d.sync()
}

func (d *Device) Staging(bytes int) (tensor.Matrix, []byte) {
	b := make([]uint64, max(1, (bytes+7)/8))
	buf := tensor.NewBuffer(unsafe.Pointer(&b[0]), 8*len(b), true, &block{bytes: 8 * len(b)})
	d.note(8 * len(b))
	m := tensor.MakeMatrix(buf, 0, tensor.F64, len(b), 1, 1)
	return m, tensor.Memory(m)[:bytes]
}

// Close waits for all operations and gives the memory back.
func (d *Device) Close() {
	d.sync()
	d.stream.close()
	d.cpu.Close()
	d.mem.close()
}

// clone is a host slice of the device's own, since the caller's may change.
func clone(host any) any {
	switch h := host.(type) {
	case []float64:
		return slices.Clone(h)
	case []float32:
		return slices.Clone(h)
	case []uint16:
		return slices.Clone(h)
	case []uint32:
		return slices.Clone(h)
	case []int64:
		return slices.Clone(h)
	}
	panic(fmt.Sprintf("elsewhere: a host slice of type %T", host))
}

// in is a matrix where the device can reach it.
func (d *Device) in(m tensor.Matrix) tensor.Matrix {
	if m.IsZero() {
		return m
	}
	if b, ok := tensor.BufferOf(m).Owner().(*block); ok && b.inner != nil {
		if b.freed {
			panic(fmt.Sprintf("elsewhere: %v was freed", m))
		}
		return tensor.WithBuffer(m, b.inner)
	}
	return m
}
