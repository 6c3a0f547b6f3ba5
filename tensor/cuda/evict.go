package cuda

import "starling/tensor"

var _ tensor.Evictor = (*Device)(nil)

// Evict copies a matrix to the host, beside what is computed (memory/evict.go).
func (d *Device) Evict(m Matrix, save func(bytes []byte) error) (bool, error) {
	return d.mem.Evict(m, save)
}

// Restore copies it back, to other memory.
func (d *Device) Restore(m Matrix, load func(bytes []byte) error) error {
	return d.mem.Restore(m, load)
}
