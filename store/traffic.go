package store

import (
	"math"
	"slices"
	"sync/atomic"

	"starling/graph"
	"starling/sample"
	"starling/wire"
)

// Traffic is bytes between this worker and the owner of a part.
type Traffic struct {
	Requests, Edges, Rows int64 // Requests are sent, the others received
	// Embeddings are rows of them that were received, and those that were pushed.
	Embeddings, Pushed int64
}

// Add adds another's.
func (t *Traffic) Add(o Traffic) {
	t.Requests, t.Edges, t.Rows = t.Requests+o.Requests, t.Edges+o.Edges, t.Rows+o.Rows
	t.Embeddings, t.Pushed = t.Embeddings+o.Embeddings, t.Pushed+o.Pushed
}

// Since is what was sent and received after before.
func (t Traffic) Since(before Traffic) Traffic {
	return Traffic{t.Requests - before.Requests, t.Edges - before.Edges, t.Rows - before.Rows,
		t.Embeddings - before.Embeddings, t.Pushed - before.Pushed}
}

// traffic is the same, counted while others ask too.
type traffic struct{ requests, edges, rows, embeddings, pushed atomic.Int64 }

// Traffic is what was sent and received so far, by owner.
func (s *Store) Traffic() []Traffic {
	out := make([]Traffic, len(s.traffic))
	for q := range out {
		t := &s.traffic[q]
		out[q] = Traffic{t.requests.Load(), t.edges.Load(), t.rows.Load(), t.embeddings.Load(), t.pushed.Load()}
	}
	return out
}

// receivedOf is the counter of a table's rows, by owner.
func (s *Store) receivedOf(t Table) func(part int) *atomic.Int64 {
	r, err := s.added(t)
	switch {
	case err != nil || r.Kind == wire.Feature:
		return func(part int) *atomic.Int64 { return &s.traffic[part].rows }
	case r.Kind == wire.Embedding:
		return func(part int) *atomic.Int64 { return &s.traffic[part].embeddings }
	}
	return nil
}

// Drawn is what was sent and received, by owner, for the edges drawn since it was last called.
func (m *Sampler) Drawn() []Traffic      { return m.draws.drawn() }
func (m *LayerSampler) Drawn() []Traffic { return m.draws.drawn() }

// Traffic is what a batch, which the sampler has just drawn, costs by owner: what was sent
// and received for its edges, and what pulling its rows will take as the cache is now.
func (m *Sampler) Traffic(b *sample.Batch) []Traffic      { return m.draws.traffic(b) }
func (m *LayerSampler) Traffic(b *sample.Batch) []Traffic { return m.draws.traffic(b) }

// Drawn and Traffic are the same of subgraphs, whose chunks draw.
func (m *SubgraphSampler) Drawn() []Traffic { return drawnBy(&m.draws, m.chunks) }

func (m *SubgraphSampler) Traffic(b *sample.Batch) []Traffic {
	out := m.Drawn()
	m.draws.s.AddFeatures(out, b.Vertices)
	return out
}

func drawnBy(w *draws, chunks []*Chunk) []Traffic {
	out := w.drawn()
	for _, x := range chunks {
		for q, t := range x.draws.drawn() {
			out[q].Add(t)
		}
	}
	return out
}

func (w *draws) drawn() []Traffic {
	out := make([]Traffic, len(w.s.here))
	for q := range w.sent {
		out[q].Requests, out[q].Edges = w.sent[q], w.received[q]
		w.sent[q], w.received[q] = 0, 0
	}
	return out
}

func (w *draws) traffic(b *sample.Batch) []Traffic {
	out := w.drawn()
	w.s.AddFeatures(out, b.Vertices)
	return out
}

// AddFeatures adds what pulling rows of features costs, by owner, as the cache is now.
func (s *Store) AddFeatures(to []Traffic, numbers []uint32) {
	if s.Book.Schema != nil {
		for typ, list := range s.byType(nil, numbers) {
			s.addFeatures(to, typ, list)
		}
		return
	}
	if f := s.Part.Features; f == nil || f.Cols == 0 {
		return
	}
	s.addFeatures(to, 0, numbers)
}

// addFeatures is the same for vertices of one type.
func (s *Store) addFeatures(to []Traffic, typ int, numbers []uint32) {
	if s.rowBytesOf(typ) == 0 {
		return
	}
	var by split
	s.split(&by, s.Book.Offsets, numbers)
	for q := range to {
		if s.here[q] == nil {
			to[q].addRows(s, typ, numbers, by.places[q])
		}
	}
}

