package batch

import (
	"slices"

	"starling/store"
	"starling/tensor"
)

// Rows of a table of learnt rows go to a device and come back as the bytes that the table has, without a look at each
// number, where the device computes in host memory with numbers of that type.

// RowMemory is where a matrix's numbers are, if they are as a table of the device's type has them; nil: they are not.
func RowMemory(dev tensor.Device, m tensor.Matrix) []byte {
	if m.Type() != dev.Type() {
		return nil
	}
	return m.HostBytes()
}

// PutRows fills a matrix with rows of a table.
func PutRows(dev tensor.Device, m tensor.Matrix, of *store.Embeddings, rows []byte) {
	if to := RowMemory(dev, m); to != nil {
		copy(to, rows)
		return
	}
	dev.Upload(m, of.Numbers(rows))
}

// AppendRows appends a matrix's numbers as a table has them.
func AppendRows(b []byte, dev tensor.Device, m tensor.Matrix, of *store.Embeddings) []byte {
	if from := RowMemory(dev, m); from != nil {
		return append(b, from...)
	}
	numbers := make([]float64, m.Rows*m.Cols)
	dev.Download(numbers, m)
	return append(b, of.Bytes(numbers)...)
}

// resize is a list of n entries of any content, whose memory is reused.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
