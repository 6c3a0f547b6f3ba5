//go:build !amd64

package store

func adamVector(_, _, _ []float32, _ []float64, _ *adamFactors) int { return 0 }

func addVector([]float64, []float32) int { return 0 }
