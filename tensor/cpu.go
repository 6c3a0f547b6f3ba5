package tensor

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"starling/tensor/simd"
)

// CPU is the device that computes on this machine's cores.
type CPU struct {
	*pool
	*arena
	level simd.Level
	// blocks finds the arena's block behind a matrix made by New, by its first byte.
	blocks sync.Map
}

// NewCPU is a device with the given number of threads (0: all cores), at the best
// instruction set this processor has, or the one STARLING_SIMD names.
func NewCPU(threads int) *CPU { return NewCPULevel(threads, simd.Best()) }

// NewCPULevel is NewCPU with a chosen instruction set. It panics when the processor lacks it.
func NewCPULevel(threads int, level simd.Level) *CPU {
	if level > simd.Supported() {
		panic(fmt.Sprintf("tensor: this processor has no %v", level))
	}
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &CPU{pool: newPool(threads), arena: newArena(), level: level}
}

// Threads is the number of cores the device uses, Level its instruction set.
func (c *CPU) Threads() int      { return c.threads }
func (c *CPU) Level() simd.Level { return c.level }

func (c *CPU) Type() DType { return F32 }

func (c *CPU) RowType(t DType) DType {
	if t == BF16 {
		return BF16
	}
	return F32
}

func (c *CPU) New(t DType, rows, cols int) Matrix     { return c.alloc(t, rows, cols, true) }
func (c *CPU) Scratch(t DType, rows, cols int) Matrix { return c.alloc(t, rows, cols, false) }

func (c *CPU) alloc(t DType, rows, cols int, zero bool) Matrix {
	n := rows * cols * t.Size()
	if n == 0 {
		return wrap(t, rows, cols, nil)
	}
	b := c.take(n, zero)
	m := wrap(t, rows, cols, b)
	c.blocks.Store(m.base(), b)
	return m
}

func (c *CPU) Free(m Matrix) {
	if m.Rows*m.Cols == 0 {
		return
	}
	b, ok := c.blocks.LoadAndDelete(m.base())
	if !ok {
		panic("tensor: Free of a matrix that New did not make, or twice")
	}
	c.give(b.([]byte))
}

// base is the address of a matrix's first number.
func (m Matrix) base() unsafe.Pointer {
	switch m.dtype {
	case F32:
		return unsafe.Pointer(&m.f32[0])
	case BF16:
		return unsafe.Pointer(&m.b16[0])
	default:
		return unsafe.Pointer(&m.f64[0])
	}
}

func (c *CPU) FromHost(rows, cols int, host []float32) Matrix {
	return Matrix{Rows: rows, Cols: cols, dtype: F32, stride: cols, f32: host[:rows*cols]}
}

func (c *CPU) FromHostBF16(rows, cols int, host []uint16) Matrix {
	return Matrix{Rows: rows, Cols: cols, dtype: BF16, stride: cols, b16: host[:rows*cols]}
}

func (c *CPU) Upload(dst Matrix, host []float64)   { upload(dst, host) }
func (c *CPU) Upload32(dst Matrix, host []float32) { upload(dst, host) }
func (c *CPU) Download(host []float64, m Matrix)   { download(host, m) }
func (c *CPU) Download32(host []float32, m Matrix) { download(host, m) }
func (c *CPU) Bytes(m Matrix) []byte               { return m.bytes() }
func (c *CPU) Room(bytes int) (Matrix, []byte)     { return roomOf(c, bytes) }
func (c *CPU) Indices(host []uint32) Index         { return Index{nonNil(host)} }
func (c *CPU) InUse() int64                        { return c.inUse.Load() }
func (c *CPU) Peak() int64                         { return c.peak.Load() }

// Close stops the threads and unmaps all memory.
func (c *CPU) Close() {
	c.pool.close()
	c.arena.close()
}

func (c *CPU) SparseMatrix(rows, cols int, ptr []int64, index []uint32, value []float32) *Sparse {
	s := &Sparse{Rows: rows, Cols: cols, ptr: ptr, index: index}
	if value != nil {
		s.value = c.FromHost(len(value), 1, value)
	}
	return s
}

func (c *CPU) SparseTranspose(s *Sparse, ptr []int64, index []uint32, perm []uint32) *Sparse {
	t := &Sparse{Rows: s.Cols, Cols: s.Rows, ptr: ptr, index: index, perm: perm}
	if !s.value.IsZero() {
		t.value = c.New(F32, len(index), 1)
		permute(t.value.f32, s.value.f32, perm)
	}
	return t
}

func permute[T any](dst, src []T, perm []uint32) {
	for i, p := range perm {
		dst[i] = src[p]
	}
}

func nonNil(v []uint32) []uint32 {
	if v == nil {
		return []uint32{}
	}
	return v
}

func upload[T float32 | float64](dst Matrix, host []T) {
	for i := range dst.Rows {
		h := host[i*dst.Cols : (i+1)*dst.Cols]
		switch dst.dtype {
		case F32:
			for j, x := range h {
				dst.f32[i*dst.stride+j] = float32(x)
			}
		case BF16:
			for j, x := range h {
				dst.b16[i*dst.stride+j] = simd.ToBF16(float32(x))
			}
		case F64:
			for j, x := range h {
				dst.f64[i*dst.stride+j] = float64(x)
			}
		}
	}
}

func download[T float32 | float64](host []T, m Matrix) {
	for i := range m.Rows {
		h := host[i*m.Cols : (i+1)*m.Cols]
		switch m.dtype {
		case F32:
			for j := range h {
				h[j] = T(m.f32[i*m.stride+j])
			}
		case BF16:
			for j := range h {
				h[j] = T(simd.FromBF16(m.b16[i*m.stride+j]))
			}
		case F64:
			for j := range h {
				h[j] = T(m.f64[i*m.stride+j])
			}
		}
	}
}
