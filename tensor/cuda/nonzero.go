package cuda

import (
	"runtime"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cuda/memory"
)

func bytesAt(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// Rows without their zeros are packed by the host: how many bytes there are depends on the numbers, and the
// bytes are the host's in the end.

func (d *Device) packNonZero(dst []byte, src Matrix, mask []byte) int {
	h, p := memory.HostBytes(src)
	d.mem.MoveRows(src, p, false)
	if src.Type() == BF16 {
		return packNonZero[uint16](dst, h, mask)
	}
	return packNonZero[uint32](dst, h, mask)
}

// packNonZero writes the bits of rows, unless both sides have them, and the numbers whose bits are set.
func packNonZero[T uint16 | uint32](dst []byte, m Matrix, mask []byte) (n int) {
	words := tensor.BitWords(m.Cols)
	if mask == nil {
		n = tensor.BitBytes(m.Rows, m.Cols)
		mask = dst[:n]
		clear(mask)
		for i := range m.Rows {
			for j, x := range tensor.Row[T](m, i) {
				if x != 0 {
					mask[4*i*words+j/8] |= 1 << (j % 8)
				}
			}
		}
	}
	size := int(unsafe.Sizeof(T(0)))
	for i := range m.Rows {
		for j, x := range tensor.Row[T](m, i) {
			if mask[4*i*words+j/8]>>(j%8)&1 != 0 {
				for b := range size {
					dst[n+b] = byte(x >> (8 * b))
				}
				n += size
			}
		}
	}
	return n
}

func (d *Device) unpackNonZero(dst Matrix, src, mask []byte) {
	h, p := memory.HostBytes(dst)
	if mask == nil {
		n := tensor.BitBytes(dst.Rows, dst.Cols)
		mask, src = src[:n], src[n:]
	}
	if dst.Type() == BF16 {
		unpackNonZero[uint16](h, src, mask)
	} else {
		unpackNonZero[uint32](h, src, mask)
	}
	d.mem.MoveRows(dst, p, true)
	runtime.KeepAlive(h)
}

func unpackNonZero[T uint16 | uint32](m Matrix, src, mask []byte) {
	words, size := tensor.BitWords(m.Cols), int(unsafe.Sizeof(T(0)))
	for i := range m.Rows {
		row := tensor.Row[T](m, i)
		for j := range row {
			row[j] = 0
			if mask[4*i*words+j/8]>>(j%8)&1 == 0 {
				continue
			}
			for b := range size {
				row[j] |= T(src[b]) << (8 * b)
			}
			src = src[size:]
		}
	}
}
