package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"starling/tensor"
)

// BenchmarkCrossEntropy reads rows that are listed at random, a share of all, and come from memory: what another matrix
// leaves of them in the caches is little. Gradients are apart, in place of the rows as in training, or none.
func BenchmarkCrossEntropy(b *testing.B) {
	const numbers = 25_600_000
	c := New(2)
	defer c.Close()
	from, to := c.New(F32, 1, numbers), c.New(F32, 1, numbers)
	for _, cols := range []int{7, 16, 40} {
		for _, typ := range []DType{F32, BF16} {
			r := rand.New(rand.NewPCG(1, 2))
			rows := numbers / cols
			x, dx, labels := c.New(typ, rows, cols), c.New(typ, rows, cols), make([]uint32, rows)
			for i := range labels {
				labels[i] = uint32(r.IntN(cols))
				setNumber(x, i, r.IntN(cols), r.NormFloat64())
			}
			for _, listed := range []int{1, 10, 25, 36, 50, 70} {
				var list []uint32
				for i := range rows {
					if r.IntN(100) < listed {
						list = append(list, uint32(i))
					}
				}
				for name, dst := range map[string]Matrix{"apart": dx, "place": x, "none": {}} {
					b.Run(fmt.Sprintf("cols=%d/%v/listed=%d/dst=%s", cols, typ, listed, name), func(b *testing.B) {
						for range b.N {
							b.StopTimer()
							c.Copy(to, from)
							b.StartTimer()
							c.crossEntropy(dst, x, tensor.Indices(c, labels), tensor.Indices(c, list), 1e-3)
						}
					})
				}
			}
			c.Free(x)
			c.Free(dx)
		}
	}
}
