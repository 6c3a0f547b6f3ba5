package tensor

import "slices"

// Intercepted is a device whose operations are values that one function gets: to count, charge, delay or leave out
// what is computed. Memory is the Allocator's.
type Intercepted struct {
	Allocator
	on func(*Call)
}

var _ Device = Intercepted{}

// Intercept is a device with the memory of another, whose operations are passed to on.
func Intercept(memory Allocator, on func(*Call)) Intercepted { return Intercepted{memory, on} }

// Call is one call of an operation.
type Call struct {
	Op string // the name of the method
	// Args point to the arguments, in their order: *Matrix, *Index, **Sparse, *MatMul and so on. Changing what they point
	// to changes what Run computes.
	Args  []any
	Bytes int // the result of Pack

	run func(Operations)
}

// Run computes the operation.
func (c *Call) Run(on Operations) { c.run(on) }

// Arg is the first argument of a type; nil where there is none.
func Arg[T any](c *Call) *T {
	for _, a := range c.Args {
		if x, ok := a.(*T); ok {
			return x
		}
	}
	return nil
}

// Matrix is the matrix with a number among the arguments that are matrices.
func (c *Call) Matrix(number int) Matrix {
	for _, a := range c.Args {
		if m, ok := a.(*Matrix); ok {
			if number == 0 {
				return *m
			}
			number--
		}
	}
	Need(false, "%s has no matrix %d more", c.Op, number)
	return Matrix{}
}

// Replace puts other matrices in the place of all that the operation reads or writes.
func (c *Call) Replace(by func(Matrix) Matrix) {
	m := func(list ...*Matrix) {
		for _, x := range list {
			*x = by(*x)
		}
	}
	for _, a := range c.Args {
		switch a := a.(type) {
		case *Matrix:
			m(a)
		case *Index:
			m(&a.m)
		case **Sparse:
			s := **a
			m(&s.ptr, &s.index.m, &s.value, &s.perm.m)
			*a = &s
		case *MatMul:
			m(&a.Epilogue.Bias, &a.Epilogue.Dropout.IDs.m)
		case *Epilogue:
			m(&a.Bias, &a.Dropout.IDs.m)
		case *Dropout:
			m(&a.IDs.m)
		case *Aggregate:
			m(&a.RowScale, &a.ColScale, &a.SelfScale)
		case *Attention:
			m(&a.Dropout.IDs.m, &a.SrcIDs.m, &a.Edge, &a.DEdge)
		case *EdgeInput:
			m(&a.Features, &a.Weight, &a.Bias, &a.DWeight, &a.DBias)
		case *Loss:
			m(&a.Labels.m, &a.Targets, &a.Rows.m)
		case *Packing:
			m(&a.Residual, &a.At.m)
		case *[]HeadDot:
			*a = slices.Clone(*a)
			for i := range *a {
				m(&(*a)[i].Score, &(*a)[i].A, &(*a)[i].DA)
			}
		}
	}
}

func (d Intercepted) call(op string, run func(Operations), args ...any) {
	d.on(&Call{Op: op, Args: args, run: run})
}

func (d Intercepted) MatMul(dst, a, b Matrix, op MatMul) {
	d.call("MatMul", func(on Operations) { on.MatMul(dst, a, b, op) }, &dst, &a, &b, &op)
}

func (d Intercepted) ColumnSum(dst, src Matrix, add bool) {
	d.call("ColumnSum", func(on Operations) { on.ColumnSum(dst, src, add) }, &dst, &src, &add)
}

func (d Intercepted) Aggregate(dst Matrix, adj *Sparse, src Matrix, op Aggregate) {
	d.call("Aggregate", func(on Operations) { on.Aggregate(dst, adj, src, op) }, &dst, &adj, &src, &op)
}

func (d Intercepted) AggregateMax(dst Matrix, arg Index, adj *Sparse, src Matrix) {
	d.call("AggregateMax", func(on Operations) { on.AggregateMax(dst, arg, adj, src) }, &dst, &arg, &adj, &src)
}

func (d Intercepted) AggregateMaxGrad(dsrc Matrix, adjT *Sparse, ddst Matrix, arg Index) {
	d.call("AggregateMaxGrad", func(on Operations) { on.AggregateMaxGrad(dsrc, adjT, ddst, arg) },
		&dsrc, &adjT, &ddst, &arg)
}

func (d Intercepted) HeadDot(z Matrix, dots ...HeadDot) {
	d.call("HeadDot", func(on Operations) { on.HeadDot(z, dots...) }, &z, &dots)
}

func (d Intercepted) HeadDotGrad(dz, z Matrix, dots ...HeadDot) {
	d.call("HeadDotGrad", func(on Operations) { on.HeadDotGrad(dz, z, dots...) }, &dz, &z, &dots)
}

