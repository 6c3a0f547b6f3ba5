package cuda

import (
	"fmt"

	"starling/tensor"
)

// columnArgs is ColumnArgs of kernels/rows.cu.
type columnArgs struct {
	x, y, mv, score mat
	eps             float64
	width, piece    int64
	part            uintptr
	dst             mat
	epi             epi
}

// finishArgs is FinishArgs of kernels/rows.cu.
type finishArgs struct {
	part                    uintptr
	pieces, sums, cols, add int64
	dst                     [2]mat
}

// columnSums runs a kernel that sums over the rows of x, and puts its sums in dst: one row each, or one
// matrix each.
func (d *Device) columnSums(name string, sums int, a columnArgs, add bool, dst ...Matrix) {
	d.columnSumsBy(1, name, sums, a, add, dst...)
}

// columnSumsBy is columnSums with v columns to a lane.
func (d *Device) columnSumsBy(v int, name string, sums int, a columnArgs, add bool, dst ...Matrix) {
	rows, cols := int(a.x.rows), int(a.x.cols)
	if cols == 0 {
		return
	}
	wide := (cols + 32*v - 1) / (32 * v)
	pieces := max(1, min((rows+127)/128, (8*max(1, d.run.GPU.Processors)+wide-1)/wide))
	a.piece = int64((rows + pieces - 1) / pieces)
	part := d.scratch(F64, pieces*sums, cols)
	a.part = at(part)
	launch(d, "rows", fmt.Sprintf("%s_%d", name, v), size3{X: wide, Y: pieces}, size3{X: 32, Y: 8}, &a)
	d.finish(part, pieces, sums, cols, add, dst...)
	d.release(part)
}

// finish adds up pieces, in order.
func (d *Device) finish(part Matrix, pieces, sums, cols int, add bool, dst ...Matrix) {
	f := finishArgs{part: at(part), pieces: int64(pieces), sums: int64(sums), cols: int64(cols), add: number(add)}
	for i, m := range dst {
		f.dst[i] = of(m)
	}
	launch(d, "rows", "finish_sums", size3{X: (cols + 31) / 32, Y: sums}, size3{X: 32, Y: 8}, &f)
}

func (d *Device) ColumnSum(dst, src Matrix, add bool) {
	tensor.NeedShape("ColumnSum: dst", dst, 1, src.Cols)
	defer d.enter()()
	d.columnSumsBy(vectorOf(4, src), "column_sum", 1, columnArgs{x: of(src)}, add, dst)
}

func (d *Device) ColumnSums(sums, x Matrix) {
	tensor.NeedShape("ColumnSums: sums", sums, 2, x.Cols, F64)
	defer d.enter()()
	d.columnSums("column_sums", 2, columnArgs{x: of(x)}, false, sums)
}

func (d *Device) BatchNormSums(gs, dy, x, mv Matrix, eps float64) {
	tensor.NeedShape("BatchNormSums: gs", gs, 2, x.Cols, F64)
	defer d.enter()()
	d.columnSums("batch_norm_sums", 2, columnArgs{x: of(dy), y: of(x), mv: of(mv), eps: eps}, false, gs)
}

func (d *Device) Moments(mv, running, sums Matrix, count int64, momentum float64) {
	if mv.Cols == 0 {
		return
	}
	defer d.enter()()
	a := struct {
		mv, running, sums mat
		count, momentum   float64
	}{of(mv), of(running), of(sums), float64(count), momentum}
	launch(d, "elements", "moments", blocks(mv.Cols), oneBlock, &a)
}

// normArgs is NormArgs of kernels/elements.cu.
type normArgs struct {
	dst, dy, x, mv, gs mat
	gamma, beta        uintptr
	eps, count         float64
	rows, cols         int64
	epi                epi
}

func (d *Device) BatchNorm(y, x, mv, gamma, beta Matrix, eps float64, op Epilogue) {
	tensor.NeedSameShape("BatchNorm", x, y)
	defer d.enter()()
	a := normArgs{dst: of(y), x: of(x), mv: of(mv), gamma: vector("gamma", gamma, x.Cols), beta: vector("beta", beta, x.Cols),
		eps: eps, rows: int64(x.Rows), cols: int64(x.Cols), epi: epiOf(op)}
	launch(d, "elements", "batch_norm", d.elements(x.Rows*x.Cols), oneBlock, &a)
}

func (d *Device) BatchNormGrad(dx, dy, x, mv, gs, gamma Matrix, count int64, eps float64) {
	tensor.NeedSameShape("BatchNormGrad", x, dx, dy)
	defer d.enter()()
	a := normArgs{dst: of(dx), dy: of(dy), x: of(x), mv: of(mv), gs: of(gs), gamma: vector("gamma", gamma, x.Cols), eps: eps,
		count: float64(max(count, 1)), rows: int64(x.Rows), cols: int64(x.Cols)}
	launch(d, "elements", "batch_norm_grad", d.elements(x.Rows*x.Cols), oneBlock, &a)
}

