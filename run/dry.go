package run

import (
	"starling/event"
	"starling/tensor"
)

// dry is a device that makes and frees matrices and computes nothing. A run on it
// takes exactly the memory of a real one, on paper: the pages are mapped but never
// touched.
type dry struct {
	*tensor.CPU
	f64   bool
	cores int   // of the real run
	most  int64 // a rehearsal that has more at once ends
}

func newDry(s *Spec) *dry {
	return &dry{CPU: tensor.NewCPU(1), f64: s.rows() == tensor.F64, cores: s.threads(), most: mostRehearsed()}
}

// OnPaper says that nothing is computed: see nn.Topology.
func (*dry) OnPaper() {}

func (d *dry) Type() tensor.DType {
	if d.f64 {
		return tensor.F64
	}
	return tensor.F32
}

func (d *dry) RowType(t tensor.DType) tensor.DType {
	if d.f64 {
		return tensor.F64
	}
	return d.CPU.RowType(t)
}

func (d *dry) New(t tensor.DType, rows, cols int) tensor.Matrix { return d.Scratch(t, rows, cols) }

// tooLarge is why a rehearsal ends early: so many bytes at once, and no end of it.
type tooLarge int64

func (b tooLarge) Error() string { return "it needs more than " + event.Bytes(int64(b)) }

// mostRehearsed is where a rehearsal ends: many times what there is, and far from the end
// of the addresses that a process has.
func mostRehearsed() int64 {
	if total := tensor.MemoryTotal(); total > 0 {
		return min(16*total, 1<<45)
	}
	return 1 << 40
}

func (d *dry) Scratch(t tensor.DType, rows, cols int) tensor.Matrix {
	if n := d.InUse() + int64(rows)*int64(cols)*int64(t.Size()); n > d.most {
		panic(tooLarge(n))
	}
	return d.CPU.Scratch(t, rows, cols)
}

func (d *dry) Room(bytes int) (tensor.Matrix, []byte) {
	m := d.Scratch(tensor.F32, (bytes+3)/4, 1)
	return m, d.Bytes(m)[:bytes]
}

// SparseTranspose does not move values, but has room for them.
func (d *dry) SparseTranspose(s *tensor.Sparse, ptr []int64, index []uint32, perm []uint32) *tensor.Sparse {
	if s.Values().IsZero() {
		return d.CPU.SparseTranspose(s, ptr, index, perm)
	}
	bare := d.CPU.SparseTranspose(d.SparseMatrix(s.Rows, s.Cols, nil, nil, nil), ptr, index, perm)
	return bare.WithValues(d.Scratch(tensor.F32, len(index), 1))
}

func (*dry) Upload(tensor.Matrix, []float64)                                                     {}
func (*dry) Upload32(tensor.Matrix, []float32)                                                   {}
func (*dry) Download([]float64, tensor.Matrix)                                                   {}
func (*dry) ColumnSum(_, _ tensor.Matrix, _ bool)                                                {}
func (*dry) Aggregate(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Matrix, _ tensor.Aggregate)    {}
func (*dry) AggregateMax(_ tensor.Matrix, _ tensor.Index, _ *tensor.Sparse, _ tensor.Matrix)     {}
func (*dry) AggregateMaxGrad(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Matrix, _ tensor.Index) {}
func (*dry) HeadDot(_ tensor.Matrix, _ ...tensor.HeadDot)                                        {}
func (*dry) HeadDotGrad(_, _ tensor.Matrix, _ ...tensor.HeadDot)                                 {}
func (*dry) GatherRows(_, _ tensor.Matrix, _ tensor.Index)                                       {}
func (*dry) ScatterAdd(_, _ tensor.Matrix, _ tensor.Index)                                       {}
func (*dry) DropoutValues(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Dropout, _ bool)           {}
func (*dry) Zero(tensor.Matrix)                                                                  {}
func (*dry) Copy(_, _ tensor.Matrix)                                                             {}
func (*dry) Combine(_ tensor.Matrix, _ float64, _ tensor.Matrix, _ float64, _ tensor.Matrix)     {}
func (*dry) Multiply(_, _, _ tensor.Matrix)                                                      {}
func (*dry) Activate(_, _ tensor.Matrix, _ tensor.After)                                         {}
func (*dry) ActivateGrad(_, _, _ tensor.Matrix, _ tensor.After, _ tensor.Matrix)                 {}
func (*dry) Dot(_, _ tensor.Matrix) float64                                                      { return 1 } // rows that differ are sent
func (*dry) Finite(tensor.Matrix) bool                                                           { return true }
func (*dry) ColumnSums(_, _ tensor.Matrix)                                                       {}
func (*dry) Moments(_, _ tensor.Matrix, _ int64)                                                 {}
func (*dry) Running(_, _ tensor.Matrix, _ int64, _ float64)                                      {}
func (*dry) BatchNorm(_, _, _, _, _ tensor.Matrix, _ float64, _ tensor.After)                    {}
func (*dry) BatchNormSums(_, _, _, _ tensor.Matrix, _ float64)                                   {}
func (*dry) BatchNormGrad(_, _, _, _, _, _ tensor.Matrix, _ int64, _ float64)                    {}
func (*dry) LayerNorm(_, _, _, _, _ tensor.Matrix, _ float64, _ tensor.After)                    {}
func (*dry) LayerNormGrad(_, _, _, _, _, _, _ tensor.Matrix)                                     {}
func (*dry) Softmax(_, _ tensor.Matrix)                                                          {}
func (*dry) Argmax([]uint32, tensor.Matrix)                                                      {}
func (*dry) Adam(_, _, _, _ tensor.Matrix, _ tensor.Adam)                                        {}
func (*dry) SGD(_, _, _ tensor.Matrix, _ tensor.SGD)                                             {}
func (*dry) Pack([]byte, tensor.Packed, tensor.Matrix, tensor.Matrix, tensor.Index)              {}
func (*dry) Unpack(tensor.Matrix, tensor.Packed, []byte)                                         {}

