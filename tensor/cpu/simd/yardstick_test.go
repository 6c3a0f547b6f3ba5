package simd

import "testing"

func TestYardsticksDoTheirWork(t *testing.T) {
	for l := Generic; l <= Supported(); l++ {
		for _, n := range []int{0, 1, 63, 64, 200, 1000} {
			a, b, dst := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range a {
				a[i], b[i] = float32(i), float32(2*i+1)
			}
			if got := StreamRead(l, a); got != 4*n {
				t.Errorf("%v: reading %d numbers moved %d bytes", l, n, got)
			}
			if got := StreamCopy(l, dst, a); got != 8*n {
				t.Errorf("%v: copying %d numbers moved %d bytes", l, n, got)
			}
			for i, x := range dst {
				if x != a[i] {
					t.Fatalf("%v: copy of %d: place %d is %g", l, n, i, x)
				}
			}
			if got := StreamTriad(l, dst, a, b); got != 12*n {
				t.Errorf("%v: triad of %d numbers moved %d bytes", l, n, got)
			}
			for i, x := range dst {
				if x != a[i]+3*b[i] {
					t.Fatalf("%v: triad of %d: place %d is %g", l, n, i, x)
				}
			}
		}
		for _, stride := range []int{0, 3, 4, 14, 62, 64, 80, 160, 2000} {
			want := 3 * (stride &^ 3)
			if got := GatherRows(l, make([]byte, 5*stride), stride, []uint32{4, 0, 2}); got != want {
				t.Errorf("%v: gathered %d bytes of rows of %d, want %d", l, got, stride, want)
			}
		}
	}
}
