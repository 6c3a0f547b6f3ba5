package train

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/coflow"
	"starling/collective"
	"starling/graph"
	"starling/nn"
	"starling/wire"
)

// Learnt rows are each worker's own while it trains. When the run ends, those of the best epoch go to rank 0 once,
// which adds them to the weights, by vertex: row i is of vertex i of its type, however the graph was cut.

// learntTypes are the numbers of the types whose rows are learnt.
func (s *Site) learntTypes() (list []int) {
	if s.Part.Book.Schema == nil {
		return nil
	}
	for t := range s.Part.Book.Schema.Types {
		if s.Part.Book.Schema.Types[t].Features == nil {
			list = append(list, t)
		}
	}
	return list
}

// learntRowBytes is the size of a learnt row.
func (s *Site) learntRowBytes() int { return s.Opt.Model.Hidden * s.Dev.Type().Size() }

// planLearnt adds what gatherLearnt sends.
func (s *Site) planLearnt(p *wire.Plan) {
	types, rows := s.learntTypes(), 0
	if len(types) == 0 {
		return
	}
	s.planSums(p.Prepare, s.End.Size()) // how many rows each has
	for _, t := range types {
		rows += len(verticesOf(s.Part.CoreTypes(), t, s.Part.IDs))
	}
	if s.End.Rank() > 0 && rows > 0 {
		to := wire.Class{Kind: wire.Embedding, Layer: -1, Link: s.End.Link(0)}
		p.Prepare.Add(to, int64(rows*(4+s.learntRowBytes())))
	}
}

// gatherLearnt adds the learnt rows of all workers to the best weights of rank 0. A worker sends the ids of its
// vertices, and then their rows, each in the order of the types.
func (s *Site) gatherLearnt(f *Loop, r *Result) error {
	out, in := make([][]byte, s.End.Size()), make([][]byte, s.End.Size())
	var numbers []byte
	best := f.Learnt.Rows(f.Dev)
	if best == nil { // of a dry run
		return nil
	}
	for i, t := range s.learntTypes() {
		for _, v := range verticesOf(s.Part.CoreTypes(), t, s.Part.IDs) {
			out[0] = binary.LittleEndian.AppendUint32(out[0], v)
		}
		numbers = appendNumbers(numbers, best[i].Numbers(), s.Dev.Type().Size())
	}
	out[0] = append(out[0], numbers...)
	mine := len(out[0]) / (4 + s.learntRowBytes())
	counts := make([]float64, s.End.Size())
	counts[s.End.Rank()] = float64(mine)
	if err := f.AllReduce(len(r.Loss), 0, counts); err != nil {
		return err
	}
	if s.End.Rank() == 0 {
		for q := range in {
			in[q] = make([]byte, int(counts[q])*(4+s.learntRowBytes()))
		}
	}
	id := coflow.ID{Epoch: uint32(len(r.Loss)), Batch: 1<<30 + 1, Layer: -1, Type: coflow.Bulk}
	if err := collective.New(s.End).AllToAll(s.Ctx, id, wire.Embedding, out, in); err != nil || s.End.Rank() > 0 {
		return err
	}
	return s.joinLearnt(r, best, in)
}

// joinLearnt puts the rows that all workers sent in the order of their types.
func (s *Site) joinLearnt(r *Result, best []nn.Tensor, in [][]byte) error {
	if r.Best == nil {
		return nil
	}
	schema, wide, size := s.Part.Book.Schema, s.Opt.Model.Hidden, s.Dev.Type().Size()
	tables, types := map[int]*nn.Tensor{}, s.learntTypes()
	for i, t := range types {
		n := int(schema.Types[t].Count)
		tables[t] = &nn.Tensor{Name: best[i].Name, Shape: []int{n, wide}, F64: size == 8, Data: make([]float64, n*wide)}
	}
	for q, b := range in {
		n := len(b) / (4 + s.learntRowBytes())
		for i := range n {
			v := binary.LittleEndian.Uint32(b[4*i:])
			t, row, ok := placeOf(schema, v)
			if !ok || tables[t] == nil {
				return fmt.Errorf("worker %d has a learnt row of vertex %d, which has none", q, v)
			}
			at := 4*n + i*s.learntRowBytes()
			readNumbers(tables[t].Data[row*wide:(row+1)*wide], b[at:], size)
		}
	}
	for _, t := range types {
		r.Best = append(slices.Clip(r.Best), *tables[t])
	}
	return nil
}

// placeOf is the type of a vertex, and its row there.
func placeOf(s *graph.Schema, v uint32) (t, row int, ok bool) {
	if t = s.TypeOf(v); t >= len(s.Types) {
		return 0, 0, false
	}
	return t, int(int64(v) - s.Types[t].First), true
}

// appendNumbers appends numbers of 4 or 8 bytes.
func appendNumbers(b []byte, list []float64, size int) []byte {
	for _, x := range list {
		if size == 8 {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		}
	}
	return b
}

// readNumbers is the inverse of appendNumbers.
func readNumbers(to []float64, b []byte, size int) {
	for i := range to {
		if size == 8 {
			to[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		} else {
			to[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
	}
}
