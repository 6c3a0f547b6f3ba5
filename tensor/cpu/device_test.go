package cpu_test

import (
	"math"
	"testing"

	"starling/internal/testseed"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/cpu/simd"
	"starling/tensor/devicetest"
)

// TestDevice: every operation, at every instruction set this machine has, to the same bits
// with any number of threads.
func TestDevice(t *testing.T) {
	seed := testseed.New(t)
	for level := simd.Generic; level <= simd.Supported(); level++ {
		t.Run(level.String(), func(t *testing.T) {
			var first []float64
			counts := []int{2}
			if level == simd.AVX2 || level == simd.Supported() {
				counts = []int{1, 3}
			}
			for i, threads := range counts {
				got := devicetest.Results(t, seed, func() tensor.Device {
					return cpu.NewWith(cpu.Options{Threads: threads, Level: level})
				})
				if i == 0 {
					first = got
				}
				sameBits(t, threads, got, first)
			}
		})
	}
}

func sameBits(t *testing.T, threads int, got, first []float64) {
	if t.Failed() {
		return
	}
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(first[i]) {
			t.Fatalf("result %d is %g with %d threads, %g with one", i, got[i], threads, first[i])
		}
	}
}
