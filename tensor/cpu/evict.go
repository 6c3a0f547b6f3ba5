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
	b.bytes = c.take(buffer.Bytes(), false)
	buffer.Move(unsafe.Pointer(&b.bytes[0]))
	return load(b.bytes[:m.Bytes()])
}

// Evict takes no part in what matrices hold, of which a dry run has nothing.
func (d *Dry) Evict(m Matrix, _ func([]byte) error) (bool, error) {
	return d.Device.Evict(m, func([]byte) error { return nil })
}

// Restore may be what makes a run too large.
func (d *Dry) Restore(m Matrix, _ func([]byte) error) error {
	if inUse, _ := d.Usage(); inUse+m.Bytes() > d.Most {
		panic(TooMuch(inUse + m.Bytes()))
	}
	return d.Device.Restore(m, func([]byte) error { return nil })
}
