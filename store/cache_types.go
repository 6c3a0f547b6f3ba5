package store

import (
	"context"
	"slices"

	"starling/coflow"
	"starling/graph"
)

// Caches of a typed graph are by type, since rows of types have different widths, and share one budget.

// cacheOf is the cache of a type's rows, or of all; nil: none.
func (s *Store) cacheOf(typ int) *counted {
	if typ < len(s.caches) {
		return s.caches[typ]
	}
	return nil
}

// UseS3FIFOWithin keeps rows that were pulled, of at most the given bytes.
func (s *Store) UseS3FIFOWithin(bytes int64) {
	shares := s.shares(bytes)
	s.caches = make([]*counted, len(shares))
	for t, rows := range shares {
		if rows > 0 {
			s.caches[t] = &counted{Cache: newS3FIFO(rows, s.rowBytesOf(t))}
		}
	}
}

// shares are the rows of each type that fit into the given bytes together, no more than there are. Types have shares by
// the bytes of all their rows.
func (s *Store) shares(bytes int64) []int {
	if s.Book.Schema == nil {
		return []int{int(min(int64(s.CacheRows(bytes)), s.Book.Nodes))}
	}
	types := s.Book.Schema.Types
	all := 0.0
	for t := range types {
		all += float64(types[t].Count) * float64(s.rowBytesOf(t))
	}
	list := make([]int, len(types))
	for t := range types {
		if width := s.rowBytesOf(t); width > 0 {
			share := float64(types[t].Count) * float64(width) / max(all, 1)
			list[t] = int(min(int64(share*float64(bytes)/float64(width)), types[t].Count))
		}
	}
	return list
}

// UseStaticWithin pulls and keeps rows of the vertices with the highest scores, of at most the given bytes.
func (s *Store) UseStaticWithin(ctx context.Context, bytes int64, scores map[uint32]float64) error {
	if s.Book.Schema == nil {
		return s.UseStatic(ctx, s.CacheRows(bytes), scores)
	}
	chosen := make([][]uint32, len(s.Book.Schema.Types))
	for _, v := range s.ranked(scores) {
		t := s.Book.TypeOf(v)
		if width := int64(s.rowBytesOf(t)); width > 0 && width <= bytes {
			bytes -= width
			chosen[t] = append(chosen[t], v)
		}
	}
	caches := make([]*counted, len(chosen))
	for t, list := range chosen {
		if len(list) == 0 {
			continue
		}
		c, err := s.pullStatic(ctx, t, list)
		if err != nil {
			return err
		}
		caches[t] = &counted{Cache: c}
	}
	s.caches = caches
	s.rows.needed.Store(0) // of batches only
	s.rows.remote.Store(0)
	return nil
}

// pullStatic pulls the rows of vertices of a type.
func (s *Store) pullStatic(ctx context.Context, typ int, list []uint32) (*static, error) {
	width := s.rowBytesOf(typ)
	c, p := newStatic(list, width), s.Puller()
	var f graph.Features
	left := c.rows
	for some := range slices.Chunk(list, mostRows(width)) {
		if err := p.finish(ctx, p.askType(coflow.ID{Type: coflow.Bulk, Layer: -1}, typ, &f, some)); err != nil {
			return nil, err
		}
		left = left[copy(left, featureBytes(&f)):]
	}
	return c, nil
}
