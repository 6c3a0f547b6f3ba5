package cuda

import (
	"runtime"

	"starling/tensor"
)

func (d *Device) MatMul(dst, a, b Matrix, op tensor.MatMul) {
	tensor.NeedMatMul(dst, a, b, op)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	d.enter()
	defer d.leave()
	depth := a.Cols
	if op.TransA {
		depth = a.Rows
	}
	switch {
	case depth == 0:
		if !op.Add {
			d.zero(dst)
		}
		d.after(dst, op.Epilogue)
	case d.blas != nil:
		d.multiplyBLAS(dst, a, b, op, depth)
		d.after(dst, op.Epilogue)
	default:
		d.multiply(dst, a, b, op, depth)
	}
}

// after does what follows a product that could not do it itself.
func (d *Device) after(dst Matrix, e Epilogue) {
	if !e.Empty() {
		d.activate(dst, dst, e)
	}
}

// multiplyBLAS has cuBLAS multiply. It wants both factors in one type: bfloat16 where one is.
func (d *Device) multiplyBLAS(dst, a, b Matrix, op tensor.MatMul, depth int) {
	x, y := a, b
	if a.Type() != b.Type() {
		x, y = d.asBF16(a), d.asBF16(b)
	}
	done := d.timed("cublas")
	d.blas.multiply(dst, x, y, op, depth, d.options.TF32)
	done()
	for _, pair := range [][2]Matrix{{x, a}, {y, b}} {
		if pair[0] != pair[1] {
			d.release(pair[0])
		}
	}
}

// asBF16 is a matrix in bfloat16: itself, or a copy that is released after use.
func (d *Device) asBF16(m Matrix) Matrix {
	if m.Type() == BF16 {
		return m
	}
	c := d.scratch(BF16, m.Rows, m.Cols)
	d.each("combine", c, &elementArgs{dst: of(c), x: of(m), a: 1}, m)
	return c
}

// productArgs is ProductArgs of kernels/product.cu.
type productArgs struct {
	a, b           uintptr
	ai, ak, bk, bj int64
	m, n, k, piece int64
	part           uintptr
	dst            mat
	add            int64
	epi            epi
}

// multiply is the product by our own kernel, what follows it included. A sum over very many rows is cut in
// pieces where there are fewer tiles than the card has processors.
func (d *Device) multiply(dst, a, b Matrix, op tensor.MatMul, depth int) {
	p := productArgs{a: at(a), b: at(b), m: int64(dst.Rows), n: int64(dst.Cols),
		k: int64(depth), dst: of(dst), add: number(op.Add), epi: epiOf(op.Epilogue)}
	p.ai, p.ak = strides(a, op.TransA)
	p.bk, p.bj = strides(b, op.TransB)
	grid := size3{(dst.Rows + 127) / 128, (dst.Cols + 127) / 128, 1}
	if want := 2 * d.card.Processors / (grid.x * grid.y); want > 1 && depth > 1024 {
		grid.z = min(want, (depth+511)/512)
	}
	p.piece = int64((depth + grid.z - 1) / grid.z)
	p.piece = (p.piece + 15) &^ 15
	grid.z = (depth + int(p.piece) - 1) / int(p.piece)
	var part Matrix
	if grid.z > 1 {
		part = d.scratch(F32, grid.z*dst.Rows, dst.Cols)
		p.part = at(part)
	}
	launch(d, "product", "product_"+typeNames[a.Type()]+"_"+typeNames[b.Type()], grid, oneBlock, &p)
	if grid.z > 1 {
		p.k = int64(grid.z)
		launch(d, "product", "product_join", blocks(dst.Rows*dst.Cols), oneBlock, &p)
		d.release(part)
	}
}

// strides are how far apart the rows and columns of a factor are.
func strides(m Matrix, transposed bool) (row, col int64) {
	if transposed {
		return 1, int64(m.Stride())
	}
	return int64(m.Stride()), 1
}

// multiply queues a product. cuBLAS has columns where we have rows: it computes the transpose, of the
// factors the other way round.
func (l *blas) multiply(dst, a, b Matrix, op tensor.MatMul, depth int, tf32 bool) {
	const plain, fastTF32, standard = 68, 77, -1
	trans := func(t bool) uintptr { return uintptr(number(t)) }
	scale := &[2]float32{1, float32(number(op.Add))}
	compute := uintptr(plain)
	if tf32 && a.Type() == F32 {
		compute = fastTF32
	}
	algorithm := int64(standard)
	code := call(l.gemm, l.handle, trans(op.TransB), trans(op.TransA), uintptr(dst.Cols), uintptr(dst.Rows), uintptr(depth),
		address(&scale[0]), at(b), blasType(b), uintptr(max(1, b.Stride())), at(a), blasType(a), uintptr(max(1, a.Stride())),
		address(&scale[1]), at(dst), blasType(dst), uintptr(max(1, dst.Stride())), compute, uintptr(algorithm))
	runtime.KeepAlive(scale)
	if code != 0 {
		panic(&Error{Call: "cublasGemmEx", Code: int(code), Name: "status " + blasStatus(code), Text: "in " + l.path,
			Advice: "set STARLING_CUBLAS=none to do without cuBLAS, or use --device cpu"})
	}
}

// blasType is cuBLAS's name of a type.
func blasType(m Matrix) uintptr {
	if m.Type() == BF16 {
		return 14
	}
	return 0
}
