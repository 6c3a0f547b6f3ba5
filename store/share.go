package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"starling/coflow"
	"starling/graph"
	"starling/sample"
	"starling/wire"
)

// What draws need to know of all vertices is shared once, before training: some numbers of eight
// bytes for each. Every worker computes those of its own vertices. Where they are sums over edges
// that others have, these send their parts of the sums first.
//
//	share sums     table, numbers [n] uint32, sums [n] of 16 bytes
//	share tables   table → ids [n] uint32, columns [k, n] float64, of all vertices of the part
const (
	sumService   = "share sums"
	tableService = "share tables"
	mostShared   = 1 << 16
)

// Vertices are what is known of all vertices, by their ids in the dataset.
type Vertices struct {
	Number  []uint32 // in the partition
	Columns [][]float64
}

// sharing is the tables of a worker, in the order in which all workers make them.
type sharing struct {
	made int
	mu   struct {
		sync.Mutex
		tables map[int]*table
	}
}

// table is what one worker shares.
type table struct {
	mu struct {
		sync.Mutex
		sums    []sample.Sum // what came, by vertex
		workers int          // that have sent theirs
	}
	complete chan struct{} // all have
	ready    chan struct{} // body is there
	body     []byte
}

func (s *Store) table(n int) (*table, error) {
	if n >= mostShared {
		return nil, fmt.Errorf("table %d of at most %d", n, mostShared)
	}
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if s.shared.mu.tables == nil {
		s.shared.mu.tables = map[int]*table{}
	}
	t := s.shared.mu.tables[n]
	if t == nil {
		t = &table{complete: make(chan struct{}), ready: make(chan struct{})}
		s.shared.mu.tables[n] = t
		if len(s.here) == 1 {
			close(t.complete)
		}
	}
	return t, nil
}

// share gives columns of this worker's vertices to all and takes theirs. sums, of the part's own
// vertices and those of its halo, are added up before; nil: there are none. All workers call it.
func (s *Store) share(ctx context.Context, sums []sample.Sum,
	columns func(sums []sample.Sum) [][]float64) (*Vertices, error) {
	n := s.shared.made
	sums, err := s.addUp(ctx, sums)
	if err != nil {
		return nil, err
	}
	t, err := s.table(n)
	if err != nil {
		return nil, err
	}
	t.body = append(t.body, bytesOf(s.Part.IDs[:s.Part.Core()])...)
	own := columns(sums)
	for _, c := range own {
		t.body = append(t.body, bytesOf(c)...)
	}
	close(t.ready)
	return s.collect(ctx, n, len(own))
}

// addUp adds what all workers have to sums of the part's own vertices; nil: none have any. All
// workers call it, and have come so far when it returns.
func (s *Store) addUp(ctx context.Context, sums []sample.Sum) ([]sample.Sum, error) {
	n := s.shared.made
	s.shared.made++
	t, err := s.table(n)
	if err != nil {
		return nil, err
	}
	if err := s.sendSums(ctx, n, sums); err != nil {
		return nil, err
	}
	select {
	case <-t.complete:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.end.Done():
		return nil, s.end.Err()
	}
	if sums == nil {
		return nil, nil
	}
	for v, x := range t.mu.sums {
		sums[v].AddSum(x)
	}
	return sums[:s.Part.Core()], nil
}

// sendSums sends the parts of sums of the halo to their owners, and an empty message to all others:
// a worker knows that it has all once it has heard from every one.
func (s *Store) sendSums(ctx context.Context, n int, sums []sample.Sum) (err error) {
	var calls []*wire.Reply
	for q := range s.here {
		if q == s.Part.Meta.Part {
			continue
		}
		body := binary.LittleEndian.AppendUint32(nil, uint32(n))
		if sums != nil {
			lo, hi := s.Part.HaloPtr[q], s.Part.HaloPtr[q+1]
			body = append(body, bytesOf(s.Part.Halo[lo:hi])...)
			core := int64(s.Part.Core())
			body = append(body, bytesOf(sums[core+lo:core+hi])...)
		}
		s.traffic[q].requests.Add(int64(len(body)))
		calls = append(calls, s.end.Call(q, wire.Call{Service: sumService, Coflow: sharedOnce, Kind: wire.Topology,
			Request: body}))
	}
	for _, c := range calls {
		_, failed := c.Wait(ctx)
		err = errors.Join(err, failed)
	}
	return err
}

var sharedOnce = coflow.ID{Type: coflow.Bulk, Layer: -1, Batch: 1}

func (s *Store) serveSums(_ context.Context, r *wire.Request) (wire.Response, error) {
	if len(r.Body) < 4 || (len(r.Body)-4)%20 != 0 {
		return wire.Response{}, fmt.Errorf("sums in %d bytes", len(r.Body))
	}
	t, err := s.table(int(binary.LittleEndian.Uint32(r.Body)))
	if err != nil {
		return wire.Response{}, err
	}
	n := (len(r.Body) - 4) / 20
	local, err := s.here[s.Part.Meta.Part].local(nil, numbersOf(r.Body[4:4+4*n]))
	if err != nil {
		return wire.Response{}, err
	}
	sums := make([]sample.Sum, n)
	copy(bytesOf(sums), r.Body[4+4*n:])
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && t.mu.sums == nil {
		t.mu.sums = make([]sample.Sum, s.Part.Core())
	}
	for i, v := range local {
		t.mu.sums[v].AddSum(sums[i])
	}
	if t.mu.workers++; t.mu.workers == len(s.here)-1 {
		close(t.complete)
	}
	return wire.Response{Kind: wire.Topology}, nil
}

