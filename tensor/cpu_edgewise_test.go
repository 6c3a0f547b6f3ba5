package tensor

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestEdgewise compares operations over edges with their definition.
func TestEdgewise(t *testing.T) {
	everyLevel(t, func(t *testing.T, d *CPU) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, shape := range [][2]int{{1, 1}, {1, 7}, {2, 8}, {3, 20}, {1, 70}, {8, 8}, {17, 3}} {
			for range 3 {
				g := graphSizes[r.IntN(len(graphSizes))]
				edges := randomEdges(r, min(g.rows, 300), min(g.cols, 300), min(g.degree, 8), min(g.hub, 700))
				for _, dim := range []int{0, 3} {
					testDynamic(t, d, r, edges, shape[0], shape[1], dim)
				}
				testFilm(t, d, r, edges, shape[0]*shape[1])
				testEdgeSum(t, d, r, edges, shape[0]*shape[1])
			}
		}
	})
}

// edgeTwins are features of edges on both devices.
func edgeTwins(r *rand.Rand, d *CPU, ref *Ref, entries, dim, width int, bias bool) (x, x64 EdgeInput) {
	if dim == 0 {
		return
	}
	x.Features, x64.Features = twin(r, d, ref, F32, entries, dim, 0)
	x.Weight, x64.Weight = twin(r, d, ref, F32, dim, width, 0)
	x.DWeight, x64.DWeight = twin(r, d, ref, F32, dim, width, 0)
	if bias {
		x.Bias, x64.Bias = twin(r, d, ref, F32, 1, width, 0)
		x.DBias, x64.DBias = twin(r, d, ref, F32, 1, width, 0)
	}
	return
}

func testDynamic(t *testing.T, d *CPU, r *rand.Rand, g *edges, heads, width, dim int) {
	ref, cols, kind := NewRef(), heads*width, DType(r.IntN(2))
	name := fmt.Sprintf("dynamic, %dx%d, %d entries, %d heads of %d, %v, edges %d: ", g.rows, g.cols, len(g.index), heads, width, kind, dim)
	op := Attention{Heads: heads, Slope: 0.2}
	if r.IntN(2) == 1 {
		op.Dropout = Dropout{P: 0.4, Key: r.Uint64(), First: 10}
		if r.IntN(2) == 1 {
			op.Dropout.IDs, op.SrcIDs = randomIDs(r, g.rows), randomIDs(r, g.cols)
		}
	}
	z, z64 := twin(r, d, ref, kind, g.cols, cols, 0)
	right, right64 := twin(r, d, ref, kind, g.rows, cols, 0)
	a, a64 := twin(r, d, ref, F32, 1, cols, 0)
	x, x64 := edgeTwins(r, d, ref, len(g.index), dim, cols, false)
	dst, dst64 := twin(r, d, ref, kind, g.rows, cols, 0)
	alpha, alpha64 := d.New(F32, len(g.index), heads), ref.New(F64, len(g.index), heads)
	s, s64 := g.sparse(d, false), g.sparse(ref, false)
	d.DynamicAttend(dst, Matrix{}, s, z, right, a, op, x)
	ref.DynamicAttend(dst64, alpha64, s64, z64, right64, a64, op, x64)
	same(t, name+"dst", dst, dst64, 2e-4)
	half := g.rows / 2 // in two ranges
	for _, at := range [][2]int{{0, half}, {half, g.rows}} {
		part := op
		part.Dropout = op.Dropout.Slice(at[0], at[1])
		d.DynamicAttend(dst.Slice(at[0], at[1]), alpha, s.Slice(at[0], at[1]), z, right.Slice(at[0], at[1]), a, part, x)
	}
	same(t, name+"dst again", dst, dst64, 2e-4)
	same(t, name+"alpha", alpha, alpha64, 2e-4)
	ddst, ddst64 := twin(r, d, ref, kind, g.rows, cols, 0)
	dz, dz64 := twin(r, d, ref, kind, g.cols, cols, 0)
	dright, dright64 := twin(r, d, ref, kind, g.rows, cols, 0)
	da, da64 := twin(r, d, ref, F32, 1, cols, 0)
	ref.Upload(dst64, hostOf(dst)) // rounded
	d.DynamicAttendGrad(dz, dright, da, s, g.transpose(d, s), z, right, a, alpha, dst, ddst, op, x)
	ref.DynamicAttendGrad(dz64, dright64, da64, s64, nil, z64, right64, a64, alpha64, dst64, ddst64, op, x64)
	same(t, name+"dz", dz, dz64, 1e-3)
	same(t, name+"dright", dright, dright64, 1e-3)
	same(t, name+"da", da, da64, 1e-3)
	if dim > 0 {
		same(t, name+"edge weight", x.DWeight, x64.DWeight, 1e-3)
	}
}

