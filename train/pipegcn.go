package train

import (
	"slices"

	"starling/tensor"
)

// pipegcn is training with border rows and border gradients that are one epoch old
// (Wan et al., "PipeGCN", ICLR 2022, alg. 1): in epoch t
//
//	y  = A_near·z_own(t) + A_far·z_far(t-1)
//	dz = A_nearᵀ·dy(t) + what peers computed for our rows in epoch t-1
//
// with zeros where t-1 was not. Choice.Means moves both to the means of epoch t (means.go).
// Rows leave when a layer has them, as with halo, but nobody needs them before the same
// layer of the next epoch: they have a whole epoch to travel in, and only what is later
// than that is waited for.
//
// Smoothing (§3.4) replaces what has arrived by a moving average,
// m = γ·m + (1-γ)·z, of rows and of gradients, from the first that arrive on.
//
// It sends the bytes of halo. Features that never change, scores of attention and its last
// layer with their gradients, and measuring passes are exact and waited for, see
// transfer.always.
//
// Where rows are passed on inside servers (relay.go), the gradients of passed ones are
// added up on their way home; that is late too, but never by more than the same epoch.
type pipegcn struct {
	*exact
	smooth  float64
	lines   map[transfer]*line
	order   []transfer   // of their first use
	waiting []*goingHome // for the other workers of the server
}

// line is a transfer as it goes on from epoch to epoch.
type line struct {
	last *late         // begun in the last epoch
	mean tensor.Matrix // of what has arrived, with smoothing
}

// late is an exchange of the last epoch and the rows it brings.
type late struct {
	arrival
	in tensor.Matrix
	// held is given back with it.
	held tensor.Matrix
	m    *pipegcn
}

func (l *late) done() {
	l.arrival.done()
	l.m.dev.Free(l.held)
}

func newPipeGCN(s *site) (planned, error) {
	if s.opt.Strategy.Late == 0 {
		return newHalo(s)
	}
	x, _, err := overHalo(s, &pipegcn{exact: &exact{site: s}, smooth: s.opt.Strategy.Smooth, lines: map[transfer]*line{}})
	return x, err
}

// begin lets gradients go home that nobody waits for before the next epoch's.
func (m *pipegcn) begin(epoch int, training bool) {
	m.goOn()
	m.exact.begin(epoch, training)
}

// goOn sends sums of gradients home that are complete.
func (m *pipegcn) goOn() {
	m.waiting = slices.DeleteFunc(m.waiting, func(x *goingHome) bool {
		ready := x.left || x.ready()
		if ready {
			x.leave()
		}
		return ready
	})
}

func (m *pipegcn) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	if t.always(m.training) {
		return m.exact.fetch(t, b, into, src)
	}
	t.late = true
	m.goOn()
	in := m.dev.Scratch(src.Type(), b.farRows(), src.Cols)
	x := &late{m.exact.fetch(t, b, in, src), in, in, m}
	now := m.centre(t, b, src)
	return m.queue(t, x, func(rows tensor.Matrix) {
		now.move(rows)
		m.dev.Copy(into, rows)
	})
}

func (m *pipegcn) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	if t.always(m.training) {
		return m.exact.giveBack(t, b, rows, dst)
	}
	t.late = true
	m.goOn()
	out := m.dev.Scratch(rows.Type(), rows.Rows, rows.Cols) // rows are the caller's, and gone before they have left
	m.dev.Copy(out, rows)
	home, x := m.takeHome(t, b, out)
	home.arrived = nil
	now := m.centreBack(t, b, rows)
	return m.queue(t, &late{x, home.in, out, m}, func(rows tensor.Matrix) {
		now.move(rows)
		m.addTheirs(b, dst, rows)
	})
}

// takeHome lets gradients leave, or wait for those of the rest of the server.
func (m *pipegcn) takeHome(t transfer, b *border, rows tensor.Matrix) (*exchange, arrival) {
	if b.relay == nil {
		x := m.giveBackStraight(t, b, rows, tensor.Matrix{})
		return x, x
	}
	x := m.goHome(t, b, rows, tensor.Matrix{})
	m.waiting = append(m.waiting, x)
	return x.exchange, x
}

// queue puts an exchange in the place of the last epoch's, which is the one to use.
func (m *pipegcn) queue(t transfer, x *late, use func(tensor.Matrix)) arrival {
	l, ok := m.lines[t]
	if !ok {
		l = m.recalled(t, x)
		m.lines[t], m.order = l, append(m.order, t)
	}
	due := &overdue{m: m, line: l, late: l.last, next: x, use: use}
	l.last = x
	return due
}

// overdue is an exchange of the last epoch, if there was one, when its rows are needed.
type overdue struct {
	m *pipegcn
	*line
	*late
	next *late // the exchange of this epoch
	use  func(tensor.Matrix)
}

func (o *overdue) wait() {
	if o.late == nil {
		zeros := o.m.dev.New(o.next.in.Type(), o.next.in.Rows, o.next.in.Cols)
		o.use(zeros)
		o.m.dev.Free(zeros)
		return
	}
	o.late.wait()
	o.use(o.smoothed(o.m, o.in))
}

func (o *overdue) done() {
	if o.late != nil {
		o.late.done()
	}
}

func (m *pipegcn) means(t transfer, b *border, peer, _ int) int64 { return m.meansTo(t, b, peer) }

// smoothed moves the average towards rows and returns it; without smoothing, rows.
func (l *line) smoothed(m *pipegcn, rows tensor.Matrix) tensor.Matrix {
	switch {
	case m.smooth == 0:
		return rows
	case l.mean.IsZero():
		l.mean = m.dev.Scratch(rows.Type(), rows.Rows, rows.Cols)
		m.dev.Copy(l.mean, rows)
	default:
		m.dev.Combine(l.mean, m.smooth, l.mean, 1-m.smooth, rows)
	}
	return l.mean
}

// remember waits for what is under way and lists what the next epoch would use.
func (m *pipegcn) remember() []remembered {
	for _, t := range m.order {
		m.lines[t].last.wait() // which may let rows leave, and leave rests
	}
	out := m.exact.remember()
	for _, t := range m.order {
		l := m.lines[t]
		out = append(out, remembered{lateName(t), l.last.in})
		if !l.mean.IsZero() {
			out = append(out, remembered{meanName(t), l.mean})
		}
	}
	return out
}

func lateName(t transfer) string { return "late " + t.String() }
func meanName(t transfer) string { return "average of " + t.String() }

// recalled is a transfer as it was when the run was saved that this one goes on from.
func (m *pipegcn) recalled(t transfer, like *late) *line {
	l := &line{}
	shape := func() tensor.Matrix { return m.dev.Scratch(like.in.Type(), like.in.Rows, like.in.Cols) }
	if in := shape(); m.recall(lateName(t), in) {
		l.last = &late{&exchange{m: m.exact, t: t}, in, in, m}
	} else {
		m.dev.Free(in)
	}
	if mean := shape(); m.recall(meanName(t), mean) {
		l.mean = mean
	} else {
		m.dev.Free(mean)
	}
	return l
}

// finish waits for the rows of the last epoch, which nobody will use: a peer may
// still be sending them.
func (m *pipegcn) finish() error {
	m.remember()
	for _, t := range m.order {
		l := m.lines[t]
		l.last.done()
		if !l.mean.IsZero() {
			m.dev.Free(l.mean)
		}
	}
	m.lines, m.order = map[transfer]*line{}, nil
	return m.first
}
