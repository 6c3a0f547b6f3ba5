package cost

import "starling/tensor"

// Charged is a device whose operations are charged: after each, charge is called with the
// seconds that it takes at the given rates. GEMM is charged by multiplications, SpMM
// and its like by the numbers they read, everything else by the bytes of its matrices.
// Uploads and downloads are free. A device below that computes nothing is not told from
// others: what is charged for depends on the structure of graphs, so that must be there.
func Charged(dev tensor.Device, rates Compute, charge func(seconds float64)) tensor.Device {
	return counted(dev, func(w Work) { charge(rates.Seconds(w)) })
}

// Counted is a device whose operations are counted: after each, count is called with its work.
func Counted(dev tensor.Device, count func(w Work)) tensor.Device {
	if _, dry := dev.(interface{ DryRun() }); dry { // the number of edges is enough: see nn.Topology
		return dryCounted{counted(dev, count)}
	}
	return counted(dev, count)
}

// dryCounted computes nothing.
type dryCounted struct{ tensor.Device }

func (dryCounted) DryRun() {}

func counted(dev tensor.Device, count func(w Work)) tensor.Device {
	return tensor.Intercept(dev, func(c *tensor.Call) {
		c.Run(dev)
		if w := workOf(c); w.Calls > 0 {
			count(w)
		}
	})
}

// perEntry says how many numbers of each entry an operation reads: the columns of a matrix, by its number among the
// operation's matrices, times a factor, and some per head.
var perEntry = map[string]struct{ matrix, columns, heads int }{
	"Aggregate": {1, 1, 0}, "AggregateMax": {1, 1, 0}, "AggregateMaxGrad": {1, 1, 0},
	"Attend": {2, 1, 2}, "AttendGrad": {3, 2, 4}, "DynamicAttend": {2, 2, 0}, "DynamicAttendGrad": {3, 4, 0},
	"EdgeDot": {2, 1, 1}, "EdgeDotGrad": {3, 2, 2},
	"FilmMean": {1, 1, 0}, "FilmMeanGrad": {2, 2, 0}, "EdgeSum": {1, 1, 0}, "EdgeSumGrad": {1, 2, 0},
}

// touched lists the matrices whose bytes an operation reads or writes, by their numbers among its matrices, each as
// often as it is read or written. Small ones are left out, and so is Moments.
var touched = map[string][]int{
	"ColumnSum": {0, 1}, "ColumnSums": {1}, "Zero": {0}, "Copy": {0, 1}, "Combine": {0, 1, 2}, "Multiply": {0, 1, 2},
	"Activate": {0, 1}, "ActivateGrad": {0, 1, 2}, "Dot": {1, 2}, "GELU": {0, 1}, "GELUGrad": {0, 1, 2},
	"JoinAttend": {0, 0, 2}, "HeadDot": {0}, "HeadDotGrad": {0, 0, 1},
	"GatherRows": {0, 0}, "ScatterAdd": {1, 1, 1}, "DropoutValues": {0, 0},
	"BatchNorm": {0, 1}, "BatchNormSums": {1, 2}, "BatchNormGrad": {0, 1, 2}, "LayerNorm": {0, 1, 2},
	"LayerNormGrad": {0, 3, 4, 5}, "Loss": {1, 2}, "CountMarks": {1, 2}, "Softmax": {0, 1}, "Argmax": {0},
	"Adam": {0, 1, 2, 3, 0, 2, 3}, "SGD": {0, 1, 2, 0}, "Pack": {0, 0}, "Unpack": {0, 0},
}

// workOf is the work of an operation.
func workOf(c *tensor.Call) Work {
	if c.Op == "MatMul" {
		return denseWork(c.Matrix(0), c.Matrix(1), tensor.Arg[tensor.MatMul](c).TransA)
	}
	if per, ok := perEntry[c.Op]; ok {
		numbers := per.columns * c.Matrix(per.matrix).Cols
		if per.heads > 0 {
			numbers += per.heads * tensor.Arg[tensor.Attention](c).Heads
		}
		entries := float64((*tensor.Arg[*tensor.Sparse](c)).Entries())
		return Work{Calls: 1, Entries: entries, Sparse: entries * float64(numbers)}
	}
	list, ok := touched[c.Op]
	if !ok {
		return Work{}
	}
	var n int64
	for _, i := range list {
		n += c.Matrix(i).Bytes()
	}
	return Work{Calls: 1, Memory: float64(n)}
}

// denseWork is the work of a product.
func denseWork(dst, a tensor.Matrix, transposed bool) Work {
	inner := a.Cols
	if transposed {
		inner = a.Rows
	}
	return Work{Calls: 1, Dense: 2 * float64(dst.Rows) * float64(inner) * float64(dst.Cols)}
}
