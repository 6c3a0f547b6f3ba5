package tensor

// HostBytes are the numbers of a matrix without gaps, as they go over a wire: the memory it
// lives in, where the host can see that. Where it cannot they are nil, and rows are packed
// into a staging buffer before they leave, and unpacked from one when they have come.
func (m Matrix) HostBytes() []byte {
	if m.Rows*m.Cols == 0 {
		return []byte{}
	}
	if !m.buf.host {
		return nil
	}
	return Memory(m)
}

// Dots are the sums of products of corresponding numbers, of each pair, for the host.
func Dots(dev Device, pairs ...[2]Matrix) []float64 {
	sums, host := dev.Scratch(F64, len(pairs), 1), make([]float64, len(pairs))
	for i, p := range pairs {
		dev.Dot(sums.Slice(i, i+1), p[0], p[1])
	}
	dev.Download(host, sums)
	dev.Free(sums)
	return host
}
