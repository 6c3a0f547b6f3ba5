package devicetest

import (
	"math"
	"slices"

	"starling/tensor"
)

// contiguous is rows without gaps, as those that travel unpacked are.
func (s *suite) contiguous(t tensor.DType, rows, cols int) pair {
	x := s.values(rows * cols)
	p := pair{s.dev.New(t, rows, cols), s.ref.New(tensor.F64, rows, cols)}
	s.what = append(s.what, p.dev)
	s.dev.Upload(p.dev, x)
	s.ref.Upload(p.ref, x)
	return p
}

func (s *suite) pack() {
	t, rows, cols := s.rowType(), s.size(60), s.size(140)
	form := tensor.Packed(s.r.IntN(3))
	src, dst := s.contiguous(t, rows, cols), s.contiguous(t, rows, cols)
	if form != tensor.Unpacked && s.yes() {
		src, dst = s.numbers(t, rows, cols), s.numbers(t, rows, cols)
	}
	op, refOp := tensor.Packing{Form: form}, tensor.Packing{Form: form}
	var rest pair
	if form != tensor.Unpacked && s.yes() {
		of := rows
		if s.yes() {
			of += 7
			list := make([]uint32, 0, of)
			for _, i := range s.r.Perm(of)[:rows] {
				list = append(list, uint32(i))
			}
			op.At, refOp.At = s.index(list)
		}
		rest = s.param(of, cols)
		op.Residual, refOp.Residual = rest.dev, rest.ref
	}
	s.describe("%v as %v, residual %v", src.dev, form, rest.dev)
	bytes, refBytes := make([]byte, form.BytesOf(src.dev)), make([]byte, form.BytesOf(src.ref))
	if n := s.dev.Pack(bytes, src.dev, op); n != len(bytes) {
		s.Fatalf("%s: %d bytes, want %d", s.label, n, len(bytes))
	}
	s.ref.Pack(refBytes, src.ref, refOp)
	s.dev.Unpack(dst.dev, bytes, tensor.Packing{Form: form})
	s.ref.Unpack(dst.ref, refBytes, tensor.Packing{Form: form})
	step := [...]float64{0, 1. / 100, 4. / 127}[form]
	s.near("rows", dst, func(_ int, want float64) float64 { return 1e-5 + precision(t) + step })
	if !rest.dev.IsZero() {
		s.near("residual", rest, func(int, float64) float64 { return 1e-5 + 2*step })
	}
	s.outside()
}

// packTiny: rows of int8 whose largest number is tiny arrive within half a step, which is a 127th of that number, or
// the smallest scale, on the device and on the reference.
func (s *suite) packTiny() {
	tops := []float64{9e-31, 2e-36, 1.4e-36, 3e-38, 1e-42, 0}
	var x []float64
	for _, top := range tops {
		x = append(x, top, -top/2, top/100, 0)
	}
	form := tensor.Packing{Form: tensor.PackInt8}
	src, dst := s.param(len(tops), 4), s.param(len(tops), 4)
	for _, at := range []struct {
		dev      tensor.Device
		src, dst tensor.Matrix
	}{{s.dev, src.dev, dst.dev}, {s.ref, src.ref, dst.ref}} {
		at.dev.Upload(at.src, x)
		bytes := make([]byte, form.Form.BytesOf(at.src))
		at.dev.Pack(bytes, at.src, form)
		at.dev.Unpack(at.dst, bytes, form)
		for i, got := range download(at.dev, at.dst) {
			if step := max(tops[i/4]/127, tensor.SmallestScale); math.Abs(got-x[i]) > 0.5001*step {
				s.Errorf("%T: %g of a row up to %g arrives as %g", at.dev, x[i], tops[i/4], got)
			}
		}
	}
}

func (s *suite) packNonZero() {
	t, rows, cols := s.rowType(), s.size(60), s.size(140)
	x := s.values(rows * cols)
	for i := range x {
		if s.r.IntN(3) > 0 {
			x[i] = 0
		}
	}
	src, dst, back := s.of(t, rows, cols, x), s.numbers(t, rows, cols), s.numbers(t, rows, cols)
	s.describe("%v", src.dev)
	op := tensor.Packing{Form: tensor.PackNonZero}
	bytes := make([]byte, op.Form.BytesOf(src.dev))
	bytes = bytes[:s.dev.Pack(bytes, src.dev, op)]
	n := tensor.BitBytes(rows, cols)
	set, ok := tensor.CountBits(bytes[:n], cols)
	if !ok || len(bytes) != n+set*t.Size() {
		s.Fatalf("%s: %d bytes with %d bits set", s.label, len(bytes), set)
	}
	s.dev.Unpack(dst.dev, bytes, op)
	if got := download(s.dev, dst.dev); !slices.Equal(got, x) {
		s.Fatalf("%s: rows came back as others", s.label)
	}
	// The gradients of these rows go back under the mask both sides have.
	op.Mask = bytes[:n]
	grad := s.numbers(t, rows, cols)
	masked := make([]byte, t.Size()*set)
	if k := s.dev.Pack(masked, grad.dev, op); k != len(masked) {
		s.Fatalf("%s: %d bytes under a mask of %d", s.label, k, set)
	}
	s.dev.Unpack(back.dev, masked, op)
	want := download(s.dev, grad.dev)
	for i := range want {
		if x[i] == 0 {
			want[i] = 0
		}
	}
	if got := download(s.dev, back.dev); !slices.Equal(got, want) {
		s.Fatalf("%s: masked rows came back as others", s.label)
	}
	s.outside()
}
