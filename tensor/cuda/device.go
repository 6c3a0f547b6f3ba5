package cuda

import (
	"runtime"

	"starling/tensor"
	"starling/tensor/cuda/driver"
	"starling/tensor/cuda/execution"
	"starling/tensor/cuda/memory"
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
	Number int  // of the GPU
	TF32   bool // products of float32 may round their factors to 10 bits
	Exact  bool // our own products of float32 are sums of float32 products: else factors are split in two of 10 bits
	Plain  bool // products without cuBLAS
}

// Device is one worker's share of a GPU: operations, over memory and a stream.
type Device struct {
	options   Options
	run       *execution.Stream
	mem       *memory.Memory
	blas      *blas // nil where cuBLAS was not found
	link      link
	reduction *communicator // nil: none
	drawings  []*drawing
}

var _ tensor.Device = (*Device)(nil)

// Open is a device on a GPU.
func Open(o Options) (*Device, error) {
	gpu, err := driver.Open(o.Number)
	if err != nil {
		return nil, err
	}
	run, err := execution.New(gpu, PTX)
	if err != nil {
		gpu.Close()
		return nil, err
	}
	d := &Device{options: o, run: run, mem: memory.New(run)}
	if !o.Plain {
		d.openBLAS()
	}
	if err := d.Err(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close waits for all operations and gives all memory back.
func (d *Device) Close() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	gpu := d.run.GPU
	driver.Call(gpu.ContextSet, gpu.Context) // errors are known from before, or beyond repair
	d.LeaveReduction()
	d.run.Drain()
	for _, g := range d.drawings {
		g.close()
	}
	d.mem.Drain()
	d.link.close(gpu)
	d.mem.Close()
	if d.blas != nil {
		d.blas.close()
	}
	d.run.Close()
	gpu.Close()
}

// Info is what the driver says of the device's GPU.
func (d *Device) Info() Info {
	i := d.run.GPU.Info
	if d.blas != nil {
		i.CuBLAS = d.blas.path
	}
	return i
}

// Info is what the driver says of a GPU.
type Info = driver.Info

// ErrUnavailable: there is no GPU to compute with.
var ErrUnavailable = driver.ErrUnavailable

// GPUs lists the GPUs that this process may use.
func GPUs() ([]Info, error) {
	all, err := driver.GPUs()
	for i := range all {
		all[i].CuBLAS = blasPath()
	}
	return all, err
}

// InUse is the name of the GPU that this process computes on, how much of its memory all processes use, and how much
// it has; zeros without one. Of several it is the first.
func InUse() (name string, used, size int64) { return driver.InUse() }

// Err is the first error of the driver or of a library; nil while the device works.
func (d *Device) Err() error { return d.run.Err() }

// Replayed is how many sequences of operations were launched as captured graphs.
func (d *Device) Replayed() int { return d.run.Replayed() }

// Sync waits for the stream.
func (d *Device) Sync() {
	defer d.enter()()
	d.run.Sync()
}

// What package memory does for the device.

func (d *Device) Scratch(t DType, rows, cols int) Matrix   { return d.mem.Scratch(t, rows, cols) }
func (d *Device) Free(m Matrix)                            { d.mem.Free(m) }
func (d *Device) FromHost(rows, cols int, host any) Matrix { return d.mem.FromHost(rows, cols, host) }
func (d *Device) Return(m Matrix)                          { d.mem.Return(m) }
func (d *Device) Upload(dst Matrix, host any)              { d.mem.Upload(dst, host) }
func (d *Device) Download(host any, m Matrix)              { d.mem.Download(host, m) }
func (d *Device) Staging(bytes int) (Matrix, []byte)       { return d.mem.Staging(bytes) }
func (d *Device) Ahead(f func()) tensor.Fed                { return d.mem.Ahead(f) }
func (d *Device) NewParcel() tensor.Parcel                 { return d.mem.NewParcel() }
func (d *Device) Lend(t DType, rows, cols int) Matrix      { return d.mem.Lend(t, rows, cols) }

// Usage is with that of drawings.
func (d *Device) Usage() (inUse, peak int64) {
	inUse, peak = d.mem.Usage()
	for _, g := range d.drawings {
		n, most := g.mem.Usage()
		inUse, peak = inUse+n, peak+most
	}
	return inUse, peak
}

func (d *Device) New(t DType, rows, cols int) Matrix {
	m := d.Scratch(t, rows, cols)
	d.Zero(m)
	return m
}

// enter begins an operation, and what it returns ends it. scratch and release are Scratch and Free inside one.
func (d *Device) enter() (leave func())                  { return d.mem.Enter() }
func (d *Device) scratch(t DType, rows, cols int) Matrix { return d.mem.Piece(t, rows, cols) }
func (d *Device) release(m Matrix)                       { d.mem.Release(m) }

func (d *Device) Type() DType { return F32 }

// RowType is what was asked for, of those that kernels know.
// Chunk implements tensor.Allocator.
func (*Device) Chunk() int { return tensor.GPUChunk }

func (d *Device) RowType(t DType) DType {
	if t == BF16 {
		return BF16
	}
	return F32
}

// size3 is a number of blocks or threads in each direction.
type size3 = execution.Size

// launch queues a kernel. Its arguments are one struct, which the driver copies.
func launch[A any](d *Device, module, name string, grid, block size3, args *A) {
	execution.Launch(d.run, module, name, grid, block, args)
}

const threads = 256

// blocks is how many blocks of threads there are for n threads.
func blocks(n int) size3 { return size3{X: (n + threads - 1) / threads} }

// warps is how many blocks there are for n warps.
func warps(n int) size3 { return blocks(32 * n) }

var oneBlock = size3{X: threads}

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

func at(m Matrix) uintptr { return memory.At(m) }

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

// vectorOf is how many numbers kernels take at once of matrices: most, or 4, or 1.
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