func (s *Store) serveTable(ctx context.Context, r *wire.Request) (wire.Response, error) {
	if len(r.Body) != 4 {
		return wire.Response{}, fmt.Errorf("a table in %d bytes", len(r.Body))
	}
	t, err := s.table(int(binary.LittleEndian.Uint32(r.Body)))
	if err != nil {
		return wire.Response{}, err
	}
	select {
	case <-t.ready:
		return wire.Response{Kind: wire.Topology, Body: t.body}, nil
	case <-ctx.Done():
		return wire.Response{}, ctx.Err()
	}
}

// collect takes all workers' columns.
func (s *Store) collect(ctx context.Context, n, columns int) (*Vertices, error) {
	calls := make([]*wire.Reply, len(s.here))
	request := binary.LittleEndian.AppendUint32(nil, uint32(n))
	for q := range calls {
		if q != s.Part.Meta.Part {
			s.traffic[q].requests.Add(int64(len(request)))
			calls[q] = s.end.Call(q, wire.Call{Service: tableService, Coflow: sharedOnce, Kind: wire.Topology,
				Request: request})
		}
	}
	v := &Vertices{Number: make([]uint32, s.Book.Nodes)}
	for range columns {
		v.Columns = append(v.Columns, make([]float64, s.Book.Nodes))
	}
	var failed error
	for q, c := range calls {
		t, _ := s.table(n)
		body, err := t.body, error(nil)
		if c != nil {
			if body, err = c.Wait(ctx); err == nil {
				s.traffic[q].edges.Add(int64(len(body)))
			}
		}
		if err == nil {
			err = v.take(body, uint32(s.Book.Offsets[q]), int(s.Book.Offsets[q+1]-s.Book.Offsets[q]))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("what worker %d knows of its vertices: %w", q, err))
		}
	}
	return v, failed
}

// take reads the table of a part of so many vertices.
func (v *Vertices) take(body []byte, first uint32, vertices int) error {
	if want := vertices * (4 + 8*len(v.Columns)); len(body) != want {
		return fmt.Errorf("%d bytes, expected %d", len(body), want)
	}
	r := reader{b: body}
	ids := r.numbers(vertices)
	for i, id := range ids {
		if int(id) >= len(v.Number) {
			return fmt.Errorf("vertex %d of %d", id, len(v.Number))
		}
		v.Number[id] = first + uint32(i)
	}
	for _, column := range v.Columns {
		for i, x := range r.degrees(vertices, true) {
			column[ids[i]] = x
		}
	}
	return nil
}

// ShareNorms gives all workers the norms by which FastGCN and GraphSAINT draw vertices: column 0.
func (s *Store) ShareNorms(ctx context.Context) (*Vertices, error) {
	p := s.Part
	degrees := make([]float64, len(p.IDs))
	for v := range degrees {
		degrees[v] = p.GCNDegree(uint32(v))
	}
	return s.share(ctx, sample.ColumnSums(p.In, degrees), func(sums []sample.Sum) [][]float64 {
		norms := make([]float64, len(sums))
		for v := range norms {
			norms[v] = sums[v].Float64() / (degrees[v] + 1)
		}
		return [][]float64{norms}
	})
}

// ShareEdgeSums gives all workers what GraphSAINT draws edges by: the sums of weights of a vertex's
// in-edges, of all its edges, and how many in-edges it has.
func (s *Store) ShareEdgeSums(ctx context.Context) (*Vertices, error) {
	p := s.Part
	ends, either := sample.EdgeSums(p.In, func(v uint32) int { return int(p.Degrees[v]) }, len(p.IDs), p.DatasetOrder)
	return s.share(ctx, either, func(sums []sample.Sum) [][]float64 {
		all, degrees := make([]float64, len(sums)), make([]float64, len(sums))
		for v := range all {
			all[v], degrees[v] = sums[v].Float64(), float64(p.Degrees[v])
		}
		for _, v := range p.Splits.Train {
			ends[v], all[v] = sample.LoneSeed(ends[v], all[v])
		}
		return [][]float64{ends, all, degrees}
	})
}

// ShareClusters cuts every part into clusters, so many in all, and gives all workers the cluster of
// each vertex: column 0, and how many there are.
func (s *Store) ShareClusters(ctx context.Context, clusters int, seed uint64) (v *Vertices, count int, err error) {
	mine, err := s.OwnClusters(ctx, clusters, seed)
	if err != nil {
		return nil, 0, err
	}
	column := make([]float64, len(mine))
	for v, k := range mine {
		column[v] = float64(k)
	}
	if v, err = s.share(ctx, nil, func([]sample.Sum) [][]float64 { return [][]float64{column} }); err != nil {
		return nil, 0, err
	}
	of := make([]float64, len(v.Number)) // by number: parts' clusters follow each other
	for id, n := range v.Number {
		of[n] = v.Columns[0][id]
	}
	for q := range s.here {
		most := -1.0
		for n := s.Book.Offsets[q]; n < s.Book.Offsets[q+1]; n++ {
			most = max(most, of[n])
			of[n] += float64(count)
		}
		count += int(most) + 1
	}
	for id, n := range v.Number {
		v.Columns[0][id] = of[n]
	}
	return v, count, nil
}

// OwnClusters cuts the worker's part into its share of so many clusters, without the edges from
// other parts.
func (s *Store) OwnClusters(ctx context.Context, clusters int, seed uint64) ([]uint32, error) {
	core, in := s.Part.Core(), s.Part.In
	own := int(float64(clusters)*float64(core)/float64(max(s.Book.Nodes, 1)) + 0.5)
	g := &graph.CSR{Indptr: make([]int64, 1, core+1)}
	for v := range uint32(core) {
		for _, u := range in.Neighbors(v) {
			if u < uint32(core) {
				g.Indices = append(g.Indices, u)
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return sample.Clusters(ctx, g, max(1, min(own, core)), seed)
}
