package train

import (
	"math"
	"slices"

	"starling/rng"
	"starling/tensor"
)

// bns is boundary node sampling (Wan et al., "BNS-GCN", MLSys 2022, §3.2). Every
// epoch keeps each pair of a border vertex and a part that needs it with
// probability p, and forgets the others:
//
//	z_far = s·mask·z
//
// for all layers of the epoch, forwards and backwards alike. The paper has s = 1/p, so that
// sums and gradients are right on average: Choice.Unbiased. Ours is less and misses them by
// less, see bnsWeight. Attention weighs its rows itself: a vertex that is not kept
// takes no part in the softmax, and one that is kept is not scaled.
//
// What is kept is a function of seed, epoch, receiving part and vertex, so both
// ends know it without a word. An epoch moves a share p of halo's rows. Features
// that never change travel once, all of them, and measuring is exact. bnsCached is the
// same with a memory.
//
// Where rows are passed on inside servers (relay.go), the parts of a server keep the
// same vertices of other servers. Each pair is kept as often as before, and a row that
// travels serves all parts that need it.
type bns struct {
	*exact
	whole  *lists // of the border with all its vertices
	p      float64
	weight float64 // s, of a kept row
	all    int     // epoch in which all are kept; -1: none
	key    rng.Key
	now    thinned
	absent map[int]tensor.Matrix // scores of rows that are not there, by heads
	plan   thinned
}

func newBNS(s *site) (planned, error) {
	m := &bns{exact: &exact{site: s}, p: s.opt.Strategy.Keep, all: -1, key: rng.New(s.opt.Seed).Fold(keyBNS), absent: map[int]tensor.Matrix{}}
	m.now.epoch, m.plan.epoch = -1, -1
	var move mover = m
	if s.opt.Strategy.Cached {
		move = newBNSCached(m)
	} else if err := m.check(); err != nil {
		return nil, err
	}
	x, whole, err := overHalo(s, move)
	if err != nil {
		return nil, err
	}
	m.whole, m.weight = whole, bnsWeight(m.p, farDegree(whole))
	if s.opt.Strategy.Unbiased {
		m.weight = 1 / m.p
	}
	return x, nil
}

// bnsWeight is what a kept row counts where vertices have so many far neighbours, F. Of the
// sum of their rows, those kept and scaled by s miss, in mean squares,
//
//	(1-s·p)²·|Σz|² + s²·p·(1-p)·Σ|z|²        least at   s = 1/(p + (1-p)/r),   r = |Σz|²/Σ|z|²
//
// r is F where rows are all alike, and 1 where they have nothing in common. We take √F, halfway:
// s is 1 for a single neighbour, and near 1/p only for very many. (To make up for what does not
// come by the means of all rows, or by the rows that a vertex does have, was no better: see
// docs/strategies/bns.md.)
func bnsWeight(p, far float64) float64 {
	return 1 / (p + (1-p)/math.Sqrt(far))
}

// farDegree is how many far neighbours a vertex has that has any, on average; 1 if none has.
func farDegree(l *lists) float64 {
	rows, edges := 0, 0
	for v := range l.in.Nodes() {
		before := edges
		for _, u := range l.in.Indices[l.in.Indptr[v]:l.in.Indptr[v+1]] {
			if int(u) >= l.src {
				edges++
			}
		}
		if edges > before {
			rows++
		}
	}
	return float64(max(edges, 1)) / float64(max(rows, 1))
}

// check refuses models that need every row.
func (m *bns) check() error {
	o := &m.opt
	if name := o.Model.Model; m.p < 1 && slices.Contains(needAll, name) {
		return mistaken("bns leaves out border rows, and %s cannot tell that a row is missing; use --strategy bns:%g:cached or halo, or one of the models gcn, sage, gat, gin", name, m.p)
	}
	if m.p < 1 && o.Model.Model == "gin" && o.Model.EdgeDim > 0 {
		return mistaken("bns leaves out border rows, and with --edge-features gin makes messages of rows that are missing too; use --strategy bns:%g:cached or halo, or --model gat", m.p)
	}
	return nil
}

// needAll are models whose layers have no way to leave a row out: no score to lower, and
// no sum in which others could stand for it.
var needAll = []string{"gatv2", "sage-pool", "film"}

// keyBNS tells the draws of border vertices from all others of a run.
const keyBNS = 0x626e73

// kept reports whether a part receives a vertex of another in an epoch.
func (m *bns) kept(epoch, from, to int, vertex uint32) bool {
	if book := m.part.Book; m.relays() && book.Server(from) != book.Server(to) {
		to = book.Server(to) * book.Parts / book.Servers // its first part draws for all
	}
	return epoch == m.all || m.key.Fold(uint64(epoch)).Fold(uint64(to)).Float64(uint64(vertex)) < m.p
}

// thinned is the border of an epoch.
type thinned struct {
	border
	epoch      int
	leave      []uint32 // own rows that are sent
	from       []uint32 // their places in the whole border
	far, gone  []uint32 // far rows that come, and those that do not
	come, miss tensor.Index
}

