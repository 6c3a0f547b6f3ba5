package ref

import (
	"math"

	"starling/tensor"
)

var _ tensor.Evictor = (*Device)(nil)

// Evict fills what has left with NaN, so that a use of it is seen at once.
func (r *Device) Evict(m Matrix, save func(bytes []byte) error) (bool, error) {
	if m.Rows*m.Cols == 0 || m.Type() != F64 || tensor.Offset(m) != 0 {
		return false, nil
	}
	if err := save(tensor.Memory(m)); err != nil {
		return false, err
	}
	for i := range m.Rows {
		for j := range m.Cols {
			rowOf(m, i)[j] = math.NaN()
		}
	}
	r.inUse.Add(-m.Bytes())
	return true, nil
}

// Restore fills the matrix again.
func (r *Device) Restore(m Matrix, load func(bytes []byte) error) error {
	r.peak.Store(max(r.peak.Load(), r.inUse.Add(m.Bytes())))
	return load(tensor.Memory(m))
}