func (d Intercepted) Attend(dst, stat Matrix, adj *Sparse, z, left, right Matrix, op Attention) {
	d.call("Attend", func(on Operations) { on.Attend(dst, stat, adj, z, left, right, op) },
		&dst, &stat, &adj, &z, &left, &right, &op)
}

func (d Intercepted) AttendGrad(dz, dleft, dright Matrix, adj, adjT *Sparse, z, left, right, stat, dst, ddst Matrix,
	op Attention) {
	d.call("AttendGrad", func(on Operations) {
		on.AttendGrad(dz, dleft, dright, adj, adjT, z, left, right, stat, dst, ddst, op)
	}, &dz, &dleft, &dright, &adj, &adjT, &z, &left, &right, &stat, &dst, &ddst, &op)
}

func (d Intercepted) JoinAttend(dst, stat Matrix, adj *Sparse, part, partStat Matrix) {
	d.call("JoinAttend", func(on Operations) { on.JoinAttend(dst, stat, adj, part, partStat) },
		&dst, &stat, &adj, &part, &partStat)
}

func (d Intercepted) GatherRows(dst, src Matrix, rows Index) {
	d.call("GatherRows", func(on Operations) { on.GatherRows(dst, src, rows) }, &dst, &src, &rows)
}

func (d Intercepted) ScatterAdd(dst, src Matrix, rows Index) {
	d.call("ScatterAdd", func(on Operations) { on.ScatterAdd(dst, src, rows) }, &dst, &src, &rows)
}

func (d Intercepted) DropoutValues(dst Matrix, s *Sparse, drop Dropout, transposed bool) {
	d.call("DropoutValues", func(on Operations) { on.DropoutValues(dst, s, drop, transposed) },
		&dst, &s, &drop, &transposed)
}

func (d Intercepted) DynamicAttend(dst, alpha Matrix, adj *Sparse, z, right, a Matrix, op Attention,
	edges EdgeInput) {
	d.call("DynamicAttend", func(on Operations) { on.DynamicAttend(dst, alpha, adj, z, right, a, op, edges) },
		&dst, &alpha, &adj, &z, &right, &a, &op, &edges)
}

func (d Intercepted) DynamicAttendGrad(dz, dright, da Matrix, adj, adjT *Sparse, z, right, a, alpha, dst, ddst Matrix,
	op Attention, edges EdgeInput) {
	d.call("DynamicAttendGrad", func(on Operations) {
		on.DynamicAttendGrad(dz, dright, da, adj, adjT, z, right, a, alpha, dst, ddst, op, edges)
	}, &dz, &dright, &da, &adj, &adjT, &z, &right, &a, &alpha, &dst, &ddst, &op, &edges)
}

func (d Intercepted) EdgeDot(dst Matrix, adj *Sparse, q, k Matrix) {
	d.call("EdgeDot", func(on Operations) { on.EdgeDot(dst, adj, q, k) }, &dst, &adj, &q, &k)
}

func (d Intercepted) EdgeDotGrad(dq, dk Matrix, adj, adjT *Sparse, q, k, ddst Matrix) {
	d.call("EdgeDotGrad", func(on Operations) { on.EdgeDotGrad(dq, dk, adj, adjT, q, k, ddst) },
		&dq, &dk, &adj, &adjT, &q, &k, &ddst)
}

func (d Intercepted) FilmMean(dst Matrix, adj *Sparse, z, film Matrix, add bool) {
	d.call("FilmMean", func(on Operations) { on.FilmMean(dst, adj, z, film, add) }, &dst, &adj, &z, &film, &add)
}

func (d Intercepted) FilmMeanGrad(dz, dfilm Matrix, adj, adjT *Sparse, z, film, ddst Matrix) {
	d.call("FilmMeanGrad", func(on Operations) { on.FilmMeanGrad(dz, dfilm, adj, adjT, z, film, ddst) },
		&dz, &dfilm, &adj, &adjT, &z, &film, &ddst)
}

func (d Intercepted) EdgeSum(dst Matrix, adj *Sparse, src Matrix, edges EdgeInput) {
	d.call("EdgeSum", func(on Operations) { on.EdgeSum(dst, adj, src, edges) }, &dst, &adj, &src, &edges)
}

func (d Intercepted) EdgeSumGrad(dsrc Matrix, adj, adjT *Sparse, src, ddst Matrix, edges EdgeInput) {
	d.call("EdgeSumGrad", func(on Operations) { on.EdgeSumGrad(dsrc, adj, adjT, src, ddst, edges) },
		&dsrc, &adj, &adjT, &src, &ddst, &edges)
}

func (d Intercepted) Zero(m Matrix) { d.call("Zero", func(on Operations) { on.Zero(m) }, &m) }

func (d Intercepted) Copy(dst, src Matrix) {
	d.call("Copy", func(on Operations) { on.Copy(dst, src) }, &dst, &src)
}

func (d Intercepted) Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	d.call("Combine", func(on Operations) { on.Combine(dst, a, x, b, y) }, &dst, &a, &x, &b, &y)
}

