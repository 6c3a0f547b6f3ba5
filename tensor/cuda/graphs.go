package cuda

import (
	"fmt"
	"slices"

	"starling/tensor"
	"starling/tensor/cuda/memory"
)

// aggregateArgs is AggregateArgs of kernels/aggregate.cu.
type aggregateArgs struct {
	rows                                 rowArgs
	dst, src                             mat
	value, rowScale, colScale, selfScale uintptr
	self                                 float64
	first, add                           int64
}

func (d *Device) Aggregate(dst Matrix, adj *Sparse, src Matrix, op tensor.Aggregate) {
	tensor.NeedShape("Aggregate: dst", dst, adj.Rows, src.Cols, F32, BF16)
	tensor.NeedShape("Aggregate: src", src, max(src.Rows, adj.Cols), src.Cols, F32, BF16)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	a := aggregateArgs{dst: of(dst), src: of(src), value: at(adj.Values()), self: op.Self, first: int64(op.First),
		rowScale: column("Aggregate: the scale of rows", op.RowScale, op.RowScale.Rows),
		colScale: column("Aggregate: the scale of columns", op.ColScale, op.ColScale.Rows),
		add:      number(op.Add)}
	if op.Self != 0 {
		a.selfScale = column("Aggregate: the scale of self", op.SelfScale, op.SelfScale.Rows)
	}
	d.aggregate(adj, src, dst, a)
}

func (d *Device) aggregate(adj *Sparse, src, dst Matrix, a aggregateArgs) {
	l := layoutFor(src.Type(), src.Cols, src, dst)
	name := kernelOf("aggregate", src.Type(), l)
	d.overGroups(adj, src.Cols, partBytes, func(r rowArgs) {
		a.rows = r
		launch(d, "aggregate", name, l.grid(int(r.n), src.Cols), oneBlock, &a)
	}, func(p *plan, part uintptr) { d.join(p, joinArgs{part: part, cols: int64(src.Cols), to: a}) })
}

// kernelOf is the name of a kernel in a layout.
func kernelOf(name string, t DType, l layout) string {
	return fmt.Sprintf("%s_%s_%d_%d_%d", name, typeNames[t], l.v, l.g, l.k)
}

// maxArgs is MaxArgs of kernels/aggregate.cu.
type maxArgs struct {
	rows         rowArgs
	dst, src     mat
	arg, partArg uintptr
}

// tiles32 is the blocks for a warp a row and 32 columns.
func tiles32(rows int64, cols int) size3 { return size3{X: warps(int(rows)).X, Y: (cols + 31) / 32} }

func (d *Device) AggregateMax(dst Matrix, arg Index, adj *Sparse, src Matrix) {
	tensor.NeedShape("AggregateMax: dst", dst, adj.Rows, src.Cols, F32, BF16)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	a := maxArgs{dst: of(dst), src: of(src), arg: atIndex(arg)}
	var args Matrix
	if p := d.planOf(adj); p != nil {
		args = d.scratch(U32, p.n, src.Cols)
		a.partArg = at(args)
	}
	d.overRows(adj, src.Cols, func(r rowArgs) {
		a.rows = r
		launch(d, "aggregate", "aggregate_max", tiles32(r.n, src.Cols), oneBlock, &a)
	}, func(p *plan, part uintptr) {
		d.join(p, joinArgs{part: part, cols: int64(src.Cols), max: 1, args: at(args), arg: a.arg,
			to: aggregateArgs{dst: of(dst)}})
	})
	d.release(args)
}

func (d *Device) AggregateMaxGrad(dsrc Matrix, adjT *Sparse, ddst Matrix, arg Index) {
	tensor.NeedShape("AggregateMaxGrad: dsrc", dsrc, adjT.Rows, ddst.Cols, F32, BF16)
	if dsrc.Rows*dsrc.Cols == 0 {
		return
	}
	defer d.enter()()
	a := maxArgs{dst: of(dsrc), src: of(ddst), arg: atIndex(arg)}
	index := d.inOrder(adjT)
	d.overRows(adjT, ddst.Cols, func(r rowArgs) {
		a.rows = r
		a.rows.index = atIndex(index)
		launch(d, "aggregate", "aggregate_max_grad", tiles32(r.n, ddst.Cols), oneBlock, &a)
	}, d.joinTo(dsrc, false))
}

