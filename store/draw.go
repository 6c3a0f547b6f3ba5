package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/rng"
	"starling/sample"
	"starling/wire"
)

// Drawing has the owners of vertices draw in-edges of them:
//
//	draw edges   key uint64, fanout int32, flags uint32
//	             version of masks uint32             if guided (draw_guide.go)
//	             fanouts [relations] int32           if some relations have their own (draw_types.go)
//	             m, sources [m] uint32               if edges may have some sources only
//	             n                                   if edges are excluded, or vertices are as of times
//	             numbers [n] uint32
//	             times [n] int64                     if vertices are as of times (temporal.go)
//	             place, source [k, 2] uint32         excluded edges: destination's place among the numbers; of a typed
//	                                                 graph [k, 3], with the relation
//	           → what they drew (draw_reply.go)
const drawService = "draw edges"

const drawHead = 16

// Flags of a request.
const (
	askedSeeds   = 1
	askedWithout = 2
	askedOnly    = 4
	askedCounted = 8
	askedGuided  = 16
	askedByTypes = 32
	askedAsOf    = 64
	askedRecent  = 128
)

// query is what a layer draws by.
type query struct {
	key    rng.Key
	fanout int
	// fanouts are of relations of a typed graph that have their own, else 0; nil: none has.
	fanouts []int
	typed   bool // the graph is
	seeds   bool // the vertices are seed vertices, of which ids and degrees are not known
	// without are edges that are not drawn.
	without *exclusions
	// only are the sources that edges may have, by number; nil: any. REQUIRES: the fanout is all.
	only []uint32
	set  map[uint32]bool
	// counted: what was counted at edges by walks is asked for too. REQUIRES: only.
	counted bool
	// masks is the version that draws go by; 0: none. guide is that, where it is drawn.
	masks uint32
	guide *sample.Guide
	// times are of the vertices, which see what is from before; nil: all. recent takes the latest of that.
	times  []int64
	recent bool
	// visits has walks find the neighbours (visits.go); nil: they are drawn of the in-edges.
	visits *Visits
}

// may reports whether edges may have a source.
func (q *query) may(number uint32) bool {
	if q.set == nil {
		q.set = make(map[uint32]bool, len(q.only))
		for _, v := range q.only {
			q.set[v] = true
		}
	}
	return q.set[number]
}

// flags of a request that excludes edges, or none.
func (q *query) flags(excludes bool) uint32 {
	flag := func(set bool, bit uint32) uint32 {
		if set {
			return bit
		}
		return 0
	}
	return flag(q.seeds, askedSeeds) | flag(excludes, askedWithout) | flag(q.only != nil, askedOnly) |
		flag(q.counted, askedCounted) | flag(q.masks > 0, askedGuided) | flag(q.fanouts != nil, askedByTypes) |
		flag(q.times != nil, askedAsOf) | flag(q.recent, askedRecent)
}

// request asks for draws of the vertices at places.
func (q *query) request(numbers, places []uint32) []byte {
	without := q.without.of(numbers, places)
	put := binary.LittleEndian
	b := put.AppendUint64(make([]byte, 0, drawHead+4*len(places)), uint64(q.key))
	b = put.AppendUint32(b, uint32(int32(q.fanout)))
	b = put.AppendUint32(b, q.flags(len(without) > 0))
	if q.masks > 0 {
		b = put.AppendUint32(b, q.masks)
	}
	for _, f := range q.fanouts {
		b = put.AppendUint32(b, uint32(int32(f)))
	}
	if q.only != nil {
		b = put.AppendUint32(b, uint32(len(q.only)))
		b = append(b, bytesOf(q.only)...)
	}
	if len(without) > 0 || q.times != nil {
		b = put.AppendUint32(b, uint32(len(places)))
	}
	b = appendAt(b, numbers, places)
	if q.times != nil {
		for _, i := range places {
			b = put.AppendUint64(b, uint64(q.times[i]))
		}
	}
	for _, x := range without {
		if b = put.AppendUint32(put.AppendUint32(b, x.place), x.source); q.typed {
			b = put.AppendUint32(b, uint32(x.relation))
		}
	}
	return b
}

