package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"starling/coflow"
	"starling/rng"
	"starling/sample"
	"starling/wire"
)

const drawService = "draw edges"

// drawn is what the vertices of one part drew: their edges come from sources that are
// described once each.
type drawn struct {
	sample.Block           // its Indices are places in the lists below, or local numbers of from
	from         *Owner    // that drew here, in place; nil: sources are described
	number       []uint32  // of a source, in the partition
	id           []uint32  // in the dataset
	noLoops      []float64 // its degree without loops, by weight
	all          []float64 // of a destination: its degree, by weight
	own          []uint32  // of a destination: its id; only of seed vertices
	ownNoLoops   []float64 // and its degree without loops
	features     []float32 // of edges
	apart        []int32   // of edges, what walks counted
	seen         rowTable  // of sources
}

// draw fills d with the edges that some vertices of the part draw, never those of without: place
// of a vertex << 32 | local number of a source, ascending.
func (o *Owner) draw(d *drawn, local []uint32, q *query, without []uint64) {
	drawer := o.drawers.Get().(*sample.Drawer)
	drawer.Draw(&d.Block, local, q.fanout, q.key, without, q.guide)
	o.drawers.Put(drawer)
	d.from = o
	d.number, d.id, d.noLoops, d.all, d.features = d.number[:0], d.id[:0], d.noLoops[:0], d.all[:0], d.features[:0]
	d.own, d.ownNoLoops, d.apart = d.own[:0], d.ownNoLoops[:0], d.apart[:0]
	if q.only != nil {
		o.filter(d, local, q)
	}
	for _, v := range local {
		d.all = append(d.all, o.degree(v))
		if q.seeds {
			d.own, d.ownNoLoops = append(d.own, o.part.IDs[v]), append(d.ownNoLoops, o.part.GCNDegree(v))
		}
	}
	for _, e := range d.Places {
		d.features = append(d.features, o.part.In.EdgeRows(int64(e), int64(e)+1)...)
	}
}

// describe lists the sources of a draw, each once, for a worker that does not have the part.
func (o *Owner) describe(d *drawn) {
	d.from = nil
	d.seen.begin()
	for k, u := range d.Indices {
		at, longer := d.seen.add(d.number, u)
		if len(longer) > len(d.number) {
			d.id, d.noLoops = append(d.id, o.part.IDs[u]), append(d.noLoops, o.part.GCNDegree(u))
		}
		d.number, d.Indices[k] = longer, at
	}
	for i, u := range d.number {
		d.number[i] = o.number(u)
	}
}

// source is the number of an edge's source.
func (d *drawn) source(at uint32) uint32 {
	if d.from != nil {
		return d.from.number(at)
	}
	return d.number[at]
}

// about is the id of an edge's source and its degree without loops.
func (d *drawn) about(at uint32) (id uint32, noLoops float64) {
	if d.from != nil {
		return d.from.part.IDs[at], d.from.part.GCNDegree(at)
	}
	return d.id[at], d.noLoops[at]
}

// degree is a vertex's in the whole graph, by weight.
func (o *Owner) degree(local uint32) float64 {
	if o.degrees != nil {
		return o.degrees[local]
	}
	return float64(o.part.Degrees[local])
}

