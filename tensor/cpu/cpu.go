// Package cpu is the device that computes on this machine's cores: float32, bfloat16 storage,
// SIMD kernels (package simd) chosen by what the processor has.
//
//	cpu.go, views.go           the device; what kernels see of handles
//	arena.go, region.go        where matrices live, and are recycled
//	parallel.go, shares.go     cores and chunks of rows; sparse matrices cut by entries
//	matmul*.go                 GEMM: matmul.go says which file makes which product
//	spmm.go, rows.go           SpMM; gathering and scattering of rows
//	attention*.go              GAT; attention_dynamic.go GATv2
//	film.go, edge_sum.go       other layers whose messages depend on edges, by edgewise.go
//	elementwise.go, norm.go    number by number; by rows and columns; fold.go for short rows
//	activate.go                epilogues
//	loss.go, optimiser.go      losses and optimisers; count_marks.go and dot.go reductions
//	pack.go, nonzero.go        rows with fewer bytes, for the wire
//	workspace.go               what kernels take for themselves, for those who plan memory
//
// A kernel foo of package simd is simd/foo.go, its definition in plain Go,
// simd/foo_amd64.go, which calls the assembly, and simd/asm/foo, which generates that.
// docs/kernels.md says what limits each.
//
// Work is cut into chunks whose bounds depend on the shapes alone, never on the number of
// threads; partial sums are added in chunk order. A result is therefore the same, bit for
// bit, for any number of threads. Operations are done when their calls return.
package cpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// Device computes on this machine's cores.
type Device struct {
	*pool
	*arena
	level simd.Level
	gemm  simd.Level // of products: less where the user asked for plain float32
}

var _ tensor.Device = (*Device)(nil)

// Options are how a device computes.
type Options struct {
	Threads int // 0: all cores
	Level   simd.Level
	// PlainMatMul has products made by float32 multiply-adds only. Without it AMX makes
	// them, where there is one: of float32 each number in parts of half precision, of
	// bfloat16 with weights rounded to it.
	PlainMatMul bool
}

// New is a device with the given number of threads (0: all cores), at the best instruction
// set this processor has, or the one STARLING_SIMD names.
func New(threads int) *Device { return NewWith(Options{Threads: threads, Level: simd.Best()}) }

// NewWith is a device with these options. It panics when the processor lacks the
// instruction set.
func NewWith(o Options) *Device {
	gemm := o.Level
	if o.PlainMatMul {
		gemm = min(gemm, simd.AVX512)
	}
	if o.Level > simd.Supported() {
		panic(fmt.Sprintf("tensor: this processor has no %v", o.Level))
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	return &Device{pool: newPool(o.Threads), arena: newArena(), level: o.Level, gemm: gemm}
}

// Threads is the number of cores the device uses, Level its instruction set.
func (c *Device) Threads() int      { return c.threads }
func (c *Device) Level() simd.Level { return c.level }

func (c *Device) Type() DType { return F32 }

// Chunk keeps what is made and used up in the cache that cores share.
func (*Device) Chunk() int { return 1 << 21 }

func (c *Device) RowType(t DType) DType {
	if t == BF16 {
		return BF16
	}
	return F32
}

func (c *Device) New(t DType, rows, cols int) Matrix     { return c.alloc(t, rows, cols, true) }
func (c *Device) Scratch(t DType, rows, cols int) Matrix { return c.alloc(t, rows, cols, false) }

// alloc panics where the host has no memory, as the runtime does on an ordinary make.
func (c *Device) alloc(t DType, rows, cols int, zero bool) Matrix {
	m, err := c.tryAlloc(t, rows, cols, zero)
	if err != nil {
		panic(err.Error())
	}
	return m
}

func (c *Device) tryAlloc(t DType, rows, cols int, zero bool) (Matrix, error) {
	n := rows * cols * t.Size()
	if n == 0 {
		return tensor.MakeMatrix(tensor.HostBuffer[byte](nil), 0, t, rows, cols, cols), nil
	}
	bytes, err := c.take(n, zero)
	if err != nil {
		return Matrix{}, err
	}
	b := &block{bytes: bytes}
	return tensor.MakeMatrix(tensor.NewBuffer(unsafe.Pointer(&bytes[0]), len(bytes), true, b), 0, t, rows, cols, cols), nil
}

// block is what a buffer's owner is: memory of the arena, until it is freed.
type block struct{ bytes []byte }

func (c *Device) Free(m Matrix) {
	if m.Rows*m.Cols == 0 {
		return
	}
	b, ok := tensor.BufferOf(m).Owner().(*block)
	if !ok || b.bytes == nil || tensor.Offset(m) != 0 {
		panic("tensor: Free of a matrix that New did not make, or twice")
	}
	c.give(b.bytes)
	b.bytes = nil
}

func (c *Device) FromHost(rows, cols int, host any) Matrix { return tensor.FromAny(rows, cols, host) }

func (c *Device) Upload(dst Matrix, host any) { tensor.CopyIn(dst, host) }
func (c *Device) Download(host any, m Matrix) { tensor.CopyOut(host, m) }

func (c *Device) Staging(bytes int) (Matrix, []byte) {
	m := c.Scratch(F32, (bytes+3)/4, 1)
	return m, bytesOf(m)[:bytes]
}

func (c *Device) Usage() (inUse, peak int64) { return c.inUse.Load(), c.peak.Load() }

// Sync has nothing to wait for, and nothing fails.
func (c *Device) Sync()      {}
func (c *Device) Err() error { return nil }

// Close stops the threads and unmaps all memory.
func (c *Device) Close() {
	c.pool.close()
	c.arena.close()
}
