package cpu

import (
	"cmp"
	"fmt"
	"slices"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// Dry is a device that makes and frees matrices and computes nothing: it is for planning
// the memory of a run. A run on it takes exactly the addresses of a real one, workspaces of
// kernels included, but the pages are mapped and never touched.
type Dry struct {
	tensor.Intercepted
	DryOptions
	cpu *Device
	err error // why it has no more memory

	staging []byte // one buffer for all staging matrices without memory
}

// DryOptions say what is planned.
type DryOptions struct {
	F64   bool  // the reference device
	Cores int   // of the real run
	Chunk int   // of the real device; 0: this one's
	Most  int64 // a run that has more bytes at once fails with TooMuch
}

// TooMuch is why a dry run failed: the bytes that it would have had at once.
type TooMuch int64

func (b TooMuch) Error() string { return fmt.Sprintf("more than %d bytes", int64(b)) }

// NewDry is a device for a dry run.
func NewDry(o DryOptions) *Dry {
	d := &Dry{DryOptions: o, cpu: NewWith(Options{Threads: 1, Level: simd.Best()})}
	d.Intercepted = tensor.Intercept(d.cpu, d.operation)
	return d
}

// DryRun says that nothing is computed: see nn.Topology.
func (*Dry) DryRun() {}

// Err is TooMuch, or that even addresses were refused.
func (d *Dry) Err() error { return d.err }

// Footprint is the memory that matrices have been in: see arena.
func (d *Dry) Footprint() (large, small int64) { return d.cpu.Footprint() }

func (d *Dry) Type() DType {
	if d.F64 {
		return F64
	}
	return F32
}

func (d *Dry) Chunk() int { return cmp.Or(d.DryOptions.Chunk, d.cpu.Chunk()) }

func (d *Dry) RowType(t DType) DType {
	if d.F64 {
		return F64
	}
	return d.cpu.RowType(t)
}

func (d *Dry) New(t DType, rows, cols int) Matrix { return d.Scratch(t, rows, cols) }

func (d *Dry) Scratch(t DType, rows, cols int) Matrix {
	d.limit(int64(rows) * int64(cols) * int64(t.Size()))
	if d.err == nil {
		m, err := d.cpu.tryAlloc(t, rows, cols, false)
		if d.err = err; err == nil {
			return m
		}
	}
	return tensor.Unbacked(t, rows, cols)
}

// limit fails where more bytes would be too many.
func (d *Dry) limit(more int64) {
	if inUse, _ := d.Usage(); d.err == nil && inUse+more > d.Most {
		d.err = TooMuch(inUse + more)
	}
}

func (d *Dry) Free(m Matrix) {
	if !m.Unbacked() {
		d.cpu.Free(m)
	}
}

func (d *Dry) Staging(bytes int) (Matrix, []byte) {
	m := d.Scratch(F32, (bytes+3)/4, 1)
	if m.Unbacked() { // no operation reads what is written there
		d.staging = slices.Grow(d.staging[:0], bytes)[:bytes]
		return m, d.staging
	}
	return m, bytesOf(m)[:bytes]
}

func (*Dry) Upload(Matrix, any) {}

// Download reads sums, which are small and have been written.
func (d *Dry) Download(host any, m Matrix) {
	if m.Type() == F64 && m.Bytes() <= 4096 && !m.Unbacked() {
		d.cpu.Download(host, m)
	}
}

// Evict takes no part in what matrices hold, of which a dry run has nothing.
func (d *Dry) Evict(m Matrix, _ func([]byte) error) (bool, error) {
	return d.cpu.Evict(m, func([]byte) error { return nil })
}

// Restore may be what makes a run too large.
func (d *Dry) Restore(m Matrix, _ func([]byte) error) error {
	if d.limit(m.Bytes()); d.err != nil {
		return d.err
	}
	return d.cpu.Restore(m, func([]byte) error { return nil })
}

// operation takes the workspace of a kernel and computes nothing, except for sums that the host reads.
func (d *Dry) operation(c *tensor.Call) {
	if d.err != nil {
		return
	}
	switch c.Op {
	case "MatMul":
		d.matMul(c.Matrix(0), c.Matrix(1), c.Matrix(2), *tensor.Arg[MatMul](c))
	case "AttendGrad":
		d.attendGrad(*tensor.Arg[*Sparse](c), *tensor.Arg[Attention](c))
	case "DynamicAttendGrad": // a number per edge and head
		d.take(d.Type(), int((*tensor.Arg[*Sparse](c)).Entries()), tensor.Arg[Attention](c).Heads)
	case "Loss": // nothing is lost
		if !d.F64 && tensor.Arg[tensor.Loss](c).Kind == tensor.CrossEntropy {
			d.take(F32, d.Cores, crossEntropyCoreWorkspace(c.Matrix(2))/4)
		}
		d.cpu.Zero(c.Matrix(0))
	case "CountMarks":
		d.cpu.Zero(c.Matrix(0))
	case "Dot": // 1: rows that differ are sent
		d.cpu.Upload(c.Matrix(0), []float64{1})
	}
}

// take takes a workspace and gives it back.
func (d *Dry) take(t DType, rows, cols int) { d.Free(d.Scratch(t, rows, cols)) }

func (d *Dry) matMul(dst, a, b Matrix, op MatMul) {
	if d.F64 || dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	rows, cols := d.cpu.matMulWorkspace(dst, a, b, op)
	all := d.Scratch(F32, rows, cols)
	d.take(F32, d.Cores, d.cpu.matMulCoreWorkspace(dst, a, b, op)/4)
	d.Free(all)
}

func (d *Dry) attendGrad(adj *Sparse, op Attention) {
	scores, keys, packed := attendGradWorkspace(adj, op, d.Cores)
	a, b := d.Scratch(d.Type(), scores[0], scores[1]), d.Scratch(F64, keys[0], keys[1])
	d.take(d.Type(), packed[0], packed[1])
	d.Free(a)
	d.Free(b)
}
