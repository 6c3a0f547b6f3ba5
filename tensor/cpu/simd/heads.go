package simd

// HeadDots is some rows of HeadDot and its backward pass (see tensor.Device).
type HeadDots struct {
	Score Strided // float32: the result, or its gradient
	Z     Strided
	A     []float32
	Rows  int
	Heads int
	Width int
	DZ    Strided   // backward: added to; may be empty
	DA    []float32 // backward: added to
}

// HeadDot: score_ih = z_ih · a_h.
func HeadDot(level Level, a *HeadDots) {
	if a.Rows*a.Width == 0 || headDotFast(level, a) {
		return
	}
	for r := range a.Rows {
		for h := range a.Heads {
			a.Score.F32[r*a.Score.Stride+h] = a.Z.dot(a.A[h*a.Width:(h+1)*a.Width], r, h*a.Width)
		}
	}
}

// HeadDotGrad: dz_ih += dscore_ih · a_h; da_h += the sum of dscore_ih · z_ih.
func HeadDotGrad(level Level, a *HeadDots) {
	if a.Rows*a.Width == 0 || headDotGradFast(level, a) {
		return
	}
	for r := range a.Rows {
		for h := range a.Heads {
			g, lo, hi := a.Score.F32[r*a.Score.Stride+h], h*a.Width, (h+1)*a.Width
			a.Z.addTo(a.DA[lo:hi], g, r, lo)
			if a.DZ.F32 != nil || a.DZ.B16 != nil {
				a.DZ.put(a.A[lo:hi], g, true, r, lo)
			}
		}
	}
}

// SumEntries: dst_r = the sum of rows ptr[r] to ptr[r+1] of edge, heads wide.
func SumEntries(level Level, dst Strided, ptr []int64, edge []float32, heads int) {
	if sumEntriesFast(level, dst, ptr, edge, heads) {
		return
	}
	for r := range len(ptr) - 1 {
		out := dst.F32[r*dst.Stride:][:heads]
		clear(out)
		for rest := edge[int(ptr[r])*heads : int(ptr[r+1])*heads]; len(rest) > 0; rest = rest[heads:] {
			for k, x := range rest[:heads] {
				out[k] += x
			}
		}
	}
}
