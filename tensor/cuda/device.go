package cuda

import (
	"runtime"
	"unsafe"

	"starling/tensor"
)

// The handles and options of package tensor, by their own names.
type (
	Matrix    = tensor.Matrix
	Index     = tensor.Index
	Sparse    = tensor.Sparse
	DType     = tensor.DType
	Epilogue  = tensor.Epilogue
	Dropout   = tensor.Dropout
	Attention = tensor.Attention
	EdgeInput = tensor.EdgeInput
)

const (
	F32  = tensor.F32
	BF16 = tensor.BF16
	F64  = tensor.F64
	U32  = tensor.U32
)

// Options are how a device computes.
type Options struct {
	Number int  // of the card
	TF32   bool // products of float32 may round their factors to 10 bits
	Exact  bool // our own products of float32 are sums of float32 products: else factors are split in two of 10 bits
	Plain  bool // products without cuBLAS
}

// Device is one worker's share of a card.
type Device struct {
	card    *card
	options Options
	stream  uintptr
	blas    *blas // nil where cuBLAS was not found

	memory    memory
	link      link
	reduction *communicator // nil: none
	lane      lane
	packing   packing
	queue     queue
	functions map[string]uintptr // kernels that were used
	failure   failure
	depth     int      // of enter
	bound     bool     // the thread is the card's
	profile   *profile // nil unless it is asked for
}

var _ tensor.Device = (*Device)(nil)