func (d Intercepted) Multiply(dst, x, y Matrix) {
	d.call("Multiply", func(on Operations) { on.Multiply(dst, x, y) }, &dst, &x, &y)
}

func (d Intercepted) Activate(dst, src Matrix, op Epilogue) {
	d.call("Activate", func(on Operations) { on.Activate(dst, src, op) }, &dst, &src, &op)
}

func (d Intercepted) ActivateGrad(dx, dy, y Matrix, op Epilogue, dbias Matrix) {
	d.call("ActivateGrad", func(on Operations) { on.ActivateGrad(dx, dy, y, op, dbias) }, &dx, &dy, &y, &op, &dbias)
}

func (d Intercepted) GELU(dst, src Matrix) {
	d.call("GELU", func(on Operations) { on.GELU(dst, src) }, &dst, &src)
}

func (d Intercepted) GELUGrad(dx, dy, x Matrix) {
	d.call("GELUGrad", func(on Operations) { on.GELUGrad(dx, dy, x) }, &dx, &dy, &x)
}

func (d Intercepted) Dot(dst, x, y Matrix) {
	d.call("Dot", func(on Operations) { on.Dot(dst, x, y) }, &dst, &x, &y)
}

func (d Intercepted) ColumnSums(sums, x Matrix) {
	d.call("ColumnSums", func(on Operations) { on.ColumnSums(sums, x) }, &sums, &x)
}

func (d Intercepted) Moments(mv, running, sums Matrix, count int64, momentum float64) {
	d.call("Moments", func(on Operations) { on.Moments(mv, running, sums, count, momentum) },
		&mv, &running, &sums, &count, &momentum)
}

func (d Intercepted) BatchNorm(y, x, mv, gamma, beta Matrix, eps float64, op Epilogue) {
	d.call("BatchNorm", func(on Operations) { on.BatchNorm(y, x, mv, gamma, beta, eps, op) },
		&y, &x, &mv, &gamma, &beta, &eps, &op)
}

func (d Intercepted) BatchNormSums(gs, dy, x, mv Matrix, eps float64) {
	d.call("BatchNormSums", func(on Operations) { on.BatchNormSums(gs, dy, x, mv, eps) }, &gs, &dy, &x, &mv, &eps)
}

func (d Intercepted) BatchNormGrad(dx, dy, x, mv, gs, gamma Matrix, count int64, eps float64) {
	d.call("BatchNormGrad", func(on Operations) { on.BatchNormGrad(dx, dy, x, mv, gs, gamma, count, eps) },
		&dx, &dy, &x, &mv, &gs, &gamma, &count, &eps)
}

func (d Intercepted) LayerNorm(y, stat, x, gamma, beta Matrix, eps float64, op Epilogue) {
	d.call("LayerNorm", func(on Operations) { on.LayerNorm(y, stat, x, gamma, beta, eps, op) },
		&y, &stat, &x, &gamma, &beta, &eps, &op)
}

func (d Intercepted) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma Matrix) {
	d.call("LayerNormGrad", func(on Operations) { on.LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma) },
		&dx, &dgamma, &dbeta, &dy, &x, &stat, &gamma)
}

func (d Intercepted) Loss(sums, dlogits, logits Matrix, op Loss) {
	d.call("Loss", func(on Operations) { on.Loss(sums, dlogits, logits, op) }, &sums, &dlogits, &logits, &op)
}

func (d Intercepted) CountMarks(counts, logits, targets Matrix, rows Index) {
	d.call("CountMarks", func(on Operations) { on.CountMarks(counts, logits, targets, rows) },
		&counts, &logits, &targets, &rows)
}

func (d Intercepted) Softmax(dst, src Matrix) {
	d.call("Softmax", func(on Operations) { on.Softmax(dst, src) }, &dst, &src)
}

func (d Intercepted) Argmax(dst Index, src Matrix) {
	d.call("Argmax", func(on Operations) { on.Argmax(dst, src) }, &dst, &src)
}

func (d Intercepted) Adam(p, g, m, v Matrix, op Adam) {
	d.call("Adam", func(on Operations) { on.Adam(p, g, m, v, op) }, &p, &g, &m, &v, &op)
}

func (d Intercepted) SGD(p, g, buf Matrix, op SGD) {
	d.call("SGD", func(on Operations) { on.SGD(p, g, buf, op) }, &p, &g, &buf, &op)
}

func (d Intercepted) Pack(dst []byte, src Matrix, p Packing) int {
	c := &Call{Op: "Pack", Args: []any{&dst, &src, &p}}
	c.run = func(on Operations) { c.Bytes = on.Pack(dst, src, p) }
	d.on(c)
	return c.Bytes
}

func (d Intercepted) Unpack(dst Matrix, src []byte, p Packing) {
	d.call("Unpack", func(on Operations) { on.Unpack(dst, src, p) }, &dst, &src, &p)
}
