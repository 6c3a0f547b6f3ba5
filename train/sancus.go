package train

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"starling/coflow"
	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// sancus is CAGNET with old blocks (Peng et al., "SANCUS: Staleness-Aware
// Communication-Avoiding Full-Graph Decentralized Training in Large-Scale Graph
// Neural Networks", VLDB 2022, §4). A worker keeps the last block of every peer and
// layer, and a block that is not too old or has hardly changed is not sent again:
//
//	y_i = Σ_j A_ij·z̃_j       z̃_j = z_j where it came this epoch, else as it came last
//
// Three rules say when a block leaves (Definitions 1 to 3):
//
//	epoch:K      every (K+1)-th epoch
//	adaptive:K   to each receiver before its copy is older than K epochs
//	variation:X  when ‖z_j - z̃_j‖ > X·‖z̃_j‖, in the Frobenius norm; X = 0: always
//
// Workers share the all-reduce of every epoch, so none of them runs ahead, and the
// versions of Algorithm 5 are known to both ends: under adaptive receivers take turns.
// Under variation a word of one byte tells a receiver whether the block comes.
//
// An old block is a constant: gradients return for blocks that came this epoch only,
// so both directions move the same share of CAGNET's rows. With bound 0 all is exact,
// as are measuring and features that never change.
type sancus struct {
	*exchanging
	m *skipping
}

func newSancus(s *site) (planned, error) {
	bound, err := parseStaleness(s.opt.Strategy.Staleness)
	if err != nil {
		return nil, err
	}
	m := &skipping{blocks: &blocks{&exact{site: s}}, bound: bound, kept: map[keep]tensor.Matrix{}, turns: map[int]*turn{}}
	if s.opt.Resume != nil {
		m.first = s.opt.Resume.Epoch
	}
	x := &sancus{newExchanging(s, m, newBorder(s.dev, blockLists(s.part))), m}
	if clip := s.opt.Strategy.Clip; clip > 0 {
		return &clipped{x, clip * math.Sqrt(float64(s.end.Size())), s.dev}, nil
	}
	return x, nil
}

// skipping moves blocks that are due, and keeps them for when they are not.
type skipping struct {
	*blocks
	bound staleness
	first int           // epoch of the run: nothing is kept before
	turns map[int]*turn // of each layer, in this epoch
	kept  map[keep]tensor.Matrix
	noted bool
}

// turn is who sends a layer's block to whom in an epoch.
type turn struct {
	comes, goes []bool // by peer
	words       []byte // that say what comes, by peer; nil: known without
	heard       []*wire.Pending
}

// keep names a matrix that outlives a pass.
type keep struct {
	layer  int
	scores bool
	own    bool // the own block as it was last sent, not those of peers
}

func (k keep) String() string {
	what := "rows"
	if k.scores {
		what = "scores"
	}
	if k.own {
		what += ".own"
	}
	return fmt.Sprintf("sancus.%d.%s", k.layer, what)
}

func (m *skipping) begin(epoch int, training bool) {
	m.blocks.begin(epoch, training)
	if len(m.kept) > 0 && !m.noted {
		m.noted = true
		m.events.On(event.Note{Text: fmt.Sprintf("sancus keeps %.1f MiB of remote rows", float64(m.keptBytes())/(1<<20))})
	}
}

// each calls f with every matrix that outlives a pass and its name, in a fixed order.
func (m *skipping) each(f func(name string, kept tensor.Matrix)) {
	for _, k := range slices.SortedFunc(maps.Keys(m.kept), func(a, b keep) int { return cmp.Compare(a.String(), b.String()) }) {
		f(k.String(), m.kept[k])
	}
}

func (m *skipping) keptBytes() (n int64) {
	m.each(func(_ string, kept tensor.Matrix) { n += kept.Bytes() })
	return n
}

// keeper is the matrix of a name, made when first asked for.
func (m *skipping) keeper(k keep, t tensor.DType, rows, cols int) (kept tensor.Matrix, made bool) {
	kept, ok := m.kept[k]
	if !ok {
		kept = m.dev.New(t, rows, cols)
		m.kept[k] = kept
	}
	return kept, !ok
}

// apart is how many ranks a receiver comes after a sender.
func (m *skipping) apart(from, to int) int { return (to - from + m.end.Size()) % m.end.Size() }

func (m *skipping) rows(t transfer, b *border, peer, epoch int, training bool) int64 {
	from, to := m.end.Rank(), peer
	if t.backward {
		from, to = to, from
	}
	if training && t.layer >= 0 && m.bound.rule != "variation" && !m.bound.due(m.first, epoch, m.apart(from, to)) {
		return 0
	}
	return m.blocks.rows(t, b, peer, epoch, training)
}

// turn decides who sends a layer's block to whom; scores go where their rows go.
func (m *skipping) turn(t transfer, b *border, src tensor.Matrix) *turn {
	if t.scores {
		return m.turns[t.layer]
	}
	n := m.end.Size()
	d := &turn{comes: make([]bool, n), goes: make([]bool, n)}
	m.turns[t.layer] = d
	if m.bound.rule == "variation" {
		m.tell(t.layer, b, d, m.changed(t.layer, src))
		return d
	}
	for q := range n {
		d.comes[q] = m.bound.due(m.first, m.epoch, m.apart(q, m.end.Rank()))
		d.goes[q] = m.bound.due(m.first, m.epoch, m.apart(m.end.Rank(), q))
	}
	return d
}

