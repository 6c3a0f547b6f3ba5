package cpu

import (
	"fmt"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// Dry is a device that makes and frees matrices and computes nothing: it is for planning
// the memory of a run. A run on it takes exactly the addresses of a real one, workspaces of
// kernels included, but the pages are mapped and never touched.
type Dry struct {
	*Device
	DryOptions
}

// DryOptions say what is planned.
type DryOptions struct {
	F64   bool  // the reference device
	Cores int   // of the real run
	Most  int64 // a run that has more bytes at once ends with a panic of TooMuch
}

// TooMuch is why a dry run ends early: so many bytes at once.
type TooMuch int64

func (b TooMuch) Error() string { return fmt.Sprintf("more than %d bytes", int64(b)) }

// NewDry is a device for a dry run.
func NewDry(o DryOptions) *Dry { return &Dry{NewWith(Options{Threads: 1, Level: simd.Best()}), o} }

// DryRun says that nothing is computed: see nn.Topology.
func (*Dry) DryRun() {}

func (d *Dry) Type() DType {
	if d.F64 {
		return F64
	}
	return F32
}

func (d *Dry) RowType(t DType) DType {
	if d.F64 {
		return F64
	}
	return d.Device.RowType(t)
}

func (d *Dry) New(t DType, rows, cols int) Matrix { return d.Scratch(t, rows, cols) }

func (d *Dry) Scratch(t DType, rows, cols int) Matrix {
	inUse, _ := d.Usage()
	if n := inUse + int64(rows)*int64(cols)*int64(t.Size()); n > d.Most {
		panic(TooMuch(n))
	}
	return d.Device.Scratch(t, rows, cols)
}

func (d *Dry) Staging(bytes int) (Matrix, []byte) {
	m := d.Scratch(F32, (bytes+3)/4, 1)
	return m, bytesOf(m)[:bytes]
}

// take takes a workspace and gives it back.
func (d *Dry) take(t DType, rows, cols int) { d.Free(d.Scratch(t, rows, cols)) }

// MatMul takes the workspace of the kernel.
func (d *Dry) MatMul(dst, a, b Matrix, op MatMul) {
	if d.F64 || dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	rows, cols := d.matMulWorkspace(dst, a, b, op)
	all := d.Scratch(F32, rows, cols)
	d.take(F32, d.Cores, d.matMulCoreWorkspace(dst, a, b, op)/4)
	d.Free(all)
}

// AttendGrad takes the workspace of the kernel.
func (d *Dry) AttendGrad(_, _, _ Matrix, adj, _ *Sparse, _, _, _, _, _, _ Matrix, op Attention) {
	scores, keys, packed := attendGradWorkspace(adj, op, d.Cores)
	a, b := d.Scratch(d.Type(), scores[0], scores[1]), d.Scratch(F64, keys[0], keys[1])
	d.take(d.Type(), packed[0], packed[1])
	d.Free(a)
	d.Free(b)
}

// DynamicAttendGrad takes a number per edge and head.
func (d *Dry) DynamicAttendGrad(_, _, _ Matrix, adj, _ *Sparse, _, _, _, _, _, _ Matrix, op Attention, _ EdgeInput) {
	d.take(d.Type(), int(adj.Entries()), op.Heads)
}

// Loss takes the workspace of the kernel. Nothing is lost.
func (d *Dry) Loss(sums, _, logits Matrix, op tensor.Loss) {
	if !d.F64 && op.Kind == tensor.CrossEntropy {
		d.take(F32, d.Cores, crossEntropyCoreWorkspace(logits)/4)
	}
	d.Device.Zero(sums)
}

// Dot is 1: rows that differ are sent.
func (d *Dry) Dot(dst, _, _ Matrix) { d.Device.Upload(dst, []float64{1}) }

// CountMarks counts nothing.
func (d *Dry) CountMarks(counts, _, _ Matrix, _ Index) { d.Device.Zero(counts) }

// Download reads sums, which are small and have been written.
func (d *Dry) Download(host any, m Matrix) {
	if m.Type() == F64 && m.Bytes() <= 4096 {
		d.Device.Download(host, m)
	}
}

func (*Dry) Upload(Matrix, any)                                           {}
func (*Dry) ColumnSum(_, _ Matrix, _ bool)                                {}
func (*Dry) Aggregate(_ Matrix, _ *Sparse, _ Matrix, _ Aggregate)         {}
func (*Dry) AggregateMax(_ Matrix, _ Index, _ *Sparse, _ Matrix)          {}
func (*Dry) AggregateMaxGrad(_ Matrix, _ *Sparse, _ Matrix, _ Index)      {}
func (*Dry) HeadDot(_ Matrix, _ ...HeadDot)                               {}
func (*Dry) HeadDotGrad(_, _ Matrix, _ ...HeadDot)                        {}
func (*Dry) Attend(_, _ Matrix, _ *Sparse, _, _, _ Matrix, _ Attention)   {}
func (*Dry) GatherRows(_, _ Matrix, _ Index)                              {}
func (*Dry) ScatterAdd(_, _ Matrix, _ Index)                              {}
func (*Dry) DropoutValues(_ Matrix, _ *Sparse, _ Dropout, _ bool)         {}
func (*Dry) FilmMean(_ Matrix, _ *Sparse, _, _ Matrix, _ bool)            {}
func (*Dry) FilmMeanGrad(_, _ Matrix, _, _ *Sparse, _, _, _ Matrix)       {}
func (*Dry) EdgeSum(_ Matrix, _ *Sparse, _ Matrix, _ EdgeInput)           {}
func (*Dry) EdgeSumGrad(_ Matrix, _, _ *Sparse, _, _ Matrix, _ EdgeInput) {}
func (*Dry) Zero(Matrix)                                                  {}
func (*Dry) Copy(_, _ Matrix)                                             {}
func (*Dry) Combine(_ Matrix, _ float64, _ Matrix, _ float64, _ Matrix)   {}
func (*Dry) Multiply(_, _, _ Matrix)                                      {}
func (*Dry) Activate(_, _ Matrix, _ Epilogue)                             {}
func (*Dry) ActivateGrad(_, _, _ Matrix, _ Epilogue, _ Matrix)            {}
func (*Dry) ColumnSums(_, _ Matrix)                                       {}
func (*Dry) Moments(_, _, _ Matrix, _ int64, _ float64)                   {}
func (*Dry) BatchNorm(_, _, _, _, _ Matrix, _ float64, _ Epilogue)        {}
func (*Dry) BatchNormSums(_, _, _, _ Matrix, _ float64)                   {}
func (*Dry) BatchNormGrad(_, _, _, _, _, _ Matrix, _ int64, _ float64)    {}
func (*Dry) LayerNorm(_, _, _, _, _ Matrix, _ float64, _ Epilogue)        {}
func (*Dry) LayerNormGrad(_, _, _, _, _, _, _ Matrix)                     {}
func (*Dry) Softmax(_, _ Matrix)                                          {}
func (*Dry) Argmax(Index, Matrix)                                         {}
func (*Dry) Adam(_, _, _, _ Matrix, _ Adam)                               {}
func (*Dry) SGD(_, _, _ Matrix, _ SGD)                                    {}
func (*Dry) Pack([]byte, Matrix, Packing) int                             { return 0 }
func (*Dry) Unpack(Matrix, []byte, Packing)                               {}

// DynamicAttend computes nothing either.
func (*Dry) DynamicAttend(_, _ Matrix, _ *Sparse, _, _, _ Matrix, _ Attention, _ EdgeInput) {}
