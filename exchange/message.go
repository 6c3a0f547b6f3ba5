package exchange

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Vertex is what is known of a vertex that others own.
type Vertex struct {
	ID        uint32  // in the dataset
	Degree    uint32  // in-edges in the whole graph
	GCNDegree float64 // the same by weight and without self-loops
}

// VertexBytes is the length of a vertex in a message.
const VertexBytes = 16

// Append writes a vertex to a message.
func (v Vertex) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, v.ID)
	b = binary.LittleEndian.AppendUint32(b, v.Degree)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.GCNDegree))
}

// Vertex is a local vertex, core or halo.
func (w *Worker) Vertex(local uint32) Vertex {
	return Vertex{w.Part.IDs[local], w.Part.Degrees[local], w.Part.GCNDegree(local)}
}

// Vertex is the next vertex of a message.
func (r *Reader) Vertex() Vertex {
	id, degree := r.Number(), r.Number()
	if len(r.b) < 8 {
		r.short = true
		return Vertex{ID: id, Degree: degree}
	}
	out := Vertex{id, degree, math.Float64frombits(binary.LittleEndian.Uint64(r.b))}
	r.b = r.b[8:]
	return out
}

// Reader takes numbers off bytes; short is set once there were too few, and odd is what else is wrong.
type Reader struct {
	b     []byte
	short bool
	odd   error
}

// Below checks numbers, of which there are as many as the limit says.
func (r *Reader) Below(what string, limit int64, list ...uint32) {
	for _, v := range list {
		if int64(v) >= limit && r.odd == nil {
			r.odd = fmt.Errorf("%s %d of %d", what, v, limit)
		}
	}
}

// Number is the next number.
func (r *Reader) Number() uint32 {
	if len(r.b) < 4 {
		r.short = true
		return 0
	}
	x := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return x
}

// NewReader reads a message.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Numbers is a message of numbers.
func Numbers(b []byte) []uint32 { return take[uint32](&Reader{b: b}, len(b)/4) }

// take is the next n numbers, zeros if there are fewer: callers check short.
func take[T uint16 | uint32 | uint64 | float32 | float64](r *Reader, n int) []T {
	size := binary.Size(*new(T))
	if n > len(r.b)/size {
		r.short = true
		return make([]T, min(n, 1))
	}
	out := make([]T, n)
	binary.Decode(r.b, binary.LittleEndian, out)
	r.b = r.b[n*size:]
	return out
}

// relations are the relations of a row's n edges, of which there are some: they do not fall.
func (r *Reader) relations(n, of int) []uint16 {
	list := take[uint16](r, n)
	for i, rel := range list {
		if (int(rel) >= of || i > 0 && rel < list[i-1]) && r.odd == nil {
			r.odd = fmt.Errorf("relation %d out of order, or of %d", rel, of)
		}
	}
	return list
}

// Numbers, Floats and Doubles are the next n numbers of a message.
func (r *Reader) Numbers(n int) []uint32  { return take[uint32](r, n) }
func (r *Reader) Floats(n int) []float32  { return take[float32](r, n) }
func (r *Reader) Doubles(n int) []float64 { return take[float64](r, n) }

// Float is the next number.
func (r *Reader) Float() float32 { return take[float32](r, 1)[0] }

// Short reports whether there was too little.
func (r *Reader) Short() bool { return r.short }

// Err is what was wrong with a message.
func (r *Reader) Err() error {
	if r.short {
		return fmt.Errorf("fewer bytes than its lists take")
	}
	return r.odd
}