// changed reports whether the own block must be sent again.
func (m *skipping) changed(layer int, src tensor.Matrix) bool {
	if m.bound.change == 0 {
		return true
	}
	last, made := m.keeper(keep{layer: layer, own: true}, src.Type(), src.Rows, src.Cols)
	if !made {
		diff := m.dev.Scratch(src.Type(), src.Rows, src.Cols)
		m.dev.Combine(diff, 1, src, -1, last)
		gap, size := math.Sqrt(m.dev.Dot(diff, diff)), math.Sqrt(m.dev.Dot(last, last))
		m.dev.Free(diff)
		if gap <= m.bound.change*size {
			return false
		}
	}
	m.dev.Copy(last, src)
	return true
}

// tell sends all peers the word whether the block comes, and asks for theirs. It is
// more urgent than rows, and so never behind a block that nobody has asked for.
func (m *skipping) tell(layer int, b *border, d *turn, goes bool) {
	word := []byte{0}
	if goes {
		word[0] = 1
	}
	d.words = make([]byte, m.end.Size())
	key := wire.Key{Coflow: coflow.ID{Epoch: uint32(m.epoch), Type: coflow.Control, Layer: int16(layer)}}
	for _, q := range m.round() {
		if d.goes[q] = goes; b.src > 0 {
			m.end.Send(q, key, wire.Control, word)
		}
		if b.farPtr[q] < b.farPtr[q+1] {
			d.heard = append(d.heard, m.end.Recv(q, key, wire.Control, d.words[q:q+1]))
		}
	}
}

// hear waits for the words of all peers.
func (m *skipping) hear(d *turn) {
	for _, p := range d.heard {
		if err := p.Wait(m.ctx); err != nil {
			m.fail(err)
			return
		}
	}
	d.heard = nil
	for q, word := range d.words {
		d.comes[q] = word == 1
	}
}

func (m *skipping) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	if !m.training || t.layer < 0 {
		return m.blocks.fetch(t, b, into, src)
	}
	d := m.turn(t, b, src)
	x := &blocksComing{exchange{m: m.exact, t: t, in: into, out: src, start: time.Now()}, m, b, d}
	if d.words == nil {
		x.take()
	}
	for _, q := range m.round() {
		if d.goes[q] {
			x.send(m.only(q, 0, b.src))
		}
	}
	return x
}

// blocksComing are the blocks of a layer on their way, and the kept ones.
type blocksComing struct {
	exchange
	m *skipping
	b *border
	d *turn
}

// take asks for the blocks that come.
func (x *blocksComing) take() {
	for q := range x.d.comes {
		if lo, hi := x.far(q); x.d.comes[q] && lo < hi {
			x.receive(x.m.only(q, lo, hi))
		}
	}
}

func (x *blocksComing) far(peer int) (lo, hi int) {
	return int(x.b.farPtr[peer]), int(x.b.farPtr[peer+1])
}

func (x *blocksComing) wait() {
	if x.d.words != nil {
		x.m.hear(x.d)
		x.take()
	}
	x.exchange.wait()
	kept, _ := x.m.keeper(keep{layer: x.t.layer, scores: x.t.scores}, x.in.Type(), x.in.Rows, x.in.Cols)
	for q := range x.d.comes {
		lo, hi := x.far(q)
		switch {
		case lo == hi:
		case x.d.comes[q]:
			x.m.dev.Copy(kept.Slice(lo, hi), x.in.Slice(lo, hi))
		default:
			x.m.dev.Copy(x.in.Slice(lo, hi), kept.Slice(lo, hi))
		}
	}
}

func (m *skipping) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	d := m.turns[t.layer]
	x := &exchange{m: m.exact, t: t, in: m.dev.Scratch(rows.Type(), int(b.sendPtr[len(b.sendPtr)-1]), rows.Cols), out: rows, start: time.Now()}
	x.owned = []tensor.Matrix{x.in}
	for _, q := range m.round() {
		if d.goes[q] {
			x.receive(m.only(q, int(b.sendPtr[q]), int(b.sendPtr[q+1])))
		}
		if d.comes[q] {
			x.send(m.only(q, int(b.farPtr[q]), int(b.farPtr[q+1])))
		}
	}
	x.arrived = func() { m.addFresh(b, d, dst, x.in) }
	return x
}

// addFresh adds the gradients of peers that have this epoch's block, in rank order.
func (m *skipping) addFresh(b *border, d *turn, dst, in tensor.Matrix) {
	for q, goes := range d.goes {
		if lo, hi := int(b.sendPtr[q]), int(b.sendPtr[q+1]); goes && lo < hi {
			m.dev.ScatterAdd(dst, in.Slice(lo, hi), b.send.Slice(lo, hi))
		}
	}
}

// Plan adds the words of variation, whose blocks depend on what they hold.
func (x *sancus) Plan(model *nn.Model, task nn.Task) *Plan {
	p := x.exchanging.Plan(model, task)
	if x.m.bound.rule != "variation" || x.border(0).src == 0 {
		return p
	}
	p.AtMost = x.m.bound.change > 0
	sparse := x.part.Features.Indptr != nil
	rows := p.Epoch
	p.Epoch = func(epoch int) map[Sent]int64 {
		out := rows(epoch)
		for _, t := range model.Traffic(sparse, x.opt.CacheFirst, true) {
			for _, q := range x.round() {
				if t.Forward.Rows > 0 {
					add(out, Sent{wire.Control, int16(t.Layer), x.end.Link(q)}, 1)
				}
			}
		}
		return out
	}
	return p
}
