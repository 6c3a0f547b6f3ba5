package tensor

import "testing"

// TestCountBits: a bit beyond the last column is noticed, in any row.
func TestCountBits(t *testing.T) {
	for _, cols := range []int{1, 31, 32, 33, 64, 100} {
		bits := make([]byte, BitBytes(3, cols))
		for i := range bits {
			for bit := range 8 {
				clear(bits)
				bits[i] = 1 << bit
				column := i%BitBytes(1, cols)*8 + bit
				if n, ok := CountBits(bits, cols); ok != (column < cols) || ok && n != 1 {
					t.Errorf("%d columns, bit %d of row %d: %d, %v", cols, column, i/BitBytes(1, cols), n, ok)
				}
			}
		}
	}
}
