package cuda

import (
	"fmt"
	"math"
	"runtime"

	"starling/tensor"
)

// elementArgs is ElementArgs of kernels/elements.cu.
type elementArgs struct {
	dst, x, y, z     mat
	a, b             float64
	rows, cols, kind int64
	epi              epi
}

func (d *Device) Zero(m Matrix) {
	if m.Rows*m.Cols == 0 {
		return
	}
	defer d.enter()()
	d.zero(m)
}

func (d *Device) zero(m Matrix) {
	switch size := m.Type().Size(); {
	case m.Rows*m.Cols == 0:
	case m.Contiguous():
		d.run.Library("cuMemsetD8Async", d.run.GPU.Fill, uint64(at(m)), 0, uint64(m.Bytes()), uint64(d.run.Handle))
	default:
		d.run.Library("cuMemsetD2D8Async", d.run.GPU.FillRows, uint64(at(m)), uint64(m.Stride()*size), 0,
			uint64(m.Cols*size), uint64(m.Rows), uint64(d.run.Handle))
	}
}

// each runs a kernel over the numbers of dst, four at a time where that is possible.
func (d *Device) each(name string, dst Matrix, a *elementArgs, ms ...Matrix) {
	a.rows, a.cols = int64(dst.Rows), int64(dst.Cols)
	most := 4
	if dst.Type() == BF16 {
		most = 8
	}
	v := vectorOf(most, append(ms, dst)...)
	launch(d, "elements", fmt.Sprintf("%s_%d", name, v), d.elements(dst.Rows*dst.Cols/v), oneBlock, a)
}

func (d *Device) Copy(dst, src Matrix) { d.combine("Copy", dst, 0, 1, src, 0, Matrix{}) }

func (d *Device) Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	d.combine("Combine", dst, 0, a, x, b, y)
}

func (d *Device) Multiply(dst, x, y Matrix) { d.combine("Multiply", dst, 1, 0, x, 0, y) }

func (d *Device) combine(op string, dst Matrix, kind int64, a float64, x Matrix, b float64, y Matrix) {
	tensor.NeedSameShape(op, dst, x, y)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	args := &elementArgs{dst: of(dst), x: of(x), y: of(y), a: a, b: b, kind: kind}
	if dst.Type() == F64 || x.Type() == F64 || !y.IsZero() && y.Type() == F64 {
		args.rows, args.cols = int64(dst.Rows), int64(dst.Cols)
		launch(d, "elements", "combine_64", d.elements(dst.Rows*dst.Cols), oneBlock, args)
		return
	}
	d.each("combine", dst, args, x, y)
}

func (d *Device) Activate(dst, src Matrix, op Epilogue) {
	tensor.NeedSameShape("Activate", dst, src)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	d.activate(dst, src, op)
}

func (d *Device) activate(dst, src Matrix, op Epilogue) {
	d.each("activate", dst, &elementArgs{dst: of(dst), x: of(src), epi: epiOf(op)}, src)
}

func (d *Device) ActivateGrad(dx, dy, y Matrix, op Epilogue, dbias Matrix) {
	tensor.NeedSameShape("ActivateGrad", dx, dy, y)
	if dx.Rows*dx.Cols == 0 {
		return
	}
	defer d.enter()()
	if dbias.IsZero() {
		d.each("activate_grad", dx, &elementArgs{dst: of(dx), x: of(dy), y: of(y), epi: epiOf(op)}, dy, y)
		return
	}
	a := columnArgs{x: of(dy), y: of(y), dst: of(dx), epi: epiOf(op)}
	d.columnSumsBy(vectorOf(4, dx, dy, y), "activate_grad_sums", 1, a, true, dbias)
}

func (d *Device) GELU(dst, src Matrix) { d.gelu("GELU", dst, src, Matrix{}) }

func (d *Device) GELUGrad(dx, dy, x Matrix) { d.gelu("GELUGrad", dx, x, dy) }