// parseDraw reads what request wrote for a graph of some relations: the query, numbers, and excluded edges, as
// exclusions.of has them.
func parseDraw(b []byte, relations int) (q query, numbers []uint32, without []excludedEdge, err error) {
	if len(b) < drawHead || len(b)%4 != 0 {
		return q, nil, nil, fmt.Errorf("a request of %d bytes", len(b))
	}
	flags := b[12]
	q = query{key: rng.Key(binary.LittleEndian.Uint64(b)), fanout: int(int32(binary.LittleEndian.Uint32(b[8:]))),
		seeds: flags&askedSeeds != 0, counted: flags&askedCounted != 0, typed: relations > 0,
		recent: flags&askedRecent != 0}
	r := reader{b: b[drawHead:]}
	if flags&askedGuided != 0 {
		if q.masks = r.one(); q.masks == 0 {
			return q, nil, nil, fmt.Errorf("a request of %d bytes without the version of its masks", len(b))
		}
	}
	if flags&askedByTypes != 0 {
		if q.fanouts, err = fanoutsFrom(&r, relations); err != nil {
			return q, nil, nil, err
		}
	}
	if flags&askedOnly != 0 {
		q.only = r.numbers(int(r.one()))
	}
	n := len(r.b) / 4
	if flags&(askedWithout|askedAsOf) != 0 {
		n = int(r.one())
	}
	numbers = r.numbers(n)
	if flags&askedAsOf != 0 {
		q.times = timesFrom(&r, n)
	}
	width := 2
	if q.typed {
		width = 3
	}
	for x := range slices.Chunk(r.numbers(len(r.b)/4), width) {
		if len(x) < width || int(x[0]) >= n {
			return q, nil, nil, fmt.Errorf("an excluded edge of vertex %d of %d", x[0], n)
		}
		e := excludedEdge{place: x[0], source: x[1]}
		if q.typed && int(x[2]) >= relations {
			return q, nil, nil, fmt.Errorf("an excluded edge of relation %d of %d", x[2], relations)
		} else if q.typed {
			e.relation = uint16(x[2])
		}
		without = append(without, e)
	}
	switch {
	case r.short:
		err = fmt.Errorf("a request of %d bytes, fewer than its lists take", len(b))
	case q.fanout < 1 && q.fanout != sample.All, q.only != nil && q.fanout != sample.All:
		err = fmt.Errorf("a fanout of %d", q.fanout)
	case q.times != nil && (flags&(askedWithout|askedOnly|askedGuided|askedByTypes) != 0), q.recent && q.times == nil:
		err = fmt.Errorf("flags %d, which do not go together", flags)
	case q.counted && q.only == nil:
		err = fmt.Errorf("counted edges from any source")
	}
	return q, numbers, without, err
}

// serveDraw answers with edges of this worker's vertices.
func (s *Store) serveDraw(_ context.Context, r *wire.Request) (wire.Response, error) {
	q, numbers, without, err := parseDraw(r.Body, s.relations())
	if err != nil {
		return wire.Response{}, err
	}
	own := s.own()
	if q.counted && own.counts == nil {
		return wire.Response{}, errors.New("walks were not counted")
	}
	if q.guide, err = own.guideFor(r.From, q.masks); err == nil {
		err = own.local(numbers)
	}
	if err == nil {
		err = own.checkEdges(numbers, &q)
	}
	if err == nil && q.times != nil && own.part.SeenFrom == nil {
		err = errors.New("edges as of times, of a part without times")
	}
	if err != nil {
		return wire.Response{}, err
	}
	d := s.served.Get().(*drawn)
	defer s.served.Put(d)
	own.draw(d, numbers, &q, own.sources(without))
	own.describe(d)
	if s.Book.Schema != nil {
		d.leaveDegrees()
	}
	body, release := s.buffer(d.encodedBytes(s.Book.Weighted) + len(d.Relations)*s.relationBytes())
	body = appendRelations(d.encode(body[:0], s.Book.Weighted), d.Relations, s.relationBytes())
	return wire.Response{Kind: wire.Topology, Body: body, Release: release}, nil
}

// draws are the edges of one layer: what the vertices of every part drew, to be read in the
// order in which they were asked for.
type draws struct {
	s     *Store
	opt   Options
	by    split
	parts []drawn // and, behind them, of vertices whose edges are kept
	next  []int   // vertices of a part that were read
	kept  *kept   // edges of other hosts that this layer draws from; nil: none
	local []uint32
	calls calls
	shape drawShape
	// numbers are the vertices that draw.
	numbers []uint32
	walks   *walking // that find the neighbours; nil: they are drawn
	unused  *walking // their memory
	// Bytes that were sent to each part's owner and received from it, since they were cleared.
	sent, received []int64
}

func newDraws(s *Store, opt Options) draws {
	n := len(s.here)
	return draws{s: s, opt: opt, parts: make([]drawn, n+1), next: make([]int, n+1), sent: make([]int64, n),
		received: make([]int64, n), calls: s.newCalls(drawService, "drawing edges of the vertices of")}
}

// fetch has all owners draw, and reads what they answer.
func (w *draws) fetch(ctx context.Context, id coflow.ID, numbers []uint32, q *query) error {
	if err := errors.Join(w.ask(id, numbers, q), w.waitAll(ctx)); err != nil {
		return err
	}
	return w.take()
}

// waitAll waits until what was asked is there, of walks until the last step of all.
func (w *draws) waitAll(ctx context.Context) error {
	err := w.wait(ctx)
	for err == nil && w.goesOn() {
		if err = w.take(); err == nil && w.goesOn() {
			err = errors.Join(w.goOn(), w.wait(ctx))
		}
	}
	return err
}