// layerNormArgs is LayerNormArgs of kernels/rows.cu.
type layerNormArgs struct {
	y, stat, x, dy mat
	gamma, beta    uintptr
	eps            float64
	epi            epi
}

func (d *Device) LayerNorm(y, stat, x, gamma, beta Matrix, eps float64, op Epilogue) {
	tensor.NeedSameShape("LayerNorm", x, y)
	defer d.enter()()
	a := layerNormArgs{y: of(y), stat: of(stat), x: of(x), gamma: vector("gamma", gamma, x.Cols),
		beta: vector("beta", beta, x.Cols), eps: eps, epi: epiOf(op)}
	launch(d, "rows", "layer_norm", warps(x.Rows), oneBlock, &a)
}

// LayerNormGrad sums first: dx may be in the place of dy.
func (d *Device) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma Matrix) {
	tensor.NeedSameShape("LayerNormGrad", x, dx, dy)
	if x.Rows == 0 {
		return
	}
	defer d.enter()()
	d.columnSums("layer_norm_sums", 2, columnArgs{x: of(dy), y: of(x), score: of(stat)}, true, dgamma, dbeta)
	a := layerNormArgs{y: of(dx), stat: of(stat), x: of(x), dy: of(dy), gamma: vector("gamma", gamma, x.Cols)}
	launch(d, "rows", "layer_norm_grad", warps(x.Rows), oneBlock, &a)
}

// lossArgs is LossArgs of kernels/rows.cu.
type lossArgs struct {
	logits, grad, targets mat
	labels, rows          uintptr
	n, kind, compact      int64
	scale                 float64
	part                  uintptr
}

// rowSums runs a kernel whose blocks each leave some sums, and adds those up.
func (d *Device) rowSums(name string, dst Matrix, a lossArgs) {
	n := max(1, min((int(a.n)+7)/8, 8*max(1, d.run.GPU.Processors)))
	part := d.scratch(F64, n, dst.Cols)
	a.part = at(part)
	launch(d, "rows", name, size3{X: n}, oneBlock, &a)
	d.finish(part, n, 1, dst.Cols, false, dst)
	d.release(part)
}

func (d *Device) Loss(sums, dlogits, logits Matrix, op tensor.Loss) {
	tensor.NeedShape("Loss: sums", sums, 1, 2, F64)
	defer d.enter()()
	a := lossArgs{logits: of(logits), grad: of(dlogits), targets: of(op.Targets), labels: atIndex(op.Labels),
		rows: atIndex(op.Rows), n: int64(logits.Rows), kind: int64(op.Kind), scale: op.Scale}
	if op.Rows.IsZero() || dlogits.IsZero() {
		if !op.Rows.IsZero() {
			a.n = int64(op.Rows.Len())
		}
		d.rowSums("loss", sums, a)
		return
	}
	a.n = int64(op.Rows.Len())
	if !tensor.Same(dlogits, logits) {
		d.zero(dlogits)
		d.rowSums("loss", sums, a)
		return
	}
	// Logits are read before gradients take their place.
	grads := d.scratch(dlogits.Type(), op.Rows.Len(), dlogits.Cols)
	a.grad, a.compact = of(grads), 1
	d.rowSums("loss", sums, a)
	d.zero(dlogits)
	if grads.Rows*grads.Cols > 0 {
		d.rowsKernel("scatter", dlogits, grads, op.Rows)
	}
	d.release(grads)
}

func (d *Device) CountMarks(counts, logits, targets Matrix, rows Index) {
	tensor.NeedShape("CountMarks: counts", counts, 1, 3, F64)
	defer d.enter()()
	a := lossArgs{logits: of(logits), targets: of(targets), rows: atIndex(rows), n: int64(logits.Rows)}
	if !rows.IsZero() {
		a.n = int64(rows.Len())
	}
	d.rowSums("count_marks", counts, a)
}

func (d *Device) Dot(dst, x, y Matrix) {
	tensor.NeedShape("Dot: dst", dst, 1, 1, F64)
	tensor.NeedSameShape("Dot", x, y)
	defer d.enter()()
	d.rowSums("dot", dst, lossArgs{logits: of(x), targets: of(y), n: int64(x.Rows)})
}

type softmaxArgs struct {
	dst, src mat
	at       uintptr
}

func (d *Device) Softmax(dst, src Matrix) {
	tensor.NeedSameShape("Softmax", src, dst)
	defer d.enter()()
	launch(d, "rows", "softmax", warps(src.Rows), oneBlock, &softmaxArgs{dst: of(dst), src: of(src)})
}

func (d *Device) Argmax(dst Index, src Matrix) {
	tensor.Need(dst.Len() == src.Rows, "Argmax: %d places for %v", dst.Len(), src)
	defer d.enter()()
	launch(d, "rows", "softmax", warps(src.Rows), oneBlock, &softmaxArgs{src: of(src), at: atIndex(dst)})
}
