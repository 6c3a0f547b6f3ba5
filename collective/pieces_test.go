package collective

import (
	"testing"

	"starling/coflow"
	"starling/wire"
)

// TestManyPieces: data of more pieces than an algorithm asks for ahead, without space for early ones.
func TestManyPieces(t *testing.T) {
	const n, count = 4, 4*9*pieceBytes/4 + 5
	comms := group(t, n, wire.Options{UnexpectedLimit: 1})
	for i, alg := range []Algorithm{Ring, Direct, Doubling, Tree} {
		x := make([][]float32, n)
		for r := range x {
			x[r] = make([]float32, count)
			for j := range x[r] {
				x[r][j] = float32(j%1000 + r)
			}
		}
		err := flock(comms, func(c *Comm) error {
			return c.AllReduce(t.Context(), coflow.ID{Layer: int16(i)}, wire.Parameter, x[c.Rank()], alg)
		})
		if err != nil {
			t.Fatalf("%v: %v", alg, err)
		}
		for r := range x {
			for j, got := range x[r] {
				if want := float32(n*(j%1000) + n*(n-1)/2); got != want {
					t.Fatalf("%v: number %d of rank %d is %v, expected %v", alg, j, r, got, want)
				}
			}
		}
	}
}
