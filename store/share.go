package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"starling/coflow"
	"starling/graph"
	"starling/sample"
	"starling/wire"
)

// What draws need to know of all vertices is shared once, before training: columns of numbers of eight
// bytes. Every worker computes the rows of its own vertices. Where a number is a sum over edges
// that others have, these send their parts of the sum first.
//
//	share sums     table uint32, numbers [n] uint32, sums [n] of 16 bytes → nothing
//	share tables   table uint32 → ids [n] uint32, columns [k, n] float64, of all vertices of the part
const (
	sumService   = "share sums"
	sumHead      = 4
	sumBytes     = 20 // a number and its sum
	tableService = "share tables"
)

// Vertices are what is known of all vertices, by their ids in the dataset.
type Vertices struct {
	Number  []uint32 // in the partition
	Columns [][]float64
}

// sharing is the tables of a worker, in the order in which all workers make them.
type sharing struct {
	mu struct {
		sync.Mutex
		made   int // tables that this worker has begun
		tables map[int]*table
	}
}

// begin is the number of the next table.
func (s *sharing) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.made++
	return s.mu.made - 1
}

// next is the number that begin will give.
func (s *sharing) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.made
}

// table is what one worker shares.
type table struct {
	mu struct {
		sync.Mutex
		sums []sample.Sum // what came, by vertex
		from map[int]bool // workers that have sent theirs
	}
	complete chan struct{} // all have
	ready    chan struct{} // body is there
	body     []byte
}

// table is a table that this worker has begun, or begins next: no worker is further than that, since all wait for the
// sums of all.
func (s *Store) table(n int) (*table, error) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if n > s.shared.mu.made {
		return nil, fmt.Errorf("table %d, where the next one is %d", n, s.shared.mu.made)
	}
	if s.shared.mu.tables == nil {
		s.shared.mu.tables = map[int]*table{}
	}
	t := s.shared.mu.tables[n]
	if t == nil {
		t = &table{complete: make(chan struct{}), ready: make(chan struct{})}
		t.mu.from = map[int]bool{}
		s.shared.mu.tables[n] = t
		if len(s.here) == 1 {
			close(t.complete)
		}
	}
	return t, nil
}

// share gives columns of this worker's vertices to all and takes theirs. sums, of the part's own
// vertices and its halo, are added up before; nil: no sums. All workers call it.
func (s *Store) share(ctx context.Context, sums []sample.Sum,
	columns func(sums []sample.Sum) [][]float64) (*Vertices, error) {
	n := s.shared.next()
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
	return s.collect(ctx, n, len(own), t.body)
}

// addUp adds what all workers have to sums of the part's own vertices; nil: none have any. All
// workers call it, and have come so far when it returns.
func (s *Store) addUp(ctx context.Context, sums []sample.Sum) ([]sample.Sum, error) {
	n := s.shared.begin()
	t, err := s.table(n)
	if err != nil {
		return nil, err
	}
	if err := s.sendSums(ctx, n, sums); err != nil {
		return nil, err
	}
	if err := s.await(ctx, t.complete); err != nil || sums == nil {
		return nil, err
	}
	for v, x := range t.mu.sums {
		sums[v].AddSum(x)
	}
	return sums[:s.Part.Core()], nil
}

// sendSums sends the parts of sums of the halo to their owners, and an empty message to all others:
// a worker has all parts once every other worker has sent one.
func (s *Store) sendSums(ctx context.Context, n int, sums []sample.Sum) error {
	calls := s.newCalls(sumService, "sharing sums with")
	core := int64(s.Part.Core())
	for q := range s.here {
		if s.isOwn(q) {
			continue
		}
		var halo []uint32
		var theirs []sample.Sum
		if sums != nil {
			lo, hi := s.Part.HaloPtr[q], s.Part.HaloPtr[q+1]
			halo, theirs = s.Part.Halo[lo:hi], sums[core+lo:core+hi]
		}
		calls.send(sharedOnce, q, nil, sumsOf(n, halo, theirs), noReply)
	}
	return calls.wait(ctx)
}

// sumsOf is the request with parts of some sums.
func sumsOf(table int, numbers []uint32, sums []sample.Sum) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(table))
	return append(append(b, bytesOf(numbers)...), bytesOf(sums)...)
}

