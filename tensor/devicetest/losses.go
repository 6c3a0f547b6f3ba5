package devicetest

import (
	"slices"

	"starling/tensor"
)

func (s *suite) loss() {
	t := s.rowType()
	rows, cols := s.shape(200, 120)
	cols = max(cols, 1)
	x := s.numbers(t, rows, cols)
	kind := tensor.LossKind(s.r.IntN(3))
	at, refAt := s.someRows(rows)
	op := tensor.Loss{Kind: kind, Rows: at, Scale: 1. / 8}
	refOp := op
	refOp.Rows = refAt
	if kind == tensor.CrossEntropy {
		labels := make([]uint32, rows)
		for i := range labels {
			labels[i] = uint32(s.r.IntN(cols))
		}
		op.Labels, refOp.Labels = s.index(labels)
	} else {
		p := s.numbers(s.rowType(), rows, cols)
		marks := download(s.ref, p.ref)
		for i := range marks {
			marks[i] = float64(s.r.IntN(2))
		}
		s.dev.Upload(p.dev, marks)
		s.ref.Upload(p.ref, marks)
		op.Targets, refOp.Targets = p.dev, p.ref
	}
	s.describe("%v of %v, all rows %v", kind, x.dev, at.IsZero())
	sums := s.sums(1, 2)
	s.dev.Loss(sums.dev, tensor.Matrix{}, x.dev, op)
	s.ref.Loss(sums.ref, tensor.Matrix{}, x.ref, refOp)
	size := float64(rows*cols + 1)
	near := func(int, float64) float64 { return 1e-6*size + 3e-5 }
	s.near("loss", sums, near)
	dx := x
	if s.yes() {
		dx = s.numbers(s.rowType(), rows, cols)
	}
	s.dev.Loss(sums.dev, dx.dev, x.dev, op)
	s.ref.Loss(sums.ref, dx.ref, x.ref, refOp)
	s.near("loss with a gradient", sums, near)
	s.same("gradient", dx, 1)
	s.outside()
}

func (s *suite) countMarks() {
	t, rows, cols := s.rowType(), s.size(200), s.size(60)
	x, y, counts := s.numbers(t, rows, cols), s.numbers(t, rows, cols), s.sums(1, 3)
	at, refAt := s.someRows(rows)
	s.describe("%v", x.dev)
	s.dev.CountMarks(counts.dev, x.dev, y.dev, at)
	s.ref.CountMarks(counts.ref, x.ref, y.ref, refAt)
	s.same("counts", counts, 0)
}

func (s *suite) softmax() {
	t := s.rowType()
	rows, cols := s.shape(200, 200)
	cols = max(cols, 1)
	x := s.numbers(t, rows, cols)
	s.describe("%v", x.dev)
	best := [2]tensor.Matrix{s.dev.Scratch(tensor.U32, rows, 1), s.ref.Scratch(tensor.U32, rows, 1)}
	s.what = append(s.what, best[0])
	s.dev.Argmax(tensor.IndexIn(best[0]), x.dev)
	s.ref.Argmax(tensor.IndexIn(best[1]), x.ref)
	got, want := make([]uint32, rows), make([]uint32, rows)
	s.dev.Download(got, best[0])
	if s.ref.Download(want, best[1]); !slices.Equal(got, want) {
		s.Fatalf("%s: the largest are %v, want %v", s.label, got, want)
	}
	y := x
	if s.yes() {
		y = s.numbers(s.rowType(), rows, cols)
	}
	s.dev.Softmax(y.dev, x.dev)
	s.ref.Softmax(y.ref, x.ref)
	tol := 1e-5
	if t == tensor.BF16 {
		tol = 2e-4 // exponentials may be rounded likewise
	}
	tol = max(tol, precision(y.dev.Type()))
	s.near("softmax", y, func(_ int, want float64) float64 { return tol * (0.01 + want) })
	s.outside()
}

func (s *suite) adam() {
	rows, cols := s.size(60), s.size(60)
	p, g, m, v := s.param(rows, cols), s.param(rows, cols), s.param(rows, cols), s.param(rows, cols)
	s.dev.Zero(m.dev)
	s.ref.Zero(m.ref)
	s.dev.Zero(v.dev)
	s.ref.Zero(v.ref)
	for step := range 4 {
		op := tensor.Adam{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1. / 8, Decoupled: s.yes(), Step: step + 1}
		s.describe("%v, %+v", p.dev, op)
		s.dev.Adam(p.dev, g.dev, m.dev, v.dev, op)
		s.ref.Adam(p.ref, g.ref, m.ref, v.ref, op)
		s.same("parameter", p, 1)
		s.same("first moment", m, 1)
		s.same("second moment", v, 1)
	}
}

func (s *suite) sgd() {
	rows, cols := s.size(60), s.size(60)
	p, g, buf := s.param(rows, cols), s.param(rows, cols), s.param(rows, cols)
	momentum := []float64{0, 0.9}[s.r.IntN(2)]
	nesterov := momentum > 0 && s.yes()
	for step := range 3 {
		op := tensor.SGD{LR: 0.1, Momentum: momentum, Decay: 0.1, Nesterov: nesterov, Step: step + 1}
		s.describe("%v, %+v", p.dev, op)
		s.dev.SGD(p.dev, g.dev, buf.dev, op)
		s.ref.SGD(p.ref, g.ref, buf.ref, op)
		s.same("parameter", p, 1)
	}
}
