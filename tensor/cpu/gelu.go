package cpu

import (
	"math"

	"starling/tensor"
)

// GELU is x·Φ(x), with the normal distribution's Φ of Abramowitz and Stegun, 7.1.26: within 1.5e-7 of it.
func (c *Device) GELU(dst, src Matrix) {
	tensor.NeedSameShape("GELU", dst, src)
	noF64("GELU", dst, src)
	c.byNumber(dst, src, src, func(x, _ float32) float32 {
		phi, _ := normal(x)
		return x * phi
	})
}

func (c *Device) GELUGrad(dx, dy, x Matrix) {
	tensor.NeedSameShape("GELUGrad", dx, dy, x)
	noF64("GELUGrad", dx, dy, x)
	c.byNumber(dx, x, dy, func(x, dy float32) float32 {
		phi, density := normal(x)
		return dy * (phi + x*density)
	})
}

// byNumber makes every number of dst of those of x and y.
func (c *Device) byNumber(dst, x, y Matrix, f func(x, y float32) float32) {
	single := dst.Type() == F32 && x.Type() == F32 && y.Type() == F32
	c.byRows([]Matrix{dst, x, y}, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if !single {
				for j := range dst.Cols {
					setNumber(dst, i, j, float64(f(float32(numberAt(x, i, j)), float32(numberAt(y, i, j)))))
				}
				continue
			}
			d, a, b := rowOf(dst, i), rowOf(x, i), rowOf(y, i)
			a, b = a[:len(d)], b[:len(d)]
			for j := range d {
				d[j] = f(a[j], b[j])
			}
		}
	})
}

// normal is Φ(x) and φ(x) of the normal distribution.
func normal(x float32) (phi, density float32) {
	z := x
	if z < 0 {
		z = -z
	}
	e := expNegative(-0.5 * z * z)
	t := 1 / (1 + 0.3275911*0.70710678*z)
	tail := 0.5 * e * t * (0.254829592 + t*(-0.284496736+t*(1.421413741+t*(-1.453152027+t*1.061405429))))
	if phi = 1 - tail; x < 0 {
		phi = tail
	}
	return phi, 0.3989422804 * e
}

// expNegative is e^x for x <= 0, zero where that is below the smallest normal number.
func expNegative(x float32) float32 {
	if !(x > -87) {
		if x != x {
			return x
		}
		return 0
	}
	n := float32(int32(x*math.Log2E - 0.5))
	r := x - n*0.693145751953125 - n*1.428606765330187e-06
	p := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r*(1./720))))))
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}