func (t *Traffic) addRows(s *Store, typ int, numbers, places []uint32) {
	n := int64(len(places))
	if c, ok := s.cached(typ).(*static); ok {
		n -= int64(countIf(places, func(i uint32) bool { _, ok := c.slot.find(numbers[i]); return ok }))
	}
	if s.fetchShare != nil && len(places) > 0 {
		n = int64(math.Round(float64(n) * s.fetchShare[typ][s.Book.Owner(numbers[places[0]])]))
	}
	t.addPulls(s, typ, n)
}

// addPulls adds what pulling n rows of features costs.
func (t *Traffic) addPulls(s *Store, typ int, n int64) {
	row := s.rowBytesOf(typ)
	if n == 0 || row == 0 {
		return
	}
	t.Requests += pullRequests(n, int64(row))
	if s.Book.Schema != nil {
		t.Rows += n * int64(s.packedOf(typ).rowBytes(row))
		return
	}
	f, kept := s.Part.Features, s.Part.Features.Cols
	if s.planned > 0 {
		kept = s.planned
		t.Requests += int64(4 * ((f.Cols + 31) / 32)) // bits of columns
	}
	width := int64(s.packed.rowBytes(row * kept / max(f.Cols, 1)))
	if f.Kind() == graph.Sparse {
		width = 4 + 8*f.Indptr[f.Rows]/int64(max(f.Rows, 1))*int64(kept)/int64(max(f.Cols, 1))
	}
	t.Rows += n * width
}

// AddLabels adds what pulling labels costs, by owner.
func (s *Store) AddLabels(to []Traffic, numbers []uint32) {
	l := s.Part.Labels
	if l == nil {
		return
	}
	width := int64(len(labelBytes(l)) / max(s.Part.Core(), 1))
	s.eachRemote(Labels, numbers, func(q int, n int64) {
		to[q].Requests += pullRequests(n, width)
		to[q].Rows += n * width
	})
}

// AddPull adds what pulling rows costs, by owner.
func (e *Embeddings) AddPull(to []Traffic, numbers []uint32) {
	width := int64(e.rows.Width)
	e.s.eachRemote(e.table, numbers, func(q int, n int64) {
		to[q].Requests += pullRequests(n, width)
		to[q].Embeddings += n * width
	})
}

// AddAhead adds what rows take that come ahead, by owner.
func (e *Embeddings) AddAhead(to []Traffic, numbers []uint32) {
	for q := range to { // every owner learns what each worker needs
		if !e.s.isOwn(q) {
			to[q].Requests += noteHead
		}
	}
	e.s.eachRemote(e.table, numbers, func(q int, n int64) {
		to[q].Requests += 4*n + aheadHead
		to[q].Embeddings += (n+7)/8 + n*int64(e.rows.Width)
	})
}

// AddPush adds what pushing the gradients of rows costs, by owner.
func (e *Embeddings) AddPush(to []Traffic, numbers []uint32, async bool) {
	if !async { // owners wait for all workers, also for those without a row of theirs
		for q := range to {
			if !e.s.isOwn(q) {
				to[q].Pushed += stepHead
			}
		}
	}
	pushed := int64(4 + e.rows.Width)
	if async {
		pushed = int64(4 + e.rows.PushWidth)
	}
	e.s.eachRemote(e.table, numbers, func(q int, n int64) {
		to[q].Pushed += n * pushed
		if async {
			most := int64(e.rows.mostPushed())
			to[q].Pushed += (n + most - 1) / most
		}
	})
}

// eachRemote calls f with how many rows of a table are asked of each owner.
func (s *Store) eachRemote(t Table, numbers []uint32, f func(q int, n int64)) {
	var by split
	offsets, here := s.placement(t)
	s.split(&by, offsets, numbers)
	for q, places := range by.places {
		if !here(q) && len(places) > 0 {
			f(q, int64(len(places)))
		}
	}
}

// pullRequests is the bytes of the requests for n rows.
func pullRequests(n, width int64) int64 {
	most := int64(mostRows(int(width)))
	return 4*n + (n+most-1)/most
}

func (s *Store) cached(typ int) Cache {
	if c := s.cacheOf(typ); c != nil {
		return c.Cache
	}
	return nil
}

func countIf(places []uint32, f func(uint32) bool) int {
	return len(places) - len(slices.DeleteFunc(slices.Clone(places), f))
}
