package simd

// ColumnSums adds to two float64 sums a column. Without Mean they are of x and x²
// (X alone is read); with it they are of dy and dy·xhat, where
// xhat = (x - Mean_j)·Rdev_j. All four vectors hold Cols rounded up to 16.
type ColumnSums struct {
	X, Dy        Block
	Rows, Cols   int
	Mean, Rdev   *float64
	First, Other *float64
}

// Run adds the sums of the block.
func (s *ColumnSums) Run(l Level) {
	if s.Rows > 0 && s.Cols > 0 {
		runColumnSums(l, s)
	}
}

func columnSumsGeneric(s *ColumnSums) {
	for i := range s.Rows {
		for j := range s.Cols {
			x := float64(s.X.At(i, j))
			a := x
			if s.Mean != nil {
				a = float64(s.Dy.At(i, j))
				x = (x - *at(s.Mean, j)) * *at(s.Rdev, j)
			}
			*at(s.First, j) += a
			*at(s.Other, j) += a * x
		}
	}
}

// NormGrad is the last step of batch norm's backward pass:
// dx = A_j·dy - B_j - (x - Mean_j)·C_j.
type NormGrad struct {
	Dx, Dy, X     Block
	Rows, Cols    int
	Mean, A, B, C *float32
}

// Run computes the block.
func (g *NormGrad) Run(l Level) {
	if g.Rows > 0 && g.Cols > 0 {
		runNormGrad(l, g)
	}
}

func normGradGeneric(g *NormGrad) {
	for i := range g.Rows {
		for j := range g.Cols {
			x := *at(g.A, j)*g.Dy.At(i, j) - *at(g.B, j)
			x -= (g.X.At(i, j) - *at(g.Mean, j)) * *at(g.C, j)
			g.Dx.Set(i, j, x)
		}
	}
}

// LayerGrad is layer norm's backward pass: with g = dy·Gamma_j and
// xhat = (x - mean_i)·rdev_i,
//
//	dx = rdev_i·(g - mean_j(g) - xhat·mean_j(g·xhat))
//
// and the column sums of dy·xhat and dy are added to DGamma and DBeta, which have
// space for Cols rounded up to 16.
type LayerGrad struct {
	Dx, Dy, X            Block
	Rows, Cols           int
	Stat                 *float32
	StatStride           int // bytes
	Gamma, DGamma, DBeta *float32
}

// Run computes the block's rows.
func (g *LayerGrad) Run(l Level) {
	if g.Rows > 0 && g.Cols > 0 {
		runLayerGrad(l, g)
	}
}

func layerGradGeneric(g *LayerGrad) {
	for i := range g.Rows {
		s := at(g.Stat, i*(g.StatStride/4))
		mean, rdev := *s, *at(s, 1)
		var m0, m1 float32
		for j := range g.Cols {
			dy, xhat := g.Dy.At(i, j), (g.X.At(i, j)-mean)*rdev
			m0 += dy * *at(g.Gamma, j)
			m1 += dy * *at(g.Gamma, j) * xhat
			*at(g.DGamma, j) += dy * xhat
			*at(g.DBeta, j) += dy
		}
		m0 /= float32(g.Cols)
		m1 /= float32(g.Cols)
		for j := range g.Cols {
			xhat := (g.X.At(i, j) - mean) * rdev
			g.Dx.Set(i, j, rdev*(g.Dy.At(i, j)**at(g.Gamma, j)-m0-xhat*m1))
		}
	}
}