func (*dry) NotZero([]byte, tensor.Matrix)              {}
func (*dry) Compress([]byte, tensor.Matrix, []byte) int { return 0 }
func (*dry) Expand(tensor.Matrix, []byte, []byte)       {}

// MatMul takes what the kernel needs for itself.
func (d *dry) MatMul(dst, a, b tensor.Matrix, op tensor.MatMul) {
	if d.f64 || dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	rows, cols := d.MatMulRoom(dst, a, b, op)
	all, each := d.Scratch(tensor.F32, rows, cols), d.Scratch(tensor.F32, d.cores, d.MatMulCoreRoom(dst, a, b, op)/4)
	d.Free(all)
	d.Free(each)
}

func (*dry) Attend(_, _ tensor.Matrix, _ *tensor.Sparse, _, _, _ tensor.Matrix, _ tensor.Attention) {
}

func (*dry) FilmMean(_ tensor.Matrix, _ *tensor.Sparse, _, _ tensor.Matrix, _ bool)         {}
func (*dry) FilmMeanGrad(_, _ tensor.Matrix, _, _ *tensor.Sparse, _, _, _ tensor.Matrix)    {}
func (*dry) EdgeSum(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Matrix, _ tensor.EdgeInput) {}
func (*dry) EdgeSumGrad(_ tensor.Matrix, _, _ *tensor.Sparse, _, _ tensor.Matrix, _ tensor.EdgeInput) {
}

func (*dry) DynamicAttend(_, _ tensor.Matrix, _ *tensor.Sparse, _, _, _ tensor.Matrix, _ tensor.Attention, _ tensor.EdgeInput) {
}

// DynamicAttendGrad takes a number an edge and head for itself.
func (d *dry) DynamicAttendGrad(_, _, _ tensor.Matrix, adj, _ *tensor.Sparse, _, _, _, _, _, _ tensor.Matrix, op tensor.Attention, _ tensor.EdgeInput) {
	d.Free(d.Scratch(d.Type(), int(adj.Entries()), op.Heads))
}

// AttendGrad takes what the kernel needs for itself.
func (d *dry) AttendGrad(_, _, _ tensor.Matrix, adj, _ *tensor.Sparse, _, _, _, _, _, _ tensor.Matrix, op tensor.Attention) {
	scores, keys, packed := tensor.AttendGradRoom(adj, op, d.cores)
	a, b, c := d.Scratch(d.Type(), scores[0], scores[1]), d.Scratch(tensor.F64, keys[0], keys[1]), d.Scratch(d.Type(), packed[0], packed[1])
	d.Free(a)
	d.Free(b)
	d.Free(c)
}

// CrossEntropy takes what the kernel needs for itself.
func (d *dry) CrossEntropy(_, logits tensor.Matrix, _, _ tensor.Index, _ float64) (float64, int) {
	if !d.f64 {
		d.Free(d.Scratch(tensor.F32, d.cores, tensor.CrossEntropyCoreRoom(logits)/4))
	}
	return 0, 0
}

func (*dry) BCE(_, _, _ tensor.Matrix, _ tensor.Index, _ float64) float64          { return 0 }
func (*dry) SquaredError(_, _, _ tensor.Matrix, _ tensor.Index, _ float64) float64 { return 0 }
func (*dry) CountMarks(_, _ tensor.Matrix, _ tensor.Index) (_, _, _ int)           { return 0, 0, 0 }
