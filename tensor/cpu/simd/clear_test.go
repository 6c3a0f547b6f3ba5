package simd

import (
	"bytes"
	"testing"
)

func TestClearNonTemporal(t *testing.T) {
	for level := Generic; level <= Supported(); level++ {
		for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 1000} {
			for from := range 70 {
				mem := bytes.Repeat([]byte{7}, from+n+70)
				want := bytes.Clone(mem)
				clear(want[from : from+n])
				ClearNonTemporal(level, mem[from:from+n])
				if !bytes.Equal(mem, want) {
					t.Fatalf("%v: %d bytes from %d on are not all that was zeroed", level, n, from)
				}
			}
		}
	}
}
