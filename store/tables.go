package store

import (
	"fmt"
	"sync"

	"starling/graph"
	"starling/wire"
)

// Rows is a table of rows of equal length with a placement of its own, of which every worker
// keeps its range: rows of edges, or of vertices that change. It is pulled, and pushed to where
// it has Apply.
type Rows struct {
	Name    string
	Width   int       // bytes of a row
	Offsets []int64   // worker k keeps rows Offsets[k] to Offsets[k+1]-1
	Kind    wire.Kind // that its rows are counted as
	Data    []byte    // rows of this worker
	// Apply is given rows that a worker pushed, by number in Data. It is called for one worker at
	// a time.
	Apply func(rows []uint32, values []byte) error
	// PushWidth is the bytes of a row that is pushed.
	PushWidth int

	mu sync.RWMutex
}

// AddRows adds a table. All workers add the same tables in the same order, and pull rows of one only
// after all have added it.
func (s *Store) AddRows(r *Rows) Table {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	if s.tables = append(s.tables, r); int(added)+len(s.tables) > mostTables {
		panic("store: more tables than a request can name")
	}
	return added + Table(len(s.tables)-1)
}

// added is a table that AddRows added.
func (s *Store) added(t Table) (*Rows, error) {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	if t < added || int(t-added) >= len(s.tables) {
		return nil, fmt.Errorf("table %d is not known", t)
	}
	return s.tables[t-added], nil
}

// placement is which rows of a table each part has, and which are read in place.
func (s *Store) placement(t Table) (offsets []int64, here func(part int) bool) {
	if r, err := s.added(t); err == nil {
		return r.Offsets, s.isOwn
	}
	return s.Book.Offsets, s.rowsHere
}

// rowSource is the rows of a table that one owner has.
type rowSource struct {
	name   string
	owner  int
	first  uint32 // number of the first row
	count  uint32
	kind   wire.Kind // that they are counted as
	rows   []byte
	width  int             // of a row
	sparse *graph.Features // instead of rows
	lock   sync.Locker     // for reading
	// typed: only these runs of the owner's vertices have rows, one after the other.
	typed bool
	runs  []graph.Run
}

// noLock is for rows that never change.
type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// source is the rows of a table in a part that is here; features of a typed graph are of one type.
func (s *Store) source(q int, t Table, typ int) (*rowSource, error) {
	if t == Features && s.Book.Schema != nil {
		return s.here[q].typeSource(typ)
	}
	if t < added {
		return s.here[q].source(t)
	}
	r, err := s.added(t)
	if err != nil {
		return nil, err
	}
	return r.source(q), nil
}

func (r *Rows) source(owner int) *rowSource {
	first, end := r.Offsets[owner], r.Offsets[owner+1]
	return &rowSource{name: r.Name, owner: owner, first: uint32(first), count: uint32(end - first), kind: r.Kind,
		rows: r.Data, width: r.Width, lock: r.mu.RLocker()}
}

// rows are the rows of the part's vertices, of a table that never changes.
func (o *Owner) rows(name string) *rowSource {
	return &rowSource{name: name, owner: o.part.Meta.Part, first: o.first, count: uint32(o.part.Core()),
		kind: wire.Feature, lock: noLock{}}
}

// source is the part's features or labels.
func (o *Owner) source(t Table) (*rowSource, error) {
	out := o.rows("features")
	f, l := o.part.Features, o.part.Labels
	switch {
	case t == Features && f != nil && f.Kind() == graph.Sparse:
		out.sparse = f
	case t == Features && f != nil:
		out.rows = featureBytes(f)
	case t == Labels && l != nil:
		out.name, out.rows = "labels", labelBytes(l)
	default:
		return nil, fmt.Errorf("part %d has no rows of table %d", o.part.Meta.Part, t)
	}
	out.width = len(out.rows) / max(o.part.Core(), 1)
	return out, nil
}

func (r *rowSource) row(v uint32) []byte { return r.rows[int(v)*r.width : (int(v)+1)*r.width] }

// local turns numbers into rows of the source, and refuses rows of others.
func (r *rowSource) local(numbers []uint32) error {
	for i, v := range numbers {
		row, ok := r.at(v)
		if !ok {
			return fmt.Errorf("%s: row %d is not worker %d's; do all workers have parts of the same partition?",
				r.name, v, r.owner)
		}
		numbers[i] = row
	}
	return nil
}

// at is the row of a number; ok is false where the source does not have it.
func (r *rowSource) at(number uint32) (row uint32, ok bool) {
	if r.typed {
		return r.atType(number)
	}
	return number - r.first, number-r.first < r.count
}

// featureBytes and labelBytes are rows of equal length as bytes.
func featureBytes(f *graph.Features) []byte {
	if f.F32 != nil {
		return bytesOf(f.F32)
	}
	return bytesOf(f.BF16)
}

func labelBytes(l *graph.Labels) []byte {
	switch {
	case l.Multi != nil:
		return l.Multi
	case l.Values != nil:
		return bytesOf(l.Values)
	}
	return bytesOf(l.Class)
}

// rowBytes is the length of a row of features that are not sparse.
func rowBytes(f *graph.Features) int {
	if f.Kind() == graph.BFloat16 {
		return 2 * f.Cols
	}
	return 4 * f.Cols
}

func (s *Store) rowBytes() int { return s.rowBytesOf(0) }