func testFilm(t *testing.T, d *CPU, r *rand.Rand, g *edges, cols int) {
	ref, kind := NewRef(), DType(r.IntN(2))
	name := fmt.Sprintf("film, %dx%d, %d entries, %d columns, %v: ", g.rows, g.cols, len(g.index), cols, kind)
	z, z64 := twin(r, d, ref, kind, g.cols, cols, 0)
	film, film64 := twin(r, d, ref, kind, g.rows, 2*cols, 0)
	dst, dst64 := twin(r, d, ref, kind, g.rows, cols, 0)
	ddst, ddst64 := twin(r, d, ref, kind, g.rows, cols, 0)
	dz, dz64 := twin(r, d, ref, kind, g.cols, cols, 0)
	dfilm, dfilm64 := twin(r, d, ref, kind, g.rows, 2*cols, 0)
	s, s64 := g.sparse(d, false), g.sparse(ref, false)
	for _, add := range []bool{true, false} {
		d.FilmMean(dst, s, z, film, add)
		ref.FilmMean(dst64, s64, z64, film64, add)
		same(t, name+"dst", dst, dst64, 1e-4)
	}
	d.FilmMeanGrad(dz, dfilm, s, g.transpose(d, s), z, film, ddst)
	ref.FilmMeanGrad(dz64, dfilm64, s64, nil, z64, film64, ddst64)
	same(t, name+"dz", dz, dz64, 1e-4)
	same(t, name+"dfilm", dfilm, dfilm64, 1e-4)
}

func testEdgeSum(t *testing.T, d *CPU, r *rand.Rand, g *edges, cols int) {
	ref, kind := NewRef(), DType(r.IntN(2))
	name := fmt.Sprintf("edge sum, %dx%d, %d entries, %d columns, %v: ", g.rows, g.cols, len(g.index), cols, kind)
	src, src64 := twin(r, d, ref, kind, g.cols, cols, 0)
	dst, dst64 := twin(r, d, ref, kind, g.rows, cols, 0)
	ddst, ddst64 := twin(r, d, ref, kind, g.rows, cols, 0)
	dsrc, dsrc64 := twin(r, d, ref, kind, g.cols, cols, 0)
	x, x64 := edgeTwins(r, d, ref, len(g.index), 1+r.IntN(5), cols, true)
	s, s64 := g.sparse(d, false), g.sparse(ref, false)
	d.EdgeSum(dst, s, src, x)
	ref.EdgeSum(dst64, s64, src64, x64)
	same(t, name+"dst", dst, dst64, 1e-4)
	d.EdgeSumGrad(dsrc, s, g.transpose(d, s), src, ddst, x)
	ref.EdgeSumGrad(dsrc64, s64, nil, src64, ddst64, x64)
	same(t, name+"dsrc", dsrc, dsrc64, 1e-4)
	same(t, name+"weight", x.DWeight, x64.DWeight, 1e-3)
	same(t, name+"bias", x.DBias, x64.DBias, 1e-3)
}