// query is what a layer draws by.
type query struct {
	key    rng.Key
	fanout int
	seeds  bool // the vertices are seed vertices, of which ids and degrees are not known
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

// filter leaves the edges of a draw that have the sources of a query.
func (o *Owner) filter(d *drawn, local []uint32, q *query) {
	n, begin, weighted := 0, d.Indptr[0], len(d.Weights) > 0
	for i, v := range local {
		end := d.Indptr[i+1]
		for k := begin; k < end; k++ {
			if !q.may(o.number(d.Indices[k])) {
				continue
			}
			d.Indices[n] = d.Indices[k]
			if len(d.Places) > 0 {
				d.Places[n] = d.Places[k]
			}
			if weighted {
				d.Weights[n] = d.Weights[k]
			}
			if q.counted {
				d.apart = append(d.apart, o.counts.of(o.part, v, k-begin))
			}
			n++
		}
		begin, d.Indptr[i+1] = end, int64(n)
	}
	d.Indices, d.Places = d.Indices[:n], d.Places[:min(n, len(d.Places))]
	d.Weights = d.Weights[:min(n, len(d.Weights))]
}

// Flags of a request.
const (
	askedSeeds   = 1
	askedWithout = 2
	askedOnly    = 4
	askedCounted = 8
	askedGuided  = 16
)

// A request to draw is a query, in 16 bytes; the version of masks that it goes by, if any; if edges may have some sources only, how many and
// these; and numbers; where edges are excluded, how many
// numbers there are, the numbers, and then for each such edge the place of its destination among
// them and the number of its source. The response has these lists one after the other, all of
// numbers of 4 bytes but for degrees of a graph with weights, of 8:
//
//	edges of each vertex, degree of each vertex, what its edges count (unless all are taken)
//	id of each vertex, degree without loops (of seed vertices)
//	how many sources there are; their numbers, ids and degrees
//	the source of each edge, its weight (if there are any), its features (if there are any),
//	what walks counted at it (if asked for)

func (q *query) request(numbers, places []uint32) []byte {
	b := make([]byte, 0, 16+4*len(places))
	b = binary.LittleEndian.AppendUint64(b, uint64(q.key))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(q.fanout)))
	flags := uint32(0)
	if q.seeds {
		flags |= askedSeeds
	}
	without := q.without.of(numbers, places)
	if len(without) > 0 {
		flags |= askedWithout
	}
	if q.only != nil {
		flags |= askedOnly
	}
	if q.counted {
		flags |= askedCounted
	}
	if q.masks > 0 {
		flags |= askedGuided
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	if q.masks > 0 {
		b = binary.LittleEndian.AppendUint32(b, q.masks)
	}
	if q.only != nil {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(q.only)))
		b = append(b, bytesOf(q.only)...)
	}
	if len(without) > 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(places)))
	}
	for _, i := range places {
		b = binary.LittleEndian.AppendUint32(b, numbers[i])
	}
	for _, x := range without {
		b = binary.LittleEndian.AppendUint32(b, uint32(x>>32))
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// parseQuery reads a request: the query, and numbers with what follows them.
func parseQuery(b []byte) (q query, numbers []uint32, err error) {
	if len(b) < 16 || len(b)%4 != 0 {
		return q, nil, fmt.Errorf("a request of %d bytes", len(b))
	}
	flags := b[12]
	q = query{key: rng.Key(binary.LittleEndian.Uint64(b)), fanout: int(int32(binary.LittleEndian.Uint32(b[8:]))),
		seeds: flags&askedSeeds != 0, counted: flags&askedCounted != 0}
	numbers = numbersOf(b[16:])
	if flags&askedGuided != 0 {
		if len(numbers) == 0 || numbers[0] == 0 {
			return q, nil, fmt.Errorf("a request of %d bytes without the version of its masks", len(b))
		}
		q.masks, numbers = numbers[0], numbers[1:]
	}
	if flags&askedOnly != 0 {
		if len(numbers) == 0 || int(numbers[0]) >= len(numbers) {
			return q, nil, fmt.Errorf("a request of %d bytes for edges from some sources", len(b))
		}
		n := 1 + int(numbers[0])
		q.only, numbers = numbers[1:n:n], numbers[n:]
	}
	switch {
	case q.fanout < 1 && q.fanout != sample.All, q.only != nil && q.fanout != sample.All:
		return q, nil, fmt.Errorf("a fanout of %d", q.fanout)
	case q.counted && q.only == nil:
		return q, nil, fmt.Errorf("counted edges from any source")
	}
	return q, numbers, nil
}

func (s *Store) serveDraw(_ context.Context, r *wire.Request) (wire.Response, error) {
	q, numbers, err := parseQuery(r.Body)
	if err != nil {
		return wire.Response{}, err
	}
	numbers, without, err := splitWithout(numbers, r.Body[12]&askedWithout != 0)
	if err != nil {
		return wire.Response{}, err
	}
	own := s.here[s.Part.Meta.Part]
	if q.counted && own.counts == nil {
		return wire.Response{}, fmt.Errorf("walks were not counted")
	}
	if q.guide, err = own.guideFor(r.From, q.masks); err != nil {
		return wire.Response{}, err
	}
	local, err := own.local(nil, numbers)
	if err != nil {
		return wire.Response{}, err
	}
	d := s.served.Get().(*drawn)
	defer s.served.Put(d)
	own.draw(d, local, &q, own.sources(without))
	own.describe(d)
	body, release := s.buffer(d.encodedBytes(s.Book.Weighted))
	return wire.Response{Kind: wire.Topology, Body: d.encode(body[:0], s.Book.Weighted), Release: release}, nil
}

// encodedBytes is how many encode appends.
func (d *drawn) encodedBytes(weighted bool) int {
	degree := 4
	if weighted {
		degree = 8
	}
	lists := d.Dst + len(d.RowWeights) + len(d.own) + 1 + 2*len(d.number) + len(d.Indices) + len(d.Weights) +
		len(d.features) + len(d.apart)
	return 4*lists + degree*(len(d.all)+len(d.ownNoLoops)+len(d.noLoops))
}

func (d *drawn) encode(b []byte, weighted bool) []byte {
	put := binary.LittleEndian
	for i := range d.Dst {
		b = put.AppendUint32(b, uint32(d.Indptr[i+1]-d.Indptr[i]))
	}
	b = appendDegrees(b, d.all, weighted)
	b = append(b, bytesOf(d.RowWeights)...)
	b = append(b, bytesOf(d.own)...)
	b = appendDegrees(b, d.ownNoLoops, weighted)
	b = put.AppendUint32(b, uint32(len(d.number)))
	b = append(append(b, bytesOf(d.number)...), bytesOf(d.id)...)
	b = appendDegrees(b, d.noLoops, weighted)
	b = append(append(b, bytesOf(d.Indices)...), bytesOf(d.Weights)...)
	return append(append(b, bytesOf(d.features)...), bytesOf(d.apart)...)
}

func appendDegrees(b []byte, degrees []float64, weighted bool) []byte {
	for _, x := range degrees {
		if weighted {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		}
	}
	return b
}

// decode reads a response about n vertices. What does not fit is refused: it may come from
// another build.
func (d *drawn) decode(b []byte, n int, shape drawShape) error {
	r := reader{b: b}
	d.Block = sample.Block{Dst: n, Indptr: append(d.Indptr[:0], 0)}
	d.from, d.own, d.ownNoLoops = nil, nil, nil
	edges := int64(0)
	for _, c := range r.numbers(n) {
		edges += int64(c)
		d.Indptr = append(d.Indptr, edges)
	}
	d.all = r.degrees(n, shape.weighted)
	if shape.fanout != sample.All {
		d.RowWeights = r.floats(n)
	}
	if shape.seeds {
		d.own, d.ownNoLoops = r.numbers(n), r.degrees(n, shape.weighted)
	}
	sources := int(r.one())
	d.number, d.id = r.numbers(sources), r.numbers(sources)
	d.noLoops = r.degrees(sources, shape.weighted)
	if edges > maxResponse/4 {
		r.short = true
		edges = 0
	}
	d.Indices = r.numbers(int(edges))
	if shape.weights {
		d.Weights = r.floats(int(edges))
	}
	d.features = r.floats(int(edges) * shape.edgeDim)
	if shape.counted {
		d.apart = make([]int32, edges)
		for i, n := range r.numbers(int(edges)) {
			d.apart[i] = int32(n)
		}
	}
	if r.short || len(r.b) > 0 {
		return fmt.Errorf("%d bytes for the draws of %d vertices, which is not what they take", len(b), n)
	}
	for _, at := range d.Indices {
		if int(at) >= sources {
			return fmt.Errorf("source %d of %d", at, sources)
		}
	}
	for _, v := range d.number {
		if int64(v) >= shape.nodes {
			return fmt.Errorf("vertex %d of %d", v, shape.nodes)
		}
	}
	return nil
}

// drawShape is what the lists of a response depend on.
type drawShape struct {
	*query
	edgeDim           int
	weighted, weights bool // degrees are by weight; edges have weights
	nodes             int64
}

// reader takes lists off a message; short is set once there was too little.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(bytes int) []byte {
	if bytes < 0 || bytes > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	b := r.b[:bytes]
	r.b = r.b[bytes:]
	return b
}

