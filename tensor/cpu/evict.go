package cpu

import (
	"unsafe"

	"starling/tensor"
)

var _ tensor.Evictor = (*Device)(nil)

// Evict gives a matrix's block back to the arena; its buffer points nowhere until Restore.
func (c *Device) Evict(m Matrix, save func(bytes []byte) error) (bool, error) {
	if m.Rows*m.Cols == 0 {
		return false, nil
	}
	buffer := tensor.BufferOf(m)
	b, ok := buffer.Owner().(*block)
	if !ok || b.bytes == nil || tensor.Offset(m) != 0 {
		return false, nil
	}
	if err := save(b.bytes[:m.Bytes()]); err != nil {
		return false, err
	}
	c.give(b.bytes)
	b.bytes = nil
	buffer.Move(nil)
	return true, nil
}

// Restore takes another block.
func (c *Device) Restore(m Matrix, load func(bytes []byte) error) error {
	buffer := tensor.BufferOf(m)
	b, ok := buffer.Owner().(*block)
	if !ok || b.bytes != nil {
		panic("tensor: Restore of a matrix that was not evicted")
	}
	bytes, err := c.take(buffer.Bytes(), false)
	if err != nil {
		return err
	}
	b.bytes = bytes
	buffer.Move(unsafe.Pointer(&b.bytes[0]))
	return load(b.bytes[:m.Bytes()])
}
