package simd

import "starling/tensor/bfloat"

// Strided is rows of numbers in memory, float32 or bfloat16 (exactly one is set).
// Row i starts at i·Stride.
type Strided struct {
	F32    []float32
	B16    []uint16
	Stride int
}

// size is the number of bytes of a number.
func (s *Strided) size() int {
	if s.B16 != nil {
		return 2
	}
	return 4
}

// addTo adds w times n numbers of row i, from column c on, to acc.
func (s Strided) addTo(acc []float32, w float32, i, c int) {
	at := i*s.Stride + c
	if s.B16 != nil {
		for k, x := range s.B16[at : at+len(acc)] {
			acc[k] += w * bfloat.Widen(x)
		}
		return
	}
	for k, x := range s.F32[at : at+len(acc)] {
		acc[k] += w * x
	}
}

// dot is the product of x with row i from column c on.
func (s Strided) dot(x []float32, i, c int) float32 {
	at := i*s.Stride + c
	sum := float32(0)
	if s.B16 != nil {
		for k, y := range s.B16[at : at+len(x)] {
			sum += x[k] * bfloat.Widen(y)
		}
		return sum
	}
	for k, y := range s.F32[at : at+len(x)] {
		sum += x[k] * y
	}
	return sum
}

// widen reads row i from column c on into dst.
func (s Strided) widen(dst []float32, i, c int) {
	at := i*s.Stride + c
	if s.B16 == nil {
		copy(dst, s.F32[at:at+len(dst)])
		return
	}
	for k, x := range s.B16[at : at+len(dst)] {
		dst[k] = bfloat.Widen(x)
	}
}

// put writes scale·acc to row i from column c on, or adds it to what is there.
func (s Strided) put(acc []float32, scale float32, add bool, i, c int) {
	at := i*s.Stride + c
	if s.B16 == nil {
		row := s.F32[at : at+len(acc)]
		for k, x := range acc {
			if add {
				row[k] += scale * x
			} else {
				row[k] = scale * x
			}
		}
		return
	}
	row := s.B16[at : at+len(acc)]
	for k, x := range acc {
		x *= scale
		if add {
			x += bfloat.Widen(row[k])
		}
		row[k] = bfloat.Round(x)
	}
}

// RowSums is some rows of a sparse matrix times a dense one:
//
//	dst_r = rowScale_r · ( sum over entries e of row r of value_e · colScale_j · src_j, j = index_e
//	                       + self · selfScale_i · src_i, i = First + r )
//
// The sum is made in float32 in the order of the entries and rounded once. A
// weight costs no memory traffic of its own where it is a product of vertex scales.
type RowSums struct {
	Dst, Src Strided // Dst starts at the first of the rows, Src at row 0
	Rows     int
	Cols     int // at most MaxCols
	Ptr      []int64
	Index    []uint32
	Value    []float32 // or nil
	ColScale []float32 // or nil
	RowScale []float32 // or nil; starts at the first of the rows
	Self     float32
	// SelfScale is as long as ColScale, or nil. It is ColScale, or what Value has of it.
	SelfScale []float32
	First     int
	Add       bool
	Stream    bool      // Dst is so large that its rows may go by non-temporal stores, which saves fetching them first
	Acc       []float32 // scratch, MaxCols long
}

// MaxCols is the widest row one call sums: what a core's first-level cache
// holds beside what is read. Wider matrices are summed in panels of MaxCols columns.
const MaxCols = 4096

// AggregateRows computes a.
func AggregateRows(level Level, a *RowSums) {
	if a.Rows == 0 || a.Cols == 0 || aggregateFast(level, a) {
		return
	}
	aggregateGeneric(a)
}

func aggregateGeneric(a *RowSums) {
	acc := a.Acc[:a.Cols]
	for r := range a.Rows {
		clear(acc)
		if a.Self != 0 {
			w := a.Self
			if a.SelfScale != nil {
				w *= a.SelfScale[a.First+r]
			}
			a.Src.addTo(acc, w, a.First+r, 0)
		}
		for e := a.Ptr[r]; e < a.Ptr[r+1]; e++ {
			j := a.Index[e]
			w := float32(1)
			if a.ColScale != nil {
				w = a.ColScale[j]
			}
			if a.Value != nil {
				w *= a.Value[e]
			}
			a.Src.addTo(acc, w, int(j), 0)
		}
		scale := float32(1)
		if a.RowScale != nil {
			scale = a.RowScale[r]
		}
		a.Dst.put(acc, scale, a.Add, r, 0)
	}
}

// RowMaxes is some rows of the column-wise maximum over neighbours:
// dst_r = max over entries of row r of src_j, arg_r the j of each (the first of
// equals); zero and ^0 where there is no entry.
type RowMaxes struct {
	Dst, Src   Strided
	Arg        []uint32 // Rows·Cols
	Rows, Cols int
	Ptr        []int64
	Index      []uint32
	Acc        []float32 // scratch, Cols long
}

// MaxRows computes a.
func MaxRows(level Level, a *RowMaxes) { maxRowsGeneric(a) }

func maxRowsGeneric(a *RowMaxes) {
	acc := a.Acc[:a.Cols]
	for r := range a.Rows {
		arg := a.Arg[r*a.Cols : (r+1)*a.Cols]
		clear(acc)
		for c := range arg {
			arg[c] = ^uint32(0)
		}
		for e := a.Ptr[r]; e < a.Ptr[r+1]; e++ {
			j, first := a.Index[e], e == a.Ptr[r]
			at := int(j) * a.Src.Stride
			if a.Src.B16 != nil {
				for c, x := range a.Src.B16[at : at+a.Cols] {
					if y := bfloat.Widen(x); first || y > acc[c] {
						acc[c], arg[c] = y, j
					}
				}
				continue
			}
			for c, y := range a.Src.F32[at : at+a.Cols] {
				if first || y > acc[c] {
					acc[c], arg[c] = y, j
				}
			}
		}
		a.Dst.put(acc, 1, false, r, 0)
	}
}

// MaxGradRow is one source row of the maximum's backward pass: dsrc = the sum
// of ddst_ic over the destinations i in row, each once, whose arg_ic is j.
// REQUIRES: row is sorted.
func MaxGradRow(level Level, dsrc Strided, j uint32, row []uint32, ddst Strided, arg []uint32, acc []float32) {
	clear(acc)
	for e, i := range row {
		if e > 0 && row[e-1] == i {
			continue
		}
		at := int(i) * ddst.Stride
		for c, from := range arg[int(i)*len(acc):][:len(acc)] {
			if from != j {
				continue
			}
			if ddst.B16 != nil {
				acc[c] += bfloat.Widen(ddst.B16[at+c])
			} else {
				acc[c] += ddst.F32[at+c]
			}
		}
	}
	dsrc.put(acc, 1, false, 0, 0)
}
