package store

import (
	"sort"

	"starling/graph"
	"starling/partition"
	"starling/wire"
)

// Learnt rows of the types of a typed graph that have no features. Vertices of other types have none, so that rows have
// numbers of their own: in the order of their vertices' numbers, and each owner has those of its vertices.

// TypeRows numbers the rows of types without features.
type TypeRows struct {
	runs  []partition.TypeRun
	row   []uint32 // of a run's first vertex
	has   []bool   // by type
	count uint32
}

// NewTypeRows numbers them for vertices whose types are in runs.
func NewTypeRows(s *graph.Schema, runs []partition.TypeRun, nodes int64) *TypeRows {
	r := &TypeRows{runs: runs}
	for t := range s.Types {
		r.has = append(r.has, s.Types[t].Features == nil)
	}
	for i, run := range runs {
		end := nodes
		if i+1 < len(runs) {
			end = runs[i+1].First
		}
		if r.row = append(r.row, r.count); r.has[run.Type] {
			r.count += uint32(end - run.First)
		}
	}
	return r
}

// Has reports whether a type has rows.
func (r *TypeRows) Has(typ int) bool { return r.has[typ] }

// Of is the row of a vertex; ok is false where its type has none.
func (r *TypeRows) Of(v uint32) (row uint32, ok bool) {
	i := sort.Search(len(r.runs)-1, func(i int) bool { return int64(v) < r.runs[i+1].First })
	return r.row[i] + v - uint32(r.runs[i].First), r.has[r.runs[i].Type]
}

// offsets are where the rows of each part begin.
func (r *TypeRows) offsets(parts []int64) (out []int64) {
	for _, first := range parts {
		i := sort.Search(len(r.runs), func(i int) bool { return r.runs[i].First >= first })
		if i == len(r.runs) {
			out = append(out, int64(r.count))
		} else {
			out = append(out, int64(r.row[i]))
		}
	}
	return out
}

// AddTypeRows adds a table of them, which are zero. All workers call it.
func (s *Store) AddTypeRows(r *TypeRows, dim, size int) (*Embeddings, error) {
	offsets := r.offsets(s.Book.Offsets)
	me := s.Part.Meta.Part
	e := newEmbeddings(int(offsets[me+1]-offsets[me]), dim, size)
	e.s, e.rows.Offsets = s, offsets
	return e, s.addEmbeddings(e)
}

// NewEmbeddings is a table of rows that are all here, which are zero.
func NewEmbeddings(rows *TypeRows, dim, size int) *Embeddings {
	return newEmbeddings(int(rows.count), dim, size)
}

func newEmbeddings(rows, dim, size int) *Embeddings {
	e := &Embeddings{Dim: dim, Size: size}
	e.mu.rounds = map[uint32]*round{}
	e.rows = &Rows{Name: "embeddings", Width: dim * size, PushWidth: (dim + 1) * size, Kind: wire.Embedding,
		Data: tableOf(rows, dim, size), Apply: e.applyNow}
	for i := range e.moments {
		e.moments[i] = tableOf(rows, dim, size)
	}
	return e
}

// tableOf is memory of zeros, which begins where a number may.
func tableOf(rows, dim, size int) []byte {
	n := rows * dim * size
	return bytesOf(make([]uint64, (n+7)/8))[:n]
}

// addEmbeddings serves a table.
func (s *Store) addEmbeddings(e *Embeddings) error {
	e.table = s.AddRows(e.rows)
	return s.serve(wire.Service{Name: stepService, MaxRequest: min(stepHead+len(e.rows.Data)/e.rows.Width*(4+e.rows.Width),
		maxResponse), MaxResponse: maxResponse, Handlers: max(2, s.end.Size())}, e.serveStep)
}

// Read copies rows of a table that are all here.
func (e *Embeddings) Read(to []byte, numbers []uint32) {
	for i, v := range numbers {
		copy(to[i*e.rows.Width:(i+1)*e.rows.Width], e.rows.Data[int(v)*e.rows.Width:])
	}
}

// Update is a step of rows that are all here. A number occurs once.
func (e *Embeddings) Update(lr float64, numbers []uint32, gradients []byte) {
	e.update([]*stepPush{{rate: lr, rows: numbers, values: gradients}})
}