func (d *Device) gelu(op string, dst, x, dy Matrix) {
	tensor.NeedSameShape(op, dst, x, dy)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	d.each("gelu", dst, &elementArgs{dst: of(dst), x: of(x), y: of(dy)}, x, dy)
}

// optimiserArgs is OptimiserArgs of kernels/elements.cu.
type optimiserArgs struct {
	p, g, m, v                           mat
	lr, beta1, beta2, eps, decay, c1, c2 float64
	decoupled, nesterov, first           int64
}

func (d *Device) Adam(p, g, m, v Matrix, op tensor.Adam) {
	tensor.NeedSameShape("Adam", p, g, m, v)
	if p.Rows*p.Cols == 0 {
		return
	}
	defer d.enter()()
	a := optimiserArgs{p: of(p), g: of(g), m: of(m), v: of(v), lr: op.LR, beta1: op.Beta1, beta2: op.Beta2, eps: op.Eps,
		decay: op.Decay, decoupled: number(op.Decoupled), c1: 1 - math.Pow(op.Beta1, float64(op.Step)),
		c2: 1 - math.Pow(op.Beta2, float64(op.Step))}
	launch(d, "elements", "adam", d.elements(p.Rows*p.Cols), oneBlock, &a)
}

func (d *Device) SGD(p, g, buf Matrix, op tensor.SGD) {
	tensor.NeedSameShape("SGD", p, g)
	if p.Rows*p.Cols == 0 {
		return
	}
	defer d.enter()()
	a := optimiserArgs{p: of(p), g: of(g), m: of(buf), lr: op.LR, beta1: op.Momentum, decay: op.Decay,
		nesterov: number(op.Nesterov), first: number(op.Step == 1)}
	launch(d, "elements", "sgd", d.elements(p.Rows*p.Cols), oneBlock, &a)
}

// packArgs is PackArgs of kernels/rows.cu.
type packArgs struct {
	rows, residual mat
	at, bytes      uintptr
	form           int64
}

func (d *Device) Pack(dst []byte, src Matrix, p tensor.Packing) int {
	tensor.NeedPack(dst, src, p)
	defer d.enter()()
	if src.Rows*src.Cols == 0 && p.Form != tensor.PackInt8 {
		return 0
	}
	switch p.Form {
	case tensor.Unpacked:
		tensor.Need(src.Contiguous(), "Pack: %v has gaps", src)
		d.mem.CopyOut(bytesAt(dst), at(src), len(dst))
		return len(dst)
	case tensor.PackNonZero:
		return d.packNonZero(dst, src, p.Mask)
	}
	packed := d.scratch(U32, (len(dst)+3)/4, 1)
	a := packArgs{rows: of(src), residual: of(p.Residual), at: atIndex(p.At), bytes: at(packed), form: int64(p.Form)}
	launch(d, "rows", "pack", warps(src.Rows), oneBlock, &a)
	if len(dst) > 0 {
		d.mem.CopyOut(bytesAt(dst), at(packed), len(dst))
	}
	d.release(packed)
	return len(dst)
}

func (d *Device) Unpack(dst Matrix, src []byte, p tensor.Packing) {
	tensor.NeedUnpack(dst, src, p)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	switch p.Form {
	case tensor.Unpacked:
		tensor.Need(dst.Contiguous(), "Unpack: %v has gaps", dst)
		d.mem.CopyIn(at(dst), bytesAt(src), len(src))
	case tensor.PackNonZero:
		d.unpackNonZero(dst, src, p.Mask)
		return
	default:
		packed := d.scratch(U32, (len(src)+3)/4, 1)
		d.mem.CopyIn(at(packed), bytesAt(src), len(src))
		a := packArgs{rows: of(dst), bytes: at(packed), form: int64(p.Form)}
		launch(d, "rows", "unpack", warps(dst.Rows), oneBlock, &a)
		d.release(packed)
	}
	runtime.KeepAlive(src)
}
