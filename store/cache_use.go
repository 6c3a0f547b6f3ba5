package store

import (
	"cmp"
	"context"
	"slices"

	"starling/coflow"
	"starling/graph"
)

// CacheRows is the number of rows of features that fit into the given bytes, 0 where features are sparse,
// whose rows are not kept.
func (s *Store) CacheRows(bytes int64) int {
	if s.Book.Schema != nil { // of the type with the shortest
		most := int64(0)
		for t := range s.Book.Schema.Types {
			if width := s.rowBytesOf(t); width > 0 {
				most = max(most, bytes/int64(width))
			}
		}
		return int(most)
	}
	if s.Part.Features.Kind() == graph.Sparse || s.Part.Features.Cols == 0 {
		return 0
	}
	return int(bytes / int64(max(s.rowBytes(), 1)))
}

// FeatureBytes is what the features of all vertices take as they are stored; 0 where they are sparse.
func (s *Store) FeatureBytes() (bytes int64) {
	switch {
	case s.Book.Schema != nil:
		for t := range s.Book.Schema.Types {
			bytes += int64(s.Book.Schema.Types[t].Count) * int64(s.rowBytesOf(t))
		}
	case s.Part.Features.Kind() != graph.Sparse:
		bytes = s.Book.Nodes * int64(s.rowBytes())
	}
	return bytes
}

// UseS3FIFO keeps rows that were pulled, at most the given number, and no more than there are.
func (s *Store) UseS3FIFO(rows int) {
	if rows = int(min(int64(rows), s.Book.Nodes)); rows > 0 {
		s.caches = []*counted{{Cache: newS3FIFO(rows, s.rowBytes())}}
	}
}

// Learns reports whether the cache begins empty and keeps what was pulled, so that what it
// will save is not known before.
func (s *Store) Learns() bool {
	for _, c := range s.caches {
		if c != nil {
			_, ok := c.Cache.(*s3fifo)
			return ok
		}
	}
	return false
}

// ranked are the vertices that have scores and are not read in place, the highest scores first. Equal scores go by
// number.
func (s *Store) ranked(scores map[uint32]float64) (list []uint32) {
	for v := range scores {
		if !s.InPlace(s.Book.Owner(v)) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]),
			cmp.Compare(a, b))
	})
	return list
}

// UseStatic pulls and keeps rows of the vertices with the highest scores, at most the given number and none that is
// read in place.
func (s *Store) UseStatic(ctx context.Context, rows int, scores map[uint32]float64) error {
	chosen := s.ranked(scores)
	chosen = chosen[:min(rows, len(chosen))]
	if len(chosen) == 0 {
		return nil
	}
	c, p := newStatic(chosen, s.rowBytes()), s.Puller()
	var f graph.Features
	left := c.rows
	for some := range slices.Chunk(chosen, max(1, pullBytes/max(s.rowBytes(), 1))) {
		if err := p.Features(ctx, coflow.ID{Type: coflow.Bulk, Layer: -1}, &f, some); err != nil {
			return err
		}
		left = left[copy(left, featureBytes(&f)):]
	}
	s.caches = []*counted{{Cache: c}}
	s.rows.needed.Store(0) // of batches only
	s.rows.remote.Store(0)
	return nil
}

// FeaturesOnce pulls rows of features that are needed beside batches.
func (s *Store) FeaturesOnce(ctx context.Context, to *graph.Features, numbers []uint32) error {
	needed, remote := s.rows.needed.Load(), s.rows.remote.Load()
	err := s.Puller().Features(ctx, coflow.ID{Type: coflow.Bulk, Layer: -1}, to, numbers)
	s.rows.needed.Store(needed) // of batches only
	s.rows.remote.Store(remote)
	return err
}

// HaloDegrees scores the vertices of the part's halo by their degrees.
func (s *Store) HaloDegrees() map[uint32]float64 {
	out, core := map[uint32]float64{}, s.Part.Core()
	for i, v := range s.Part.Halo {
		out[v] = float64(s.Part.Degrees[core+i])
	}
	return out
}

// Rows counts the rows of features that were pulled, those of them that other hosts own, and those of these that the
// cache had.
func (s *Store) Rows() (needed, remote, cached int64) {
	for _, c := range s.caches {
		if c != nil {
			cached += c.hits.Load()
		}
	}
	return s.rows.needed.Load(), s.rows.remote.Load(), cached + s.rows.spared.Load()
}

// Requests is how many requests for rows were sent to other hosts.
func (s *Store) Requests() int64 { return s.rows.requests.Load() }
