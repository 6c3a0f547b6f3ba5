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

// UseS3FIFOWithin keeps rows that were pulled, of at most the given bytes. Types have shares by the bytes of all their
// rows.
func (s *Store) UseS3FIFOWithin(bytes int64) {
	if s.Book.Schema == nil {
		s.UseS3FIFO(s.CacheRows(bytes))
		return
	}
	types := s.Book.Schema.Types
	all := 0.0
	for t := range types {
		all += float64(types[t].Count) * float64(s.rowBytesOf(t))
	}
	s.caches = make([]*counted, len(types))
	for t := range types {
		width := s.rowBytesOf(t)
		share := float64(types[t].Count) * float64(width) / max(all, 1)
		if rows := int64(share * float64(bytes) / float64(max(width, 1))); width > 0 && rows > 0 {
			s.caches[t] = &counted{Cache: newS3FIFO(int(min(rows, types[t].Count)), width)}
		}
	}
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
