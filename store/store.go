package store

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/wire"
)

// Options say how vertices draw.
type Options struct {
	Replace, Weighted bool
	// Rows is the type that rows of features of other hosts travel in.
	Rows Packed
	// RemoteOnly: parts of peers on this host are asked for by calls too.
	RemoteOnly bool
	// DrawByCalls: peers on this host draw edges by calls, since their graphs differ from their
	// folders: edges are held out. Rows are read in place.
	DrawByCalls bool
	// RelationFanouts are by hop and relation of a typed graph, where they are not the hop's for all: see sample.Types.
	RelationFanouts [][]int
	// Visits has walks find the neighbours of destinations, as sample.PinSAGE does; nil: they are drawn of the in-edges.
	Visits *Visits
	// Unread: no one looks at rows of features that batches pull, as in a dry run. They take memory, which is not touched,
	// and none travels. Sparse rows do, since what they take depends on what is in them, and those of a cache.
	Unread bool
}

// Store is all parts, as one worker sees them. Its methods may be called from any goroutine.
type Store struct {
	Part *partition.Part
	Book *partition.Book

	ctx       context.Context
	end       wire.Endpoint
	here      []*Owner // by part; nil: it is elsewhere
	draws     []*Owner // likewise, where edges are drawn
	tables    []*Rows
	tablesMu  sync.Mutex
	negatives []func(key rng.Key, kept uint32) uint32
	linked    []func(kept, other uint32) bool
	opened    []*partition.Part
	traffic   []traffic
	rows      struct { // of features
		needed, remote, requests atomic.Int64
		spared                   atomic.Int64 // remote ones that a look-ahead did not fetch
	}
	kept       *kept        // edges of other hosts; nil: none
	counting   *drawnCounts // nil: draws are not counted
	drew       drawCounts
	caches     []*counted  // by type of a typed graph; nil: none
	packed     Packed      // rows of features travel so
	unread     bool        // see Options
	fetchShare [][]float64 // share of the rows that a look-ahead fetches, by type and part
	once       []Traffic   // that it takes beyond, by part
	planned    int         // columns of rows that plans go by; 0: all
	buffers    sync.Pool
	served     sync.Pool // of *drawn
	shared     sharing
	stops      []func() error
}

