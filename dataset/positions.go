package dataset

import (
	"math"

	"starling/graph"
	"starling/rng"
)

// Positions of vertices by subspace iteration. From normal numbers X, a few times
//
//	X ← (X + D⁻¹A X) / 2, without its mean, with orthonormal columns
//
// so that X comes near the slowest functions of the lazy random walk over in-edges: vertices
// that few edges separate have similar rows. Columns are scaled to variance 1. X is [vertices, W],
// held in memory twice. Sums over vertices are made of fixed pieces, so that the result does
// not depend on the number of cores.
const (
	positionSteps  = 24
	positionPiece  = 1 << 12 // vertices per partial sum
	positionRegain = 4       // steps between two orthonormalizations
)

func positions(g *graph.CSR, width int, key rng.Key) *graph.Features {
	n := g.Nodes()
	x, y := make([]float32, n*width), make([]float32, n*width)
	graph.Parallel(int64(n), 256, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			normals(x[int(v)*width:(int(v)+1)*width], key.Fold(uint64(v)))
		}
	})
	for step := range positionSteps {
		walk(g, y, x, width)
		x, y = y, x
		if step%positionRegain == positionRegain-1 {
			center(x, width)
			orthonormalize(x, width, key.Fold(uint64(n)+uint64(step)))
		}
	}
	root := float32(math.Sqrt(float64(n)))
	for i := range x {
		x[i] *= root
	}
	return &graph.Features{Rows: n, Cols: width, F32: x}
}

// walk is one step of the lazy random walk. Vertices without in-edges fade.
func walk(g *graph.CSR, dst, src []float32, width int) {
	graph.Parallel(int64(g.Nodes()), 256, func(lo, hi int64) {
		sum := make([]float32, width)
		for v := int(lo); v < int(hi); v++ {
			clear(sum)
			for _, u := range g.Neighbors(uint32(v)) {
				for c, z := range src[int(u)*width : (int(u)+1)*width] {
					sum[c] += z
				}
			}
			over := float32(max(g.Degree(uint32(v)), 1))
			own := src[v*width : (v+1)*width]
			for c := range sum {
				dst[v*width+c] = (own[c] + sum[c]/over) / 2
			}
		}
	})
}

// summed adds what f computes of every piece of the rows, in the order of the pieces.
func summed(rows, size int, f func(lo, hi int, into []float64)) []float64 {
	pieces := (rows + positionPiece - 1) / positionPiece
	parts := make([][]float64, pieces)
	graph.Parallel(int64(pieces), 1, func(lo, hi int64) {
		for p := lo; p < hi; p++ {
			parts[p] = make([]float64, size)
			f(int(p)*positionPiece, min(int(p+1)*positionPiece, rows), parts[p])
		}
	})
	total := make([]float64, size)
	for _, part := range parts {
		for i, x := range part {
			total[i] += x
		}
	}
	return total
}

// center subtracts the mean of every column.
func center(x []float32, width int) {
	rows := len(x) / width
	mean := summed(rows, width, func(lo, hi int, into []float64) {
		for i, z := range x[lo*width : hi*width] {
			into[i%width] += float64(z)
		}
	})
	for i := range x {
		x[i] -= float32(mean[i%width] / float64(rows))
	}
}

// orthonormalize replaces X by X·L⁻ᵀ, where L·Lᵀ = XᵀX (Cholesky QR), twice, as the first
// time rounding leaves something. A column that is a combination of others is drawn anew.
func orthonormalize(x []float32, width int, key rng.Key) {
	for round, done := 0, 0; done < 2 && round < 2*width+2; round++ {
		gram := summed(len(x)/width, width*width, func(lo, hi int, into []float64) {
			for v := lo; v < hi; v++ {
				row := x[v*width : (v+1)*width]
				for a, za := range row {
					for b, zb := range row[:a+1] {
						into[a*width+b] += float64(za) * float64(zb)
					}
				}
			}
		})
		if lost := cholesky(gram, width); lost >= 0 {
			redraw(x, width, lost, key.Fold(uint64(round)))
			center(x, width)
			continue
		}
		done++
		graph.Parallel(int64(len(x)/width), 256, func(lo, hi int64) {
			for v := lo; v < hi; v++ {
				forwardSubstitute(gram, x[int(v)*width:int(v+1)*width])
			}
		})
	}
}

// cholesky factors the lower half in place; it returns a column that depends on earlier ones,
// or -1.
func cholesky(a []float64, n int) int {
	for j := range n {
		whole := a[j*n+j]
		for k := range j {
			a[j*n+j] -= a[j*n+k] * a[j*n+k]
		}
		if !(a[j*n+j] > 1e-12*whole) {
			return j
		}
		a[j*n+j] = math.Sqrt(a[j*n+j])
		for i := j + 1; i < n; i++ {
			for k := range j {
				a[i*n+j] -= a[i*n+k] * a[j*n+k]
			}
			a[i*n+j] /= a[j*n+j]
		}
	}
	return -1
}

// forwardSubstitute solves L·y = row in place.
func forwardSubstitute(l []float64, row []float32) {
	n := len(row)
	for i := range n {
		z := float64(row[i])
		for k := range i {
			z -= l[i*n+k] * float64(row[k])
		}
		row[i] = float32(z / l[i*n+i])
	}
}

func redraw(x []float32, width, column int, key rng.Key) {
	for v := range len(x) / width {
		x[v*width+column] = float32(key.Normal(uint64(v)))
	}
}
