package store

import (
	"math"
	"unsafe"
)

// adamFactors are the factors of a step of Adam, as the vector kernels read them.
type adamFactors struct {
	beta1, oneBeta1, beta2, oneBeta2 float64
	rate, scale, epsilon             float64
}

func newAdamFactors(rate, scale float64) *adamFactors {
	return &adamFactors{beta1, 1 - beta1, beta2, 1 - beta2, rate, scale, epsilon}
}

// adamRow makes the step of a row by a gradient: moments m and s, and rows x, are rounded when they are stored.
// Products are rounded before they are added, so that no compiler fuses them and every processor has the same bits.
func adamRow[F float32 | float64](x, m, s []F, g []float64, k *adamFactors) {
	done := 0
	if unsafe.Sizeof(F(0)) == 4 {
		done = adamVector(float32s(x), float32s(m), float32s(s), g, k)
	}
	for c := done; c < len(g); c++ {
		mean := float64(k.beta1*float64(m[c])) + float64(k.oneBeta1*g[c])
		square := float64(k.beta2*float64(s[c])) + float64(float64(k.oneBeta2*g[c])*g[c])
		m[c], s[c] = F(mean), F(square)
		root := math.Sqrt(float64(square*k.scale)) + k.epsilon
		x[c] = F(float64(x[c]) - float64(k.rate*mean)/root)
	}
}

// addRow adds a row of float32 numbers to a sum.
func addRow(sum []float64, g []float32) {
	for c := addVector(sum, g); c < len(sum); c++ {
		sum[c] += float64(g[c])
	}
}

// float32s are numbers of a type that is float32.
func float32s[F float32 | float64](s []F) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
