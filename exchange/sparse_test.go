package exchange

import (
	"slices"
	"testing"

	"starling/tensor"
	"starling/train/traintest"
)

// FuzzSparseRows: whatever a peer sends is rows that make the same message again, or an error.
func FuzzSparseRows(f *testing.F) {
	f.Add([]byte{}, 1, 1)
	f.Add([]byte{5, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 3)
	f.Add(make([]byte, 16), 2, 33)
	dev := traintest.Single()
	f.Fuzz(func(t *testing.T, message []byte, rows, cols int) {
		if rows < 1 || cols < 1 || rows > 100 || cols > 100 || len(message) > rows*(cols+3)*8 {
			return
		}
		x := &Transfer{rows: NewRows(&Worker{Dev: dev}), sparse: &sparse{}, In: dev.New(tensor.F32, rows, cols)}
		x.Out = x.In
		defer dev.Free(x.In)
		n, err := x.bitsIn(message, rows)
		if err != nil {
			return
		}
		bits := slices.Clone(message[:n]) // where numbers begin at words, as in the wire's buffers
		dev.Unpack(x.In, slices.Clone(message[n:]), tensor.Packing{Form: tensor.PackNonZero, Mask: bits})
		again := make([]byte, rows*x.sparse.most(tensor.F32, cols))
		k := dev.Pack(again[n:], x.In, tensor.Packing{Form: tensor.PackNonZero, Mask: bits})
		if copy(again, bits); !slices.Equal(again[:n+k], message) {
			t.Errorf("%v became %v", message, again[:n+k])
		}
	})
}