// ask has all owners draw: remote ones are called, and the others draw now. Where walks find the neighbours it has them
// begin: as long as goesOn after a take, goOn and another wait and take follow.
func (w *draws) ask(id coflow.ID, numbers []uint32, query *query) error {
	clear(w.next)
	w.numbers, w.walks, w.kept = numbers, nil, nil
	if query.visits != nil {
		return w.beginWalks(id, query)
	}
	w.kept = w.s.keptFor(query)
	w.split(query)
	w.calls.list = w.calls.list[:0]
	w.shape = drawShape{query: query, edgeDim: w.s.Part.In.EdgeDim, weighted: w.s.Book.Weighted, nodes: w.s.Book.Nodes,
		weights: w.s.Book.Weighted && !(w.opt.Weighted && w.opt.Replace && query.fanout != sample.All),
		book:    w.s.typedBook()}
	err := w.s.remoteFirst(&w.by, w.s.drawnHere(query), func(q int, places []uint32) error {
		request := query.request(numbers, places)
		if len(request) > maxRequest {
			return fmt.Errorf("a layer needs in-edges of %d vertices of part %d at once; use a smaller --batch-size "+
				"or --fanout", len(places), q)
		}
		w.sent[q] += int64(len(request))
		w.calls.send(id, q, places, request, w.shape.most(len(places), w.s.Book.Edges))
		return nil
	}, func(q int, places []uint32) error { return w.drawHere(q, numbers, places, query) })
	if err == nil {
		w.drawKept(query)
	}
	return err
}

// split is which vertices each part draws for, and those whose edges are kept.
func (w *draws) split(query *query) {
	w.s.split(&w.by, w.s.Book.Offsets, w.numbers)
	n, here := len(w.s.here), w.s.drawnHere(query)
	if len(w.by.places) == n {
		w.by.places = append(w.by.places, nil)
	}
	own := w.by.places[n][:0]
	for q, places := range w.by.places[:n] {
		if len(places) == 0 || here(q) {
			continue
		}
		w.s.drew.remote.Add(int64(len(places)))
		if w.kept != nil {
			w.by.places[q] = slices.DeleteFunc(places, func(i uint32) bool {
				is := w.kept.row(w.numbers[i]) >= 0
				if is {
					own = append(own, i)
				}
				return is
			})
		}
	}
	slices.Sort(own)
	w.s.drew.kept.Add(int64(len(own)))
	w.by.places[n] = own
}

// drawKept draws edges that are kept.
func (w *draws) drawKept(query *query) {
	n := len(w.s.here)
	places := w.by.places[n]
	if len(places) == 0 {
		return
	}
	w.local = w.local[:0]
	for _, i := range places {
		w.local = append(w.local, uint32(w.kept.row(w.numbers[i])))
	}
	o := w.kept.o
	o.draw(&w.parts[n], w.local, query, o.sources(query.without.of(w.numbers, places)))
}

// partOf is where what a vertex drew is, among parts.
func (w *draws) partOf(v uint32) int {
	q := w.s.Book.Owner(v)
	if w.kept != nil && w.s.draws[q] == nil && w.kept.row(v) >= 0 {
		return len(w.s.here)
	}
	return q
}

// drawnHere reports which parts' edges are drawn in place: counts of walks are with the worker.
func (s *Store) drawnHere(q *query) func(part int) bool {
	if q.counted {
		return s.isOwn
	}
	return s.drawsHere
}

// drawHere draws edges of a part that is here.
func (w *draws) drawHere(q int, numbers, places []uint32, query *query) (err error) {
	o := w.s.here[q]
	w.local = w.local[:0]
	for _, i := range places {
		w.local = append(w.local, numbers[i]-o.first)
	}
	if query.guide, err = o.guideFor(w.s.Part.Meta.Part, query.masks); err != nil {
		return err
	}
	if query.times != nil {
		at := *query
		at.times = at.times[:0:0]
		for _, i := range places {
			at.times = append(at.times, query.times[i])
		}
		query = &at
	}
	o.draw(&w.parts[q], w.local, query, o.sources(query.without.of(numbers, places)))
	return nil
}

// wait waits for the answers of remote owners. None is under way after it.
func (w *draws) wait(ctx context.Context) error {
	if w.goesOn() {
		return w.walks.f.wait(ctx)
	}
	err := w.calls.wait(ctx)
	for _, c := range w.calls.list {
		w.received[c.part] += int64(c.bytes())
	}
	return err
}

// take reads the answers.
func (w *draws) take() error {
	if w.walks != nil {
		return w.takeWalks()
	}
	for _, c := range w.calls.list {
		d := &w.parts[c.part]
		err := d.decode(c.body, len(c.places), w.shape)
		if err == nil && w.shape.book != nil {
			err = d.checkTypes(w.shape.book, func(k int) uint32 { return w.numbers[c.places[k]] })
		}
		if err != nil {
			return fmt.Errorf("drawing edges of the vertices of worker %d: %w", c.part, err)
		}
		if w.s.counting != nil && w.shape.byRows() {
			w.s.counting.add(d, w.numbers, c.places, &w.shape)
		}
	}
	return nil
}

// each goes through what vertices drew, in the order in which they were asked for.
func (w *draws) each(vertices []uint32, f func(i int, d *drawn, k int)) {
	clear(w.next)
	for i, v := range vertices {
		q := w.partOf(v)
		f(i, &w.parts[q], w.next[q])
		w.next[q]++
	}
}
