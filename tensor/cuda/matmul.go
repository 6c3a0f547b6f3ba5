package cuda

import (
	"fmt"

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
	d.gemm(dst, x, y, op, depth)
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

// productArgs is ProductArgs of kernels/product.cuh.
type productArgs struct {
	a, b                       uintptr
	ai, ak, bk, bj             int64
	m, n, k, piece             int64
	part                       uintptr
	dst                        mat
	add                        int64
	epi                        epi
	tiles, fastA, fastB, pairs int64
}

// multiply is the product by our own kernel, what follows it included. A sum over very many rows is cut in
// pieces where there are fewer tiles than the card has processors.
func (d *Device) multiply(dst, a, b Matrix, op tensor.MatMul, depth int) {
	p := productArgs{a: at(a), b: at(b), m: int64(dst.Rows), n: int64(dst.Cols), k: int64(depth), dst: of(dst),
		add: number(op.Add), epi: epiOf(op.Epilogue), fastA: number(begins(a, 4)), fastB: number(begins(b, 4)),
		pairs: number(begins(dst, 2))}
	p.ai, p.ak = strides(a, op.TransA)
	p.bk, p.bj = strides(b, op.TransB)
	module, name, wide := d.productKernel(a, b, dst.Cols)
	rows, cols := (dst.Rows+127)/128, (dst.Cols+wide-1)/wide
	p.tiles = int64(cols)
	pieces := 1
	if want := 2 * d.card.Processors / (rows * cols); want > 1 && depth > 1024 {
		pieces = min(want, (depth+511)/512)
	}
	p.piece = int64((depth+pieces-1)/pieces+31) &^ 31
	pieces = (depth + int(p.piece) - 1) / int(p.piece)
	var part Matrix
	if pieces > 1 {
		part = d.scratch(F32, pieces*dst.Rows, dst.Cols)
		p.part = at(part)
	}
	launch(d, module, name, size3{rows * cols, 1, pieces}, oneBlock, &p)
	if pieces > 1 {
		p.k = int64(pieces)
		launch(d, "product", "product_join", blocks(dst.Rows*dst.Cols), oneBlock, &p)
		d.release(part)
	}
}

// productKernel is the kernel of a product, and how wide its tiles are: 64 where that leaves less of them empty.
func (d *Device) productKernel(a, b Matrix, cols int) (module, name string, wide int) {
	if wide = 128; cols%128 > 0 && cols%128 <= 64 {
		wide = 64
	}
	switch {
	case a.Type() != F32 || b.Type() != F32:
		name = "mma_" + typeNames[a.Type()] + "_" + typeNames[b.Type()]
	case d.options.Exact:
		return "product", "product_f32_f32", 128
	case d.options.TF32:
		name = "mma_tf32"
	default:
		name = "mma_split"
	}
	return "mma", fmt.Sprintf("%s_%d", name, wide), wide
}

// begins reports whether each row of a matrix begins where n of its numbers can be read at once.
func begins(m Matrix, n int) bool { return at(m)%uintptr(n*m.Type().Size()) == 0 && m.Stride()%n == 0 }

// strides are how far apart the rows and columns of a factor are.
func strides(m Matrix, transposed bool) (row, col int64) {
	if transposed {
		return 1, int64(m.Stride())
	}
	return int64(m.Stride()), 1
}

// gemmName is the call of cuBLAS that multiplies.
const gemmName = "cublasGemmEx"

// Factors of products, at addresses that stay.
var zero32, one32 = new(float32), func() *float32 { x := float32(1); return &x }()

// gemm queues a product by cuBLAS, which has columns where we have rows: it computes the transpose, of the factors
// the other way round.
func (d *Device) gemm(dst, a, b Matrix, op tensor.MatMul, depth int) {
	const plain, fastTF32, standard = 68, 77, -1
	trans := func(t bool) uint64 { return uint64(number(t)) }
	add, compute, algorithm := zero32, uint64(plain), int64(standard)
	if op.Add {
		add = one32
	}
	if d.options.TF32 && a.Type() == F32 {
		compute = fastTF32
	}
	d.libraryCall(gemmName, d.blas.gemm, uint64(d.blas.handle), trans(op.TransB), trans(op.TransA), uint64(dst.Cols),
		uint64(dst.Rows), uint64(depth), uint64(address(one32)), uint64(at(b)), blasType(b), uint64(max(1, b.Stride())),
		uint64(at(a)), blasType(a), uint64(max(1, a.Stride())), uint64(address(add)), uint64(at(dst)), blasType(dst),
		uint64(max(1, dst.Stride())), compute, uint64(algorithm))
}

// blasType is cuBLAS's name of a type.
func blasType(m Matrix) uint64 {
	if m.Type() == BF16 {
		return 14
	}
	return 0
}