// Open is a device on a card.
func Open(o Options) (d *Device, err error) {
	c, err := cardOf(o.Number)
	if err != nil {
		return nil, err
	}
	d = &Device{card: c, options: o, profile: newProfile(), memory: newMemory(), functions: map[string]uintptr{},
		failure: newFailure()}
	d.queue, d.packing.of = newQueue(d.profile != nil), map[unsafe.Pointer]packed{}
	err = c.onThread(c.context, func() error {
		const nonBlocking = 1
		if code := call(c.streamCreate, address(&d.stream), nonBlocking); code != 0 {
			return c.failure("cuStreamCreate", code)
		}
		if !o.Plain {
			d.blas = openBLAS(d.stream)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.devices.Add(1)
	if d.giveWorkspace(); d.failed() {
		d.Close()
		return nil, d.Err()
	}
	return d, nil
}

// Info is what the driver says of the device's card.
func (d *Device) Info() Info {
	i := d.card.Info
	if d.blas != nil {
		i.CuBLAS = d.blas.path
	}
	return i
}

func (d *Device) Type() DType { return F32 }

// RowType is what was asked for, of those that kernels know.
func (d *Device) RowType(t DType) DType {
	if t == BF16 {
		return BF16
	}
	return F32
}

// enter begins an operation, and gives back what is no longer reachable. One that is held back needs no thread.
func (d *Device) enter() {
	if d.depth++; !d.queue.held {
		d.bind()
	}
	d.memory.drain()
}

// bind makes this thread the card's until leave.
func (d *Device) bind() {
	if d.bound {
		return
	}
	runtime.LockOSThread()
	d.bound = true
	d.do("cuCtxSetCurrent", d.card.contextSet, d.card.context)
}

func (d *Device) leave() {
	if d.depth--; d.depth == 0 && d.bound {
		d.bound = false
		runtime.UnlockOSThread()
	}
}

// Sync waits for the stream.
func (d *Device) Sync() {
	d.enter()
	defer d.leave()
	d.sync()
}

func (d *Device) sync() {
	d.settle()
	d.wait()
}

// wait is for what has been queued on the stream. REQUIRES: nothing is held back.
func (d *Device) wait() {
	if d.do("cuStreamSynchronize", d.card.streamSync, d.stream) && !d.ahead() {
		d.memory.reread()
		d.tidy()
	}
}

// size3 is a number of blocks or threads in each direction.
type size3 struct{ x, y, z int }

// launch queues a kernel. Its arguments are one struct, which the driver copies.
func launch[A any](d *Device, module, name string, grid, block size3, args *A) {
	launchShared(d, module, name, grid, block, 0, args)
}

// launchShared is launch with bytes of shared memory that the kernel does not name itself.
func launchShared[A any](d *Device, module, name string, grid, block size3, shared int, args *A) {
	if grid.x <= 0 || grid.y < 0 || d.failed() {
		return
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(args)), unsafe.Sizeof(*args)/8)
	d.enqueue(operation{name: name, f: d.function(module, name), kernel: true, shared: uint32(shared), shape: [6]uint32{
		uint32(grid.x), uint32(max(grid.y, 1)), uint32(max(grid.z, 1)), uint32(block.x), uint32(max(block.y, 1)),
		uint32(max(block.z, 1))}}, words)
}

// function is a kernel by its name.
func (d *Device) function(module, name string) uintptr {
	f := d.functions[name]
	if f == 0 {
		d.bind()
		var err error
		if f, err = d.card.function(module, name); err != nil {
			d.fail(err)
			return 0
		}
		d.functions[name] = f
	}
	return f
}

const threads = 256

// blocks is how many blocks of threads there are for n threads.
func blocks(n int) size3 { return size3{x: (n + threads - 1) / threads} }

// warps is how many blocks there are for n warps.
func warps(n int) size3 { return blocks(32 * n) }

var oneBlock = size3{x: threads}

// mat is a matrix as kernels have it.
type mat struct {
	p                        uintptr
	stride, rows, cols, kind int64
}

func of(m Matrix) mat {
	if m.IsZero() {
		return mat{}
	}
	return mat{at(m), int64(m.Stride()), int64(m.Rows), int64(m.Cols), int64(m.Type())}
}

// at is the address of a matrix on the card; 0 of none.
func at(m Matrix) uintptr {
	if m.IsZero() {
		return 0
	}
	return uintptr(tensor.Address(m))
}

func atIndex(x Index) uintptr { return at(x.Matrix()) }

// drop and epi are as in kernels/common.cuh.
type drop struct {
	key              uint64
	ids              uintptr
	first, threshold int64
	scale            float64
}

func dropOf(d Dropout) drop {
	return drop{d.Key, atIndex(d.IDs), int64(d.First), int64(d.Threshold()), d.Scale()}
}

type epi struct {
	bias uintptr
	act  int64
	drop drop
}

func epiOf(e Epilogue) epi {
	if !e.Bias.IsZero() {
		tensor.NeedShape("a bias", e.Bias, 1, e.Bias.Cols, F32)
	}
	return epi{at(e.Bias), int64(e.Act), dropOf(e.Dropout)}
}

// column is a vector of the device's type without gaps, one number per row; 0 of none.
func column(name string, m Matrix, rows int) uintptr {
	if m.IsZero() {
		return 0
	}
	tensor.NeedShape(name, m, rows, 1, F32)
	tensor.Need(m.Contiguous(), "%s has gaps", name)
	return at(m)
}

// vector is a row of the device's type; 0 of none.
func vector(name string, m Matrix, cols int) uintptr {
	if m.IsZero() {
		return 0
	}
	tensor.NeedShape(name, m, 1, cols, F32)
	return at(m)
}

// vectorOf is how many numbers kernels take at once of matrices: at most so many, or 4, or 1.
func vectorOf(most int, ms ...Matrix) int {
	for _, v := range []int{most, 4} {
		if aligned(v, ms...) {
			return v
		}
	}
	return 1
}

// aligned is whether matrices allow vectors of n numbers: where they begin, and how rows follow each other.
func aligned(n int, ms ...Matrix) bool {
	for _, m := range ms {
		if m.IsZero() {
			continue
		}
		bytes := uintptr(min(16, n*m.Type().Size()))
		if m.Cols%n != 0 || m.Stride()%n != 0 || at(m)%bytes != 0 {
			return false
		}
	}
	return true
}