func (r *reader) numbers(n int) []uint32 { return numbersOf(r.take(4 * n)) }

func (r *reader) one() uint32 {
	if v := r.numbers(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

func (r *reader) floats(n int) []float32 {
	b := r.take(4 * n)
	out := make([]float32, len(b)/4)
	copy(bytesOf(out), b)
	return out
}

func (r *reader) degrees(n int, weighted bool) []float64 {
	if weighted {
		b := r.take(8 * n)
		out := make([]float64, len(b)/8)
		copy(bytesOf(out), b)
		return out
	}
	out := make([]float64, 0, n)
	for _, x := range r.numbers(n) {
		out = append(out, float64(x))
	}
	return out
}

// draws are the edges of one layer: what the vertices of every part drew, to be read in the
// order in which they were asked for.
type draws struct {
	s     *Store
	by    split
	parts []drawn
	next  []int // vertices of a part that were read
	local []uint32
	calls []drawing
	shape drawShape
	// Bytes that were sent to each part's owner and received from it, since they were cleared.
	sent, received []int64
}

type drawing struct {
	part  int
	reply *wire.Reply
	n     int
	body  []byte
}

// grow makes place for all parts.
func (w *draws) grow() {
	for len(w.parts) < len(w.s.here) {
		w.parts, w.next = append(w.parts, drawn{}), append(w.next, 0)
		w.sent, w.received = append(w.sent, 0), append(w.received, 0)
	}
}

// ask has all owners draw: remote ones are called, and the others draw now.
func (w *draws) ask(id coflow.ID, numbers []uint32, query *query, weights bool) error {
	w.grow()
	clear(w.next)
	w.s.split(&w.by, w.s.Book.Offsets, numbers)
	w.calls = w.calls[:0]
	w.shape = drawShape{query: query, edgeDim: w.s.Part.In.EdgeDim, weighted: w.s.Book.Weighted, weights: weights,
		nodes: w.s.Book.Nodes}
	return w.s.remoteFirst(&w.by, w.s.drawnHere(query), func(q int, places []uint32) error {
		req := query.request(numbers, places)
		if len(req) > maxRequest {
			return fmt.Errorf("a layer needs in-edges of %d vertices of part %d at once; use a smaller --batch-size "+
				"or --fanout", len(places), q)
		}
		w.calls = append(w.calls, drawing{part: q, n: len(places), reply: w.s.end.Call(q,
			wire.Call{Service: drawService, Coflow: id, Kind: wire.Topology, Request: req})})
		w.sent[q] += int64(len(req))
		w.s.traffic[q].requests.Add(int64(len(req)))
		return nil
	}, func(q int, places []uint32) error {
		w.local = w.local[:0]
		for _, i := range places {
			w.local = append(w.local, numbers[i]-w.s.here[q].first)
		}
		o := w.s.here[q]
		guide, err := o.guideFor(w.s.Part.Meta.Part, query.masks)
		if err != nil {
			return err
		}
		query.guide = guide
		o.draw(&w.parts[q], w.local, query, o.sources(query.without.of(numbers, places)))
		return nil
	})
}

// wait waits for the answers of remote owners. None is under way after it.
func (w *draws) wait(ctx context.Context) (err error) {
	for i := range w.calls {
		c := &w.calls[i]
		if err != nil {
			c.reply.Cancel()
			<-c.reply.Done()
			continue
		}
		if c.body, err = c.reply.Wait(ctx); err != nil {
			err = fmt.Errorf("drawing edges of worker %d's vertices: %w", c.part, err)
		}
		w.received[c.part] += int64(len(c.body))
		w.s.traffic[c.part].edges.Add(int64(len(c.body)))
	}
	return err
}

// drawnHere reports which parts' edges are drawn in place: counts of walks are with the worker.
func (s *Store) drawnHere(q *query) func(part int) bool {
	if q.counted {
		return s.isOwn
	}
	return s.drawsHere
}

// each goes through what vertices drew, in the order in which they were asked for.
func (w *draws) each(vertices []uint32, f func(i int, d *drawn, k int)) {
	for i, v := range vertices {
		q := w.s.Book.Owner(v)
		f(i, &w.parts[q], w.next[q])
		w.next[q]++
	}
}

// take reads the answers.
func (w *draws) take() error {
	for _, c := range w.calls {
		if err := w.parts[c.part].decode(c.body, c.n, w.shape); err != nil {
			return fmt.Errorf("drawing edges of worker %d's vertices: %w", c.part, err)
		}
	}
	return nil
}