// draw makes the border of an epoch, in the memory of another.
func (d *thinned) draw(m *bns, epoch int) *thinned {
	if d.epoch == epoch {
		return d
	}
	d.epoch, d.leave, d.from, d.far, d.gone = epoch, d.leave[:0], d.from[:0], d.far[:0], d.gone[:0]
	d.sendPtr, d.farPtr = append(d.sendPtr[:0], 0), append(d.farPtr[:0], 0)
	l, me := m.whole, m.end.Rank()
	for q := range m.end.Size() {
		for k := l.sendPtr[q]; k < l.sendPtr[q+1]; k++ {
			if v := l.send[k]; m.kept(epoch, me, q, l.ids[v]) {
				d.leave, d.from = append(d.leave, v), append(d.from, uint32(k))
			}
		}
		for k := l.farPtr[q]; k < l.farPtr[q+1]; k++ {
			d.take(uint32(k), m.kept(epoch, q, me, l.ids[l.src+int(k)]))
		}
		d.sendPtr, d.farPtr = append(d.sendPtr, int64(len(d.leave))), append(d.farPtr, int64(len(d.far)))
	}
	straight := len(d.far)
	if l.relay != nil {
		d.relay = d.pass(m, epoch)
	}
	d.send, d.come, d.miss = m.dev.Indices(d.leave), m.dev.Indices(d.far), m.dev.Indices(d.gone)
	d.sendSlots, d.farSlots = &slots{m.dev.Indices(d.from), len(l.send)}, &slots{d.come.Slice(0, straight), int(l.farPtr[len(l.farPtr)-1])}
	return d
}

// take lists a far row with those that come or with the others.
func (d *thinned) take(k uint32, comes bool) {
	if comes {
		d.far = append(d.far, k)
	} else {
		d.gone = append(d.gone, k)
	}
}

// pass is what is passed on of the straight rows that come, and what is passed on to
// here: all of other servers.
func (d *thinned) pass(m *bns, epoch int) *relay {
	l, me, n := m.whole, m.end.Rank(), m.end.Size()
	r := &relay{sendPtr: make([]int64, n+1), farPtr: make([]int64, n+1)}
	straight, came := uint32(l.farPtr[n]), len(d.far)
	for q := range n {
		for _, row := range l.relay.send[l.relay.sendPtr[q]:l.relay.sendPtr[q+1]] {
			if at, ok := slices.BinarySearch(d.far[:came], row); ok {
				r.rows = append(r.rows, uint32(at))
			}
		}
		for k := uint32(l.relay.farPtr[q]); k < uint32(l.relay.farPtr[q+1]); k++ {
			v := straight + k
			d.take(v, m.kept(epoch, m.part.Book.Owner(l.far[v]), me, l.ids[l.src+int(v)]))
		}
		r.sendPtr[q+1], r.farPtr[q+1] = int64(len(r.rows)), int64(len(d.far)-came)
	}
	var places []uint32
	for _, v := range d.far[came:] {
		places = append(places, v-straight)
	}
	r.send, r.farSlots = m.dev.Indices(r.rows), &slots{m.dev.Indices(places), int(l.relay.farPtr[n])}
	return r
}

// thins reports whether a transfer moves fewer rows than halo's. With a memory some never do, see transfer.always.
func (m *bns) thins(t transfer, training bool) bool {
	return training && t.layer >= 0 && m.p < 1 && !(m.opt.Strategy.Cached && t.always(training))
}

func (m *bns) rows(t transfer, b *border, peer, epoch int, training bool) int64 {
	if m.thins(t, training) {
		b = &m.plan.draw(m, epoch).border
	}
	return m.exact.rows(t, b, peer, epoch, training)
}

func (m *bns) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	if !m.thins(t, m.training) {
		return m.exact.fetch(t, b, into, src)
	}
	d := m.now.draw(m, m.epoch)
	rows := m.dev.Scratch(src.Type(), len(d.far), src.Cols)
	return &spread{arrival: m.exact.fetch(t, &d.border, rows, src), m: m, rows: rows, arrived: func() {
		m.scale(t, rows)
		m.dev.Zero(into)
		m.dev.ScatterAdd(into, rows, d.come)
		if t.scores {
			m.dev.ScatterAdd(into, m.never(into).Slice(0, len(d.gone)), d.miss)
		}
	}}
}

func (m *bns) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	if !m.thins(t, m.training) {
		return m.exact.giveBack(t, b, rows, dst)
	}
	d := m.now.draw(m, m.epoch)
	kept := m.dev.Scratch(rows.Type(), len(d.far), rows.Cols)
	m.dev.GatherRows(kept, rows, d.come)
	m.scale(t, kept)
	return &spread{arrival: m.exact.giveBack(t, &d.border, kept, dst), m: m, rows: kept}
}

// scale makes rows stand for those that were not kept too.
func (m *bns) scale(t transfer, rows tensor.Matrix) {
	if !t.across {
		m.dev.Combine(rows, m.weight, rows, 0, tensor.Matrix{})
	}
}

// never are scores so low that the softmax gives their rows exactly nothing. They are
// finite, because a row's own loop must win over them without an infinity less another.
func (m *bns) never(like tensor.Matrix) tensor.Matrix {
	low, ok := m.absent[like.Cols]
	if !ok {
		v := make([]float64, like.Rows*like.Cols)
		for i := range v {
			v[i] = -1e30
		}
		low = m.dev.Scratch(like.Type(), like.Rows, like.Cols)
		m.dev.Upload(low, v)
		m.absent[like.Cols] = low
	}
	return low
}

// spread is an exchange of kept rows, which then take their places among all.
type spread struct {
	arrival
	m       *bns
	rows    tensor.Matrix
	arrived func()
}

func (s *spread) wait() {
	s.arrival.wait()
	if s.arrived != nil {
		s.arrived()
	}
}

func (s *spread) done() {
	s.arrival.done()
	s.m.dev.Free(s.rows)
}