// parseSums reads what sumsOf wrote.
func parseSums(b []byte) (table int, numbers []uint32, sums []sample.Sum, err error) {
	r := reader{b: b}
	table = int(r.one())
	n := len(r.b) / sumBytes
	numbers, sums = r.numbers(n), listOf[sample.Sum](r.take(n, sumBytes-4))
	if r.short || len(r.b) > 0 {
		err = fmt.Errorf("sums in %d bytes", len(b))
	}
	return table, numbers, sums, err
}

var sharedOnce = coflow.ID{Type: coflow.Bulk, Layer: -1, Batch: 1}

func (s *Store) serveSums(_ context.Context, r *wire.Request) (wire.Response, error) {
	n, numbers, sums, err := parseSums(r.Body)
	if err == nil {
		err = s.own().local(numbers)
	}
	if err != nil {
		return wire.Response{}, err
	}
	t, err := s.table(n)
	if err == nil {
		err = t.add(r.From, numbers, sums, s.Part.Core(), len(s.here)-1)
	}
	return wire.Response{Kind: wire.Topology}, err
}

// add takes the sums of one of the other workers.
func (t *table) add(from int, local []uint32, sums []sample.Sum, core, others int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.from[from] {
		return fmt.Errorf("sums that worker %d has sent before", from)
	}
	if len(local) > 0 && t.mu.sums == nil {
		t.mu.sums = make([]sample.Sum, core)
	}
	for i, v := range local {
		t.mu.sums[v].AddSum(sums[i])
	}
	if t.mu.from[from] = true; len(t.mu.from) == others {
		close(t.complete)
	}
	return nil
}

// serveTable answers with this worker's columns, once they are made.
func (s *Store) serveTable(ctx context.Context, r *wire.Request) (wire.Response, error) {
	if len(r.Body) != 4 {
		return wire.Response{}, fmt.Errorf("a table in %d bytes", len(r.Body))
	}
	t, err := s.table(int(binary.LittleEndian.Uint32(r.Body)))
	if err == nil {
		err = s.await(ctx, t.ready)
	}
	if err != nil {
		return wire.Response{}, err
	}
	return wire.Response{Kind: wire.Topology, Body: t.body}, nil
}

// collect takes all workers' columns; own are this worker's.
func (s *Store) collect(ctx context.Context, n, columns int, own []byte) (*Vertices, error) {
	calls := s.newCalls(tableService, "learning about the vertices of")
	for q := range s.here {
		if !s.isOwn(q) {
			calls.send(sharedOnce, q, nil, binary.LittleEndian.AppendUint32(nil, uint32(n)),
				int(s.Book.Size(q))*(4+8*columns))
		}
	}
	v := &Vertices{Number: slices.Repeat([]uint32{nowhere}, int(s.Book.Nodes))}
	for range columns {
		v.Columns = append(v.Columns, make([]float64, s.Book.Nodes))
	}
	if err := calls.wait(ctx); err != nil {
		return nil, err
	}
	for _, c := range append(calls.list, &call{part: s.Part.Meta.Part, body: own}) {
		if err := v.take(c.body, uint32(s.Book.Offsets[c.part]), int(s.Book.Size(c.part))); err != nil {
			return nil, fmt.Errorf("what worker %d knows of its vertices: %w", c.part, err)
		}
	}
	return v, nil
}

// take reads the table of a part, whose vertices begin at first.
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
		if v.Number[id] != nowhere {
			return fmt.Errorf("vertex %d, which has number %d already", id, v.Number[id])
		}
		v.Number[id] = first + uint32(i)
	}
	for _, column := range v.Columns {
		theirs := r.doubles(vertices)
		if err := amounts(theirs); err != nil {
			return err
		}
		for i, x := range theirs {
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

// ShareClusters cuts every part into clusters, the given count in all, and gives all workers the cluster of
// each vertex: column 0, and the number of clusters.
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
		if of[n] = v.Columns[0][id]; !(of[n] >= 0 && of[n] < float64(len(of)) && of[n] == math.Trunc(of[n])) {
			return nil, 0, fmt.Errorf("worker %d has vertex %d in cluster %g", s.Book.Owner(n), id, of[n])
		}
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

// OwnClusters cuts the worker's part into its share of all clusters, without the edges from
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
