package cuda

import (
	"fmt"

	"starling/tensor"
	"starling/tensor/cuda/driver"
	"starling/tensor/cuda/execution"
)

func (d *Device) MatMul(dst, a, b Matrix, op tensor.MatMul) {
	tensor.NeedMatMul(dst, a, b, op)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	depth := a.Cols
	if op.TransA {
		depth = a.Rows
	}
	if depth == 0 {
		if !op.Add {
			d.zero(dst)
		}
		d.after(dst, op.Epilogue)
		return
	}
	t := F32
	if a.Type() == BF16 || b.Type() == BF16 || dst.Type() == BF16 { // cuBLAS makes no bfloat16 of float32
		t = BF16
	}
	x, y := d.factor(a, t), d.factor(b, t)
	if d.blas != nil {
		d.gemm(dst, x, y, op, depth)
		d.after(dst, op.Epilogue)
	} else {
		d.multiply(dst, x, y, op, depth)
	}
	for _, pair := range [][2]Matrix{{x, a}, {y, b}} {
		if pair[0] != pair[1] {
			d.release(pair[0])
		}
	}
}

// after does what follows a product that could not do it itself.
func (d *Device) after(dst Matrix, e Epilogue) {
	if !e.Empty() {
		d.activate(dst, dst, e)
	}
}

// factor is a factor in the type of both: itself, or a copy that is released after use. Our own kernels copy four bytes
// at least, so rows of an odd number of bfloat16 are copied first.
func (d *Device) factor(m Matrix, t DType) Matrix {
	if m.Type() == t && (d.blas != nil || begins(m, 4/t.Size())) {
		return m
	}
	c := d.scratch(t, m.Rows, (m.Cols+7)&^7).Columns(0, m.Cols)
	d.each("combine", c, &elementArgs{dst: of(c), x: of(m), a: 1}, m)
	return c
}

// productArgs is ProductArgs of kernels/product.cuh.
type productArgs struct {
	a, b                uintptr
	ai, ak, bk, bj      int64
	m, n, k, piece      int64
	part                uintptr
	dst                 mat
	add                 int64
	epi                 epi
	tiles, area, pieces int64
	follows             int64
	unitA, unitB, wide  int64
}

// multiply is the product by our own kernel, what follows it included. A sum over very many rows is cut in
// pieces where there are fewer tiles than the GPU runs blocks.
func (d *Device) multiply(dst, a, b Matrix, op tensor.MatMul, depth int) {
	p := productArgs{a: at(a), b: at(b), m: int64(dst.Rows), n: int64(dst.Cols), k: int64(depth), dst: of(dst),
		add: number(op.Add), epi: epiOf(op.Epilogue), follows: number(op.Add || !op.Epilogue.Empty()),
		unitA: unit(a), unitB: unit(b), wide: numbersAtOnce(dst)}
	p.ai, p.ak = strides(a, op.TransA)
	p.bk, p.bj = strides(b, op.TransB)
	module, name, wide := d.productKernel(a.Type(), op, dst.Cols)
	cols := (dst.Cols + wide - 1) / wide
	area, blocksAtOnce := (dst.Rows+127)/128*cols, 2*max(1, d.run.GPU.Processors)
	pieces := 1
	if depth > 1024 {
		pieces = max(1, min(blocksAtOnce/area, (depth+511)/512))
	}
	p.piece = int64((depth+pieces-1)/pieces+31) &^ 31
	pieces = (depth + int(p.piece) - 1) / int(p.piece)
	p.tiles, p.area, p.pieces = int64(cols), int64(area), int64(pieces)
	var part Matrix
	if pieces > 1 {
		part = d.scratch(F32, pieces*dst.Rows, dst.Cols)
		p.part = at(part)
	}
	if module == "product" {
		launch(d, module, name, size3{X: area, Y: 1, Z: pieces}, oneBlock, &p)
	} else {
		execution.LaunchShared(d.run, module, name, size3{X: min(area*pieces, blocksAtOnce)}, size3{X: 128}, productShared(wide), productShared(128), &p)
	}
	if pieces > 1 {
		p.k = int64(pieces)
		launch(d, "product", "product_join", blocks(dst.Rows*dst.Cols), oneBlock, &p)
		d.release(part)
	}
}

// productShared is the shared memory of a block that makes tiles of a width: three steps of 128 bytes per line.
func productShared(wide int) int { return 3 * 128 * (128 + wide) }

// productKernel is the kernel of a product, and how wide its tiles are: 64 where that leaves less of them empty.
func (d *Device) productKernel(t DType, op tensor.MatMul, cols int) (module, name string, wide int) {
	if wide = 128; cols%128 > 0 && cols%128 <= 64 || op.TransA && op.TransB {
		wide = 64
	}
	switch {
	case t == BF16:
		module = "mma_bf16"
	case d.options.Exact:
		return "product", "product_f32_f32", 128
	case d.options.TF32:
		module = "mma_tf32"
	default:
		module = "mma_split"
	}
	letter := map[bool]string{false: "n", true: "t"}
	return module, fmt.Sprintf("%s_%s%s_%d", module, letter[op.TransA], letter[op.TransB], wide), wide
}

// begins reports whether each row of a matrix begins where n of its numbers can be read at once.
func begins(m Matrix, n int) bool { return at(m)%uintptr(n*m.Type().Size()) == 0 && m.Stride()%n == 0 }

// unit is how many bytes of a matrix can be read at once.
func unit(m Matrix) int64 {
	if numbersAtOnce(m)*int64(m.Type().Size()) == 16 {
		return 16
	}
	return 4
}

// numbersAtOnce is how many numbers of a matrix can be stored at once: up to 16 bytes.
func numbersAtOnce(m Matrix) int64 {
	n := 16 / m.Type().Size()
	for !begins(m, n) {
		n /= 2
	}
	return int64(n)
}

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
	d.run.LibraryOf(d.blas.failure, gemmName, d.blas.gemm, uint64(d.blas.handle), trans(op.TransB), trans(op.TransA), uint64(dst.Cols),
		uint64(dst.Rows), uint64(depth), uint64(driver.Address(one32)), uint64(at(b)), blasType(b), uint64(max(1, b.Stride())),
		uint64(at(a)), blasType(a), uint64(max(1, a.Stride())), uint64(driver.Address(add)), uint64(at(dst)), blasType(dst),
		uint64(max(1, dst.Stride())), compute, uint64(algorithm))
}

// blasType is cuBLAS's name of a type.
func blasType(m Matrix) uint64 {
	if m.Type() == BF16 {
		return 14
	}
	return 0
}
