package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"starling/coflow"
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

// rowsOf are the rows of a table that a part has, which is here, how long one is and the number
// of the first.
func (s *Store) rowsOf(q int, t Table) (rows []byte, width int, first uint32, err error) {
	if r, err := s.added(t); err == nil {
		return r.Data, r.Width, uint32(r.Offsets[q]), nil
	}
	rows, width, err = s.here[q].table(t)
	return rows, width, s.here[q].first, err
}

// local turns numbers into rows of Data, and refuses those of other workers.
func (r *Rows) local(numbers []uint32, me int) error {
	first, n := uint32(r.Offsets[me]), uint32(r.Offsets[me+1]-r.Offsets[me])
	for i, v := range numbers {
		if v-first >= n {
			return fmt.Errorf("row %d of %s is not worker %d's; do all workers have parts of the same partition?", v,
				r.Name, me)
		}
		numbers[i] = v - first
	}
	return nil
}

// serveRows answers with rows of a table that was added.
func (s *Store) serveRows(t Table, numbers []uint32) (wire.Response, error) {
	r, err := s.added(t)
	if err == nil {
		err = r.local(numbers, s.Part.Meta.Part)
	}
	if err != nil {
		return wire.Response{}, err
	}
	body, release := s.buffer(r.Width * len(numbers))
	r.mu.RLock()
	for i, v := range numbers {
		copy(body[i*r.Width:(i+1)*r.Width], r.Data[int(v)*r.Width:(int(v)+1)*r.Width])
	}
	r.mu.RUnlock()
	return wire.Response{Kind: r.Kind, Body: body, Release: release}, nil
}

const pushService = "push rows"

// Push gives the owners of rows values for them, and returns when they have been applied. A
// number occurs once.
func (s *Store) Push(ctx context.Context, id coflow.ID, t Table, numbers []uint32, values []byte) error {
	r, err := s.added(t)
	if err != nil || len(numbers) == 0 {
		return err
	}
	var by split
	s.split(&by, r.Offsets, numbers)
	var calls []*wire.Reply
	err = s.remoteFirst(&by, s.isOwn, func(q int, places []uint32) error {
		most := max(1, (maxRequest-1)/(4+r.PushWidth))
		for some := range slices.Chunk(places, most) {
			request := append(make([]byte, 0, 1+len(some)*(4+r.PushWidth)), byte(t))
			request = r.appendPush(request, numbers, values, some)
			s.traffic[q].pushed.Add(int64(len(request)))
			calls = append(calls, s.end.Call(q, wire.Call{Service: pushService, Coflow: id, Kind: wire.Embedding,
				Request: request}))
		}
		return nil
	}, func(_ int, places []uint32) error {
		return s.applyPush(r, r.appendPush(nil, numbers, values, places))
	})
	for _, c := range calls {
		if _, failed := c.Wait(ctx); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// appendPush appends the numbers at places and then their values.
func (r *Rows) appendPush(b []byte, numbers []uint32, values []byte, places []uint32) []byte {
	for _, i := range places {
		b = binary.LittleEndian.AppendUint32(b, numbers[i])
	}
	for _, i := range places {
		b = append(b, values[int(i)*r.PushWidth:(int(i)+1)*r.PushWidth]...)
	}
	return b
}

// applyPush applies what appendPush wrote.
func (s *Store) applyPush(r *Rows, body []byte) error {
	if r.Apply == nil || len(body)%(4+r.PushWidth) != 0 {
		return fmt.Errorf("a push of %d bytes to %s", len(body), r.Name)
	}
	n := len(body) / (4 + r.PushWidth)
	numbers := numbersOf(body[:4*n])
	if err := r.local(numbers, s.Part.Meta.Part); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Apply(numbers, body[4*n:])
}

// servePush applies rows that a peer pushed.
func (s *Store) servePush(_ context.Context, q *wire.Request) (wire.Response, error) {
	if len(q.Body) == 0 {
		return wire.Response{}, errors.New("a push of 0 bytes")
	}
	r, err := s.added(Table(q.Body[0]))
	if err == nil {
		err = s.applyPush(r, q.Body[1:])
	}
	return wire.Response{Kind: wire.Control}, err
}
