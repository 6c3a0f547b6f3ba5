package g3

import (
	"fmt"
	"slices"

	"starling/exchange"
	"starling/nn"
	"starling/partition"
)

// layout is a worker's bins, phase by phase: each phase has a size of its own, by the widths of its layer (§4.4.2: bin
// sizes adapt to the memory of each layer). Orders belong to pairs of neighbouring phases, and many share one.
type layout struct {
	g      *g3
	plan   *exchange.HaloPlan
	size   int   // bytes of a number that travels
	budget int64 // 0: none
	peer   float64

	rows   []rowBytes
	phases [][]int     // bounds of own bins
	points []*crossing // by synchronisation point
	made   map[string]*crossing
	waves  *waves  // of the typical bins, or nil
	byNeed *byNeed // or nil
}

// byNeed is the order by need: numbers of rows that leave, and of halo rows, and own rows from halo ones in it.
type byNeed struct {
	send, halo []int
	remote     *nn.Topology
	span       int
}

// crossing is what lies between two phases: links of their bins, and how rows travel.
type crossing struct {
	from, to []int
	links    *links
	cut      *cutting
	// owned always backward, needed where that lets bins go on, or nil.
	owned, needed *order
}

// typical is a phase between two layers of the hidden width. Rows that travel by need are numbered by its bins,
// whatever the point, so that workers tell each other once where rows are relayed.
func (l *layout) typical() rowBytes {
	hidden := l.size * max(l.g.W.Model.Hidden, 1)
	return rowBytes{2 * hidden, hidden}
}

// bounds of the bins of a worker.
func (l *layout) bounds(rows int, row rowBytes) []int {
	return cutBins(rows, binRows(rows, row, l.peer, l.budget))
}

// cutting of the point between two phases.
func (l *layout) cutting(from, to rowBytes) *cutting {
	w := l.g.W
	core := w.Part.Core()
	return &cutting{w: w, plan: l.plan, from: l.bounds(core, from), to: l.bounds(core, to),
		join:   leastSend / l.typical().message,
		theirs: boundsOf(w.Part.Book, func(rows int) []int { return l.bounds(rows, from) })}
}

// begin makes the order by need, for which workers may tell each other numbers, or waves.
func (l *layout) begin() error {
	g := l.g
	cut := l.cutting(l.typical(), l.typical())
	switch n := g.waveCount(); {
	case !g.eager:
	case n > 1:
		owned := cut.order(cut.byOwner())
		owned.remote = g.halo.Remote()
		l.waves = g.newWaves(owned, n)
	case g.W.Part.Book.Symmetric:
		send, halo, err := cut.byNeed(g.Prepare)
		if err != nil {
			return err
		}
		o := cut.order(send, halo)
		l.byNeed = &byNeed{send, halo, l.plan.RemoteAt(g.W.Dev, o.haloAt), o.span}
	}
	return nil
}

// lay cuts the phases of a pass into bins; those of the pass before are kept where widths are the same.
func (l *layout) lay(run *nn.Ranges) {
	rows := l.rowsOf(run)
	if slices.Equal(rows, l.rows) {
		return
	}
	l.rows, l.phases, l.points = rows, nil, nil
	for _, row := range rows {
		l.phases = append(l.phases, l.bounds(l.g.W.Part.Core(), row))
	}
	for i := range len(rows) - 1 {
		l.points = append(l.points, l.crossing(rows[i], rows[i+1]))
	}
}

// rowsOf are the bytes of rows in each phase.
func (l *layout) rowsOf(run *nn.Ranges) (list []rowBytes) {
	m := &l.g.W.Model
	in, last := m.In, run.Phases()-1
	for phase := range last + 1 {
		out := m.Out
		if phase < last {
			out = run.Width(phase)
		}
		message := out
		if phase == last {
			message = in // what arrived is what the bins have to keep up with
		}
		list = append(list, rowBytes{l.size * max(in+out, 1), l.size * max(message, 1)})
		in = out
	}
	return list
}

// crossing between two phases, made once for all points with equal bins on all workers.
func (l *layout) crossing(from, to rowBytes) *crossing {
	cut := l.cutting(from, to)
	key := fmt.Sprint(cut.theirs, cut.to, cut.join)
	if c := l.made[key]; c != nil {
		return c
	}
	g, part := l.g, l.g.W.Part
	c := &crossing{from: cut.from, to: cut.to, cut: cut, links: newLinks(part, cut.from, cut.to)}
	c.owned = cut.order(cut.byOwner())
	c.owned.remote = g.halo.Remote()
	if l.waves != nil {
		c.owned.waves = l.waves.of(c.owned)
	}
	if n := l.byNeed; n != nil {
		by := *cut
		by.span = n.span
		c.needed = by.order(n.send, n.halo)
		c.needed.returnsAs(c.owned)
		c.needed.remote = n.remote
	}
	l.made[key] = c
	return c
}

// boundsOf are the bounds of the bins of all workers.
func boundsOf(b *partition.Book, bound func(rows int) []int) [][]int {
	out := make([][]int, b.Parts)
	for q := range out {
		out[q] = bound(int(b.Size(q)))
	}
	return out
}
