package store

import (
	"encoding/binary"
	"fmt"
	"slices"

	"starling/graph"
	"starling/partition"
	"starling/sample"
)

// Draws of a typed graph: a request may have a fanout for every relation, and a reply has the relation of every edge. A
// byte for each is less than what tells an edge's row apart by relation, which would take a count for each of the
// relations that lead to it. Types of vertices do not travel: both sides know them by number.

// typedBook is the book of a typed graph; nil: the graph has no types.
func (s *Store) typedBook() *partition.Book {
	if s.Book.Schema == nil {
		return nil
	}
	return s.Book
}

// relations is how many the graph has.
func (s *Store) relations() int {
	if s.Book.Schema == nil {
		return 0
	}
	return len(s.Book.Schema.Relations)
}

// relationBytes is what the relation of an edge takes in a reply.
func (s *Store) relationBytes() int { return relationBytes(s.relations()) }

func relationBytes(relations int) int {
	if relations > 1<<8 {
		return 2
	}
	return 1
}

func appendRelations(b []byte, list []uint16, each int) []byte {
	for _, r := range list {
		if each == 1 {
			b = append(b, byte(r))
		} else {
			b = binary.LittleEndian.AppendUint16(b, r)
		}
	}
	return b
}

// relations are the next n, of a graph that has some.
func (r *reader) relations(n, relations int) []uint16 {
	if relationBytes(relations) == 2 {
		return listOf[uint16](r.take(n, 2))
	}
	list := r.take(n, 1)
	out := make([]uint16, len(list))
	for i, x := range list {
		out[i] = uint16(x)
	}
	return out
}

// fanoutsFrom reads a fanout for each relation; 0: it is the hop's for all.
func fanoutsFrom(r *reader, relations int) ([]int, error) {
	out := make([]int, 0, relations)
	for i, f := range r.counts(relations) {
		if f < 0 && f != sample.All {
			return nil, fmt.Errorf("a fanout of %d for relation %d", f, i)
		}
		out = append(out, int(f))
	}
	if relations == 0 {
		return nil, fmt.Errorf("fanouts of relations, which the graph does not have")
	}
	return out, nil
}

// allFanouts bounds the edges that a vertex draws: the fanouts of all relations into its type, which may be any.
func (q *query) allFanouts(s *graph.Schema) int64 {
	if s == nil {
		return int64(q.fanout)
	}
	most, sum := int64(0), make([]int64, len(s.Types))
	for r := range s.Relations {
		f := q.fanout
		if r < len(q.fanouts) && q.fanouts[r] != 0 {
			f = q.fanouts[r]
		}
		if f == sample.All {
			return sample.All
		}
		to := s.Relations[r].Target
		sum[to] += int64(f)
		most = max(most, sum[to])
	}
	return most
}

// leaveDegrees takes degrees out of a reply: layers by relation count the edges that were drawn.
func (d *drawn) leaveDegrees() {
	d.all, d.noLoops, d.ownNoLoops = d.all[:0], d.noLoops[:0], d.ownNoLoops[:0]
}

// fanoutsOf are the fanouts of a hop for all relations; nil: none has its own.
func (s *Store) fanoutsOf(byHop [][]int, hop int) []int {
	if hop >= len(byHop) || s.Book.Schema == nil || !slices.ContainsFunc(byHop[hop], func(f int) bool { return f != 0 }) {
		return nil
	}
	out := make([]int, s.relations())
	copy(out, byHop[hop])
	return out
}

// arrange puts the vertices that a layer added in the order of their types, with what is known of them.
func (m *Sampler) arrange(b *sample.Batch, known *Known, layer int) {
	dst := b.Blocks[layer].Dst
	m.moved.IDs = append(m.moved.IDs[:0], known.IDs[dst:]...)
	m.moved.NoLoops = append(m.moved.NoLoops[:0], known.NoLoops[dst:]...)
	m.types.Arrange(b, layer, func(v, row uint32) {
		old := m.rows.move(v, row)
		known.IDs[row], known.NoLoops[row] = m.moved.IDs[int(old)-dst], m.moved.NoLoops[int(old)-dst]
	})
}

// arrange puts sources in the order of their types; those of one type keep their order.
func (h *Hop) arrange(typeOf func(v uint32) int) {
	old, types := upTo(len(h.Sources)), make([]int, len(h.Sources))
	for i, v := range h.Sources {
		types[i] = typeOf(v)
	}
	slices.SortStableFunc(old, func(a, b uint32) int { return types[a] - types[b] })
	sources, ids, noLoops, place := slices.Clone(h.Sources), slices.Clone(h.IDs), slices.Clone(h.NoLoops), upTo(len(old))
	for i, o := range old {
		h.Sources[i], h.IDs[i], h.NoLoops[i], place[o] = sources[o], ids[o], noLoops[o], uint32(i)
	}
	for e, at := range h.Indices {
		h.Indices[e] = place[at]
	}
}

// checkTypes refuses relations that an edge between two vertices of their types cannot have, or that are out of order,
// and ids of other types than their vertices'. number is the vertex that drew row k.
func (d *drawn) checkTypes(b *partition.Book, number func(k int) uint32) error {
	typeOf := make([]int, len(d.number))
	for i, v := range d.number {
		if typeOf[i] = b.TypeOf(v); b.Schema.TypeOf(d.id[i]) != typeOf[i] {
			return fmt.Errorf("vertex %d of type %d with id %d, which is of another", v, typeOf[i], d.id[i])
		}
	}
	for k := range d.Dst {
		target := b.TypeOf(number(k))
		if k < len(d.own) && b.Schema.TypeOf(d.own[k]) != target {
			return fmt.Errorf("vertex %d of type %d with id %d, which is of another", number(k), target, d.own[k])
		}
		last := uint16(0)
		for e := d.Indptr[k]; e < d.Indptr[k+1]; e++ {
			r := d.Relations[e]
			if r < last || int(r) >= len(b.Schema.Relations) || b.Schema.Relations[r].Target != target ||
				b.Schema.Relations[r].Source != typeOf[d.Indices[e]] {
				return fmt.Errorf("an edge of relation %d from a vertex of type %d to one of type %d, after one of "+
					"relation %d", r, typeOf[d.Indices[e]], target, last)
			}
			last = r
		}
	}
	return nil
}