// Open serves a worker's part to its peers, and gives access to theirs. All workers call it.
func Open(ctx context.Context, part *partition.Part, end wire.Endpoint, opt Options) (*Store, error) {
	s := &Store{Part: part, Book: part.Book, ctx: ctx, end: end, here: make([]*Owner, part.Book.Parts),
		unread: opt.Unread}
	if f := part.Features; f != nil && f.Kind() == graph.Dense || s.Book.Schema != nil {
		s.packed = opt.Rows
	}
	s.traffic = make([]traffic, part.Book.Parts)
	s.buffers.New = func() any { return new([]byte) }
	s.served.New = func() any { return new(drawn) }
	own, err := newOwner(part, opt)
	if err != nil {
		return nil, err
	}
	s.here[part.Meta.Part] = own
	if !opt.RemoteOnly {
		s.mapPeers(opt)
	}
	s.draws = s.here
	if opt.DrawByCalls {
		s.draws = make([]*Owner, len(s.here))
		s.draws[part.Meta.Part] = own
	}
	for _, service := range []struct {
		name    string
		request int
		handler wire.Handler
	}{{pullService, maxRequest, s.servePull}, {drawService, maxRequest, s.serveDraw},
		{pushService, maxRequest, s.servePush}, {followService, maxRequest, s.serveFollow},
		{countService, maxRequest, s.serveCount}, {sumService, sumHead + sumBytes*part.Core(), s.serveSums},
		{tableService, maxRequest, s.serveTable}} {
		if err := s.serve(wire.Service{Name: service.name, MaxRequest: service.request, MaxResponse: maxResponse,
			Handlers: 2}, service.handler); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

const (
	maxRequest  = 4 << 20
	maxResponse = 1 << 30
)

// mapPeers maps the parts of peers on this host, if their folders are beside this one's.
func (s *Store) mapPeers(opt Options) {
	for q := range s.here {
		if s.here[q] != nil || s.end.Link(q) == wire.BetweenServers || s.Part.Dir == "" {
			continue
		}
		p, err := partition.OpenPart(filepath.Dir(s.Part.Dir), q)
		if err != nil {
			continue // a host of its own, by another name; it answers calls
		}
		if !slices.Equal(p.Book.Offsets, s.Book.Offsets) || p.DatasetOrder == nil {
			p.Close()
			continue
		}
		if s.Part.In.EdgeDim == 0 && p.In.EdgeDim > 0 { // no one looks at them
			in := *p.In
			in.EdgeDim, in.EdgeFeatures, p.In = 0, nil, &in
		}
		if s.here[q], err = newOwner(p, opt); err == nil {
			s.opened = append(s.opened, p)
		}
	}
}

// Close ends the services. Peers must not ask any more.
func (s *Store) Close() (err error) {
	for _, stop := range s.stops {
		err = errors.Join(err, stop())
	}
	for _, p := range s.opened {
		err = errors.Join(err, p.Close())
	}
	s.stops, s.opened = nil, nil
	return err
}

// own is this worker's part.
func (s *Store) own() *Owner { return s.here[s.Part.Meta.Part] }

// InPlace reports whether rows of a part are read without asking its owner.
func (s *Store) InPlace(part int) bool { return s.here[part] != nil }

// AllInPlace reports whether no part is asked for anything.
func (s *Store) AllInPlace() bool {
	return !slices.Contains(s.here, nil) && !slices.Contains(s.draws, nil)
}

// FeaturesInPlace are the features of all parts, in their order; nil of those that are elsewhere.
func (s *Store) FeaturesInPlace() (list []*graph.Features) {
	for _, o := range s.here {
		if o == nil {
			list = append(list, nil)
			continue
		}
		list = append(list, o.part.Features)
	}
	return list
}

// CountRows counts rows of features that a batch needs and that are read in place.
func (s *Store) CountRows(n int) { s.rows.needed.Add(int64(n)) }

// split is which of some numbers each part owns: their places in the list, by part.
type split struct{ places [][]uint32 }

func (s *Store) split(by *split, offsets []int64, numbers []uint32) {
	for len(by.places) < len(s.here) {
		by.places = append(by.places, nil)
	}
	for q := range by.places {
		by.places[q] = by.places[q][:0]
	}
	for i, v := range numbers {
		q := ownerOf(offsets, v)
		by.places[q] = append(by.places[q], uint32(i))
	}
}

// ownerOf is the part whose range a number is in.
func ownerOf(offsets []int64, number uint32) int {
	return sort.Search(len(offsets)-2, func(k int) bool { return int64(number) < offsets[k+1] })
}

// drawsHere and rowsHere report whether the vertices of a part draw in place, and whether its rows
// are read so.
func (s *Store) drawsHere(part int) bool { return s.draws[part] != nil }
func (s *Store) rowsHere(part int) bool  { return s.here[part] != nil }
func (s *Store) isOwn(part int) bool     { return part == s.Part.Meta.Part }

// remoteFirst calls ask for every part that is elsewhere and has some of the numbers, then
// copy for those that are here.
func (s *Store) remoteFirst(by *split, here func(part int) bool,
	ask, copy func(part int, places []uint32) error) error {
	me := s.Part.Meta.Part
	for i := range s.here { // beginning after itself, so that not all ask part 0 first
		q := (me + 1 + i) % len(s.here)
		if len(by.places[q]) > 0 && !here(q) {
			if err := ask(q, by.places[q]); err != nil {
				return err
			}
		}
	}
	for q := range s.here {
		if here(q) && len(by.places[q]) > 0 {
			if err := copy(q, by.places[q]); err != nil {
				return err
			}
		}
	}
	return nil
}

// buffer is memory of at least n bytes for a response, and what gives it back.
func (s *Store) buffer(n int) (b []byte, release func()) {
	p := s.buffers.Get().(*[]byte)
	if cap(*p) < n {
		*p = make([]byte, n)
	}
	return (*p)[:n], func() { s.buffers.Put(p) }
}
