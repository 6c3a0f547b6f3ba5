package store

import "golang.org/x/sys/cpu"

var vectors = cpu.X86.HasAVX2

// adamVector makes the step of the first numbers of a row, and returns how many those are.
func adamVector(x, m, s []float32, g []float64, k *adamFactors) int {
	n := len(g) &^ 3
	if !vectors || n == 0 {
		return 0
	}
	_, _, _ = x[n-1], m[n-1], s[n-1]
	adamAVX2(&x[0], &m[0], &s[0], &g[0], n, k)
	return n
}

// addVector adds the first numbers, and returns how many those are.
func addVector(sum []float64, g []float32) int {
	n := len(sum) &^ 3
	if !vectors || n == 0 {
		return 0
	}
	_ = g[n-1]
	addAVX2(&sum[0], &g[0], n)
	return n
}

//go:noescape
func adamAVX2(x, m, s *float32, grad *float64, n int, k *adamFactors)

//go:noescape
func addAVX2(sum *float64, grad *float32, n int)
