package devicetest

import "starling/tensor"

const eps = 1e-5

func (s *suite) batchNorm() {
	t := s.rowType()
	rows, cols := s.shape(200, 140)
	rows = max(rows, 1)
	x, y := s.numbers(t, rows, cols), s.numbers(s.rowType(), rows, cols)
	gamma, beta := s.param(1, cols), s.param(1, cols)
	sums, mv, running := s.sums(2, cols), s.sums(2, cols), s.sums(2, cols)
	e, f := s.epilogue(rows, cols, false)
	e.Act, f.Act = tensor.LeakyReLU, tensor.LeakyReLU // has no jump
	s.describe("%v, dropout %g", x.dev, e.Dropout.P)
	s.dev.ColumnSums(sums.dev, x.dev)
	s.ref.ColumnSums(sums.ref, x.ref)
	s.near("sums", sums, func(int, float64) float64 { return 1e-5 * float64(rows) })
	s.ref.Upload(sums.ref, download(s.dev, sums.dev))
	if s.yes() {
		running = pair{}
	}
	s.dev.Moments(mv.dev, running.dev, sums.dev, int64(rows), 0.1)
	s.ref.Moments(mv.ref, running.ref, sums.ref, int64(rows), 0.1)
	s.same("moments", mv, 1)
	if !running.dev.IsZero() {
		s.same("running moments", running, 1)
	}
	if rows < 8 { // else numbers that happen to be equal are divided by what rounding leaves
		return
	}
	s.dev.BatchNorm(y.dev, x.dev, mv.dev, gamma.dev, beta.dev, eps, e)
	s.ref.BatchNorm(y.ref, x.ref, mv.ref, gamma.ref, beta.ref, eps, f)
	s.same("norm", y, 10)
	dy, gs := s.numbers(t, rows, cols), s.sums(2, cols)
	s.dev.BatchNormSums(gs.dev, dy.dev, x.dev, mv.dev, eps)
	s.ref.BatchNormSums(gs.ref, dy.ref, x.ref, mv.ref, eps)
	s.near("sums of gradients", gs, func(int, float64) float64 { return 1e-4 * float64(rows) })
	s.dev.BatchNormGrad(dy.dev, dy.dev, x.dev, mv.dev, gs.dev, gamma.dev, int64(rows), eps)
	s.ref.BatchNormGrad(dy.ref, dy.ref, x.ref, mv.ref, gs.ref, gamma.ref, int64(rows), eps)
	s.same("gradient, in place", dy, 20)
	s.outside()
}

func (s *suite) layerNorm() {
	t := s.rowType()
	rows, cols := s.shape(100, 280)
	cols += 8
	x, y, stat := s.numbers(t, rows, cols), s.numbers(s.rowType(), rows, cols), s.param(rows, 2)
	gamma, beta := s.param(1, cols), s.param(1, cols)
	e, f := s.epilogue(rows, cols, false)
	e.Act, f.Act = tensor.LeakyReLU, tensor.LeakyReLU
	s.describe("%v, dropout %g", x.dev, e.Dropout.P)
	s.dev.LayerNorm(y.dev, stat.dev, x.dev, gamma.dev, beta.dev, eps, e)
	s.ref.LayerNorm(y.ref, stat.ref, x.ref, gamma.ref, beta.ref, eps, f)
	s.same("norm", y, 10)
	s.same("statistics", stat, 4)
	dy, dgamma, dbeta := s.numbers(t, rows, cols), s.param(1, cols), s.param(1, cols)
	dx := dy
	if s.yes() {
		dx = s.numbers(t, rows, cols)
	}
	s.dev.LayerNormGrad(dx.dev, dgamma.dev, dbeta.dev, dy.dev, x.dev, stat.dev, gamma.dev)
	s.ref.LayerNormGrad(dx.ref, dgamma.ref, dbeta.ref, dy.ref, x.ref, stat.ref, gamma.ref)
	s.same("dx", dx, 20)
	s.same("dgamma", dgamma, 4*float64(rows+1))
	s.same("dbeta", dbeta, float64(rows+1))
	s.outside()
}
