package store

import (
	"context"
	"slices"

	"starling/coflow"
	"starling/sample"
)

// Neighbours by visits of walks (sample.PinSAGE), from owners wherever they are: walks of all destinations take one
// step together, as followers have it, and when the last has ended the worker that asked counts them. What it needs to
// know of the vertices that walks find is shared once, before training.

// Visits is how walks find neighbours, and what is known of all vertices, by number in the partition.
type Visits struct {
	sample.Visits
	ids          []uint32
	all, noLoops []float64 // degrees, by weight
}

// ShareVisits gives all workers ids and degrees of all vertices. All workers call it.
func (s *Store) ShareVisits(ctx context.Context, by sample.Visits) (*Visits, error) {
	own := s.own()
	shared, err := s.share(ctx, nil, func([]sample.Sum) [][]float64 {
		all, noLoops := make([]float64, s.Part.Core()), make([]float64, s.Part.Core())
		for v := range all {
			all[v], noLoops[v] = own.degree(uint32(v)), s.Part.GCNDegree(uint32(v))
		}
		return [][]float64{all, noLoops}
	})
	if err != nil {
		return nil, err
	}
	n := len(shared.Number)
	v := &Visits{Visits: by, ids: make([]uint32, n), all: make([]float64, n), noLoops: make([]float64, n)}
	for id, number := range shared.Number {
		v.ids[number] = uint32(id)
		v.all[number], v.noLoops[number] = shared.Columns[0][id], shared.Columns[1][id]
	}
	return v, nil
}

// walking is the walks of a hop's destinations.
type walking struct {
	f     followers
	id    coflow.ID
	query *query
	step  int
	ended bool
	// Of walks that go on: where they are, what they go by, whose they are, and how many steps they take.
	at    []uint32
	by    []uint64
	of    []uint32
	steps []int32
	// What the walks of destination i have visited is the first met[i] from i·most on.
	visits []uint32
	met    []uint32
	most   int
	list   []sample.Visited
}

// goesOn reports whether walks do.
func (w *draws) goesOn() bool { return w.walks != nil && !w.walks.ended }

// beginWalks begins the walks of all destinations, and has them take a step.
func (w *draws) beginWalks(id coflow.ID, q *query) error {
	x := w.unused
	if x == nil {
		x = &walking{f: newFollowers(w)}
		w.unused = x
	}
	v, n := q.visits, len(w.numbers)
	w.walks, x.id, x.query, x.step, x.ended = x, id, q, 0, false
	x.at, x.by, x.of, x.steps = x.at[:0], x.by[:0], x.of[:0], x.steps[:0]
	x.most = v.Walks * v.Length
	x.visits = slices.Grow(x.visits[:0], n*x.most)[:n*x.most]
	x.met = append(x.met[:0], make([]uint32, n)...)
	for i, number := range w.numbers {
		own := q.key.Fold(uint64(v.ids[number]))
		for k := range v.Walks {
			key, steps := v.Walk(own, k)
			x.at, x.by = append(x.at, number), append(x.by, uint64(key))
			x.of, x.steps = append(x.of, uint32(i)), append(x.steps, int32(steps))
		}
	}
	return w.goOn()
}

// goOn has walks take a step.
func (w *draws) goOn() error {
	x := w.walks
	return x.f.ask(x.id, byWalk, uint32(x.step), x.at, x.by)
}

// takeWalks takes where the step has led, and counts the visits if no walk goes on.
func (w *draws) takeWalks() error {
	x := w.walks
	if x.ended {
		return nil
	}
	if err := x.f.take(x.at); err != nil {
		return err
	}
	x.step++
	n := 0
	for k, at := range x.at {
		i := x.of[k]
		if at == nowhere {
			continue
		}
		if at != w.numbers[i] {
			x.visits[int(i)*x.most+int(x.met[i])] = at
			x.met[i]++
		}
		if int(x.steps[k]) > x.step {
			x.at[n], x.by[n], x.of[n], x.steps[n] = at, x.by[k], i, x.steps[k]
			n++
		}
	}
	x.at, x.by, x.of, x.steps = x.at[:n], x.by[:n], x.of[:n], x.steps[:n]
	if x.ended = n == 0; x.ended {
		w.countVisits()
	}
	return nil
}

// countVisits makes what each destination drew of the visits of its walks.
func (w *draws) countVisits() {
	x, v := w.walks, w.walks.query.visits
	for q := range w.parts {
		w.parts[q].beginVisits()
	}
	for i, number := range w.numbers {
		x.list = x.list[:0]
		for _, at := range x.visits[i*x.most:][:x.met[i]] {
			x.list = append(x.list, sample.Visited{Vertex: at, ID: v.ids[at]})
		}
		own := x.query.key.Fold(uint64(v.ids[number]))
		top, sum := sample.Top(x.list, own, x.query.fanout)
		w.parts[w.s.Book.Owner(number)].addVisits(top, sum, number, x.query)
	}
}

// beginVisits empties a draw.
func (d *drawn) beginVisits() {
	d.Block = sample.Block{Indptr: append(d.Indptr[:0], 0), Indices: d.Indices[:0], Weights: d.Weights[:0]}
	d.from = nil
	d.number, d.id, d.noLoops, d.features = d.number[:0], d.id[:0], d.noLoops[:0], d.features[:0]
	d.all, d.own, d.ownNoLoops, d.apart = d.all[:0], d.own[:0], d.ownNoLoops[:0], d.apart[:0]
	d.seen.begin()
}

// addVisits adds a destination and its neighbours.
func (d *drawn) addVisits(top []sample.Visited, sum int, number uint32, q *query) {
	v := q.visits
	sample.AppendVisits(&d.Block, top, sum, v.all[number], func(u uint32) uint32 {
		at, longer := d.seen.add(d.number, u)
		if len(longer) > len(d.number) {
			d.id, d.noLoops = append(d.id, v.ids[u]), append(d.noLoops, v.noLoops[u])
		}
		d.number = longer
		return at
	})
	if d.Dst, d.all = d.Dst+1, append(d.all, v.all[number]); q.seeds {
		d.own, d.ownNoLoops = append(d.own, v.ids[number]), append(d.ownNoLoops, v.noLoops[number])
	}
}

// walksOf is about what the walks of some destinations take, in visits.
func (v *Visits) walksOf(destinations int) int64 { return int64(destinations * v.Walks * v.Length) }