// inOrder is the index of a matrix with the entries of every row in order. They nearly always are.
func (d *Device) inOrder(s *Sparse) Index {
	parts := tensor.PartsOf(s)
	starts, list := memory.HostCopy[int64](parts.Ptr), memory.HostCopy[uint32](parts.Index.Matrix())
	if starts == nil || list == nil {
		return parts.Index
	}
	sorted, key := knownOf(parts.Index.Matrix()).sorted, [2]int{tensor.Offset(parts.Ptr), s.Rows}
	if x, ok := sorted[key]; ok {
		return x
	}
	index, own := parts.Index, list
	for i := range s.Rows {
		if slices.IsSorted(own[starts[i]:starts[i+1]]) {
			continue
		}
		if &own[0] == &list[0] {
			own = slices.Clone(list)
		}
		slices.Sort(own[starts[i]:starts[i+1]])
	}
	if len(own) > 0 && &own[0] != &list[0] {
		index = tensor.Indices(d, own)
	}
	sorted[key] = index
	return index
}

// gatherArgs is GatherArgs of kernels/elements.cu.
type gatherArgs struct {
	dst, src mat
	rows     uintptr
	n, cols  int64
}

func (d *Device) GatherRows(dst, src Matrix, rows Index) {
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	tensor.NeedShape("GatherRows: dst", dst, rows.Len(), src.Cols)
	if f := farOf(src); f != nil {
		d.gatherFar(dst, src, rows, f)
		return
	}
	d.rowsKernel("gather", dst, src, rows)
}

func (d *Device) rowsKernel(name string, dst, src Matrix, rows Index) {
	a := gatherArgs{of(dst), of(src), atIndex(rows), int64(rows.Len()), int64(src.Cols)}
	v := vectorOf(4, dst, src)
	launch(d, "elements", fmt.Sprintf("%s_%d", name, v), d.elements(rows.Len()*src.Cols/v), oneBlock, &a)
}

// elements is the blocks for n threads that take further ones in turn.
func (d *Device) elements(n int) size3 {
	return size3{X: min(blocks(n).X, 64*max(1, d.run.GPU.Processors))}
}

// targets is what is known of rows that are added to.
type targets struct {
	distinct bool
	inverse  *Sparse // of each row, which are added to it
}

func (d *Device) ScatterAdd(dst, src Matrix, rows Index) {
	if src.Rows*src.Cols == 0 {
		return
	}
	defer d.enter()()
	tensor.NeedShape("ScatterAdd: src", src, rows.Len(), dst.Cols)
	switch t := d.targetsOf(rows, dst.Rows); {
	case t == nil:
		a := gatherArgs{of(dst), of(src), atIndex(rows), int64(rows.Len()), int64(src.Cols)}
		launch(d, "elements", "scatter_in_order", blocks(src.Cols), oneBlock, &a)
	case t.distinct:
		d.rowsKernel("scatter", dst, src, rows)
	default:
		d.aggregate(t.inverse, src, dst, aggregateArgs{dst: of(dst), src: of(src), add: 1})
	}
}

// targetsOf looks at a list of rows once; nil where the host does not have it.
func (d *Device) targetsOf(rows Index, n int) *targets {
	list := memory.HostCopy[uint32](rows.Matrix())
	if list == nil {
		return nil
	}
	all, key := knownOf(rows.Matrix()).targets, [3]int{tensor.Offset(rows.Matrix()), len(list), n}
	if t, ok := all[key]; ok {
		return t
	}
	t := &targets{distinct: true}
	ptr := make([]int64, n+1)
	for _, i := range list {
		ptr[i+1]++
		t.distinct = t.distinct && ptr[i+1] == 1
	}
	if !t.distinct {
		t.inverse = d.inverse(ptr, list)
	}
	all[key] = t
	return t
}

// inverse is the places of each row in a list, given how many each has.
func (d *Device) inverse(ptr []int64, list []uint32) *Sparse {
	for i := 1; i < len(ptr); i++ {
		ptr[i] += ptr[i-1]
	}
	next, index := slices.Clone(ptr), make([]uint32, len(list))
	for k, i := range list {
		index[next[i]] = uint32(k)
		next[i]++
	}
	return tensor.NewSparse(d, len(ptr)-1, len(list), ptr, index, nil)
}

func (d *Device) DropoutValues(dst Matrix, s *Sparse, op Dropout, transposed bool) {
	if s.Rows == 0 || dst.Rows == 0 {
		return
	}
	defer d.enter()()
	parts := tensor.PartsOf(s)
	a := struct {
		ptr, index, value uintptr
		dst               mat
		drop              drop
		rows, transposed  int64
	}{at(parts.Ptr), atIndex(parts.Index), at(parts.Value), of(dst), dropOf(op), int64(s.Rows), number(transposed)}
	launch(d, "aggregate", "dropout_values", warps(s.Rows), oneBlock, &a)
}
