package train

import (
	"starling/tensor"
	"starling/wire"
)

// With Choice.Means late and old rows are put right on average. With z the rows that a peer has for us, z̃
// those that we use in their place, and μ and μ̃ their means,
//
//	z̃ ← z̃ + (z̃·μ̃ᵀ/|μ̃|²)·(μ - μ̃)
//
// which has the mean μ. That is the least change of weights, of z̃ = x·W̃, that explains how
// the mean has moved (Broyden, "A Class of Methods for Solving Nonlinear Simultaneous
// Equations", 1965, §2). μ is of this epoch and waited for: a row a peer and layer, forwards and backwards.
//
// Why: what all rows share is what a step of the weights moves most, and where the loss is
// steepest. With momentum β steps are stable up to 2(1+β)/(1-β) over the curvature; of
// gradients that are an epoch late, up to 1 over it: 38 times less for Adam's 0.9. What
// rows do one by one is summed away over neighbours, and may be late.

// group is rows, lo to hi, that have a mean of their own: those that one worker computes and
// another sends or receives.
type group struct{ lo, hi int }

// groups are those of all peers: of[q] to of[q+1] are peer q's.
type groups struct {
	list []group
	of   []int64
}

// groupsOf are the rows of each peer; where they are passed on, by who computes them.
func groupsOf(ptr []int64, holders []int) groups {
	g := groups{of: []int64{0}}
	for q := range len(ptr) - 1 {
		for lo, hi := int(ptr[q]), int(ptr[q+1]); lo < hi; {
			end := hi
			if holders != nil {
				end = lo + 1
				for end < hi && holders[end] == holders[lo] {
					end++
				}
			}
			g.list, lo = append(g.list, group{lo, end}), end
		}
		g.of = append(g.of, int64(len(g.list)))
	}
	return g
}

// but are the groups of peers that are not left out.
func (g groups) but(left []bool) groups {
	out := groups{of: []int64{0}}
	for q, leave := range left {
		if !leave {
			out.list = append(out.list, g.list[g.of[q]:g.of[q+1]]...)
		}
		out.of = append(out.of, int64(len(out.list)))
	}
	return out
}

// sent and come are the groups of rows that leave a border, and that come to it.
func (b *border) sent() groups { return groupsOf(b.sendPtr, b.sendHolders) }
func (b *border) come() groups { return groupsOf(b.farPtr, b.farHolders) }

// centring is the means of rows on their way; nil: rows stay as they are.
type centring struct {
	m     *exact
	t     transfer
	come  groups
	b     *border // whose far rows may be passed on; nil: not
	means *exchange
}

// centre begins to bring what far rows are on average.
func (m *exact) centre(t transfer, b *border, src tensor.Matrix) *centring {
	if !m.opt.Strategy.Means {
		return nil
	}
	sent := m.dev.Scratch(src.Type(), b.send.Len(), src.Cols)
	defer m.dev.Free(sent)
	m.dev.GatherRows(sent, src, b.send)
	c := m.swapMeans(t, sent, b.sent(), b.come())
	c.b = b
	return c
}

// centreBack begins to bring what gradients of own rows are on average. Those of rows that
// are passed on are first added up inside the server, as the gradients themselves are.
func (m *exact) centreBack(t transfer, b *border, rows tensor.Matrix) *centring {
	if !m.opt.Strategy.Means {
		return nil
	}
	if b.relay != nil {
		rows = m.addMeans(t, b, rows)
		defer m.dev.Free(rows)
	}
	return m.swapMeans(t, rows, b.come(), b.sent())
}

// addMeans is straight rows with what the other workers of the server have for them on average.
func (m *exact) addMeans(t transfer, b *border, rows tensor.Matrix) tensor.Matrix {
	inside, n := b.relay.border(), b.straightRows()
	t.relayed = true
	theirs := m.dev.New(rows.Type(), inside.send.Len(), rows.Cols)
	m.centreBack(t, inside, rows.Slice(n, rows.Rows)).move(theirs)
	sum := m.dev.Scratch(rows.Type(), n, rows.Cols)
	m.dev.Copy(sum, rows.Slice(0, n))
	m.addTheirs(inside, sum, theirs)
	m.dev.Free(theirs)
	return sum
}

// swapMeans sends the means of rows to peers, and asks for those of theirs.
func (m *exact) swapMeans(t transfer, rows tensor.Matrix, sent, come groups) *centring {
	c := &centring{m: m, t: t, come: come}
	t.mean, t.kind = true, wire.Control
	x := m.exchange(t, m.dev.Scratch(m.dev.Type(), len(come.list), rows.Cols), m.dev.Scratch(m.dev.Type(), len(sent.list), rows.Cols))
	x.owned = append(x.owned, x.in, x.out)
	x.receive(come.of)
	for i, g := range sent.list {
		m.mean(x.out.Slice(i, i+1), rows.Slice(g.lo, g.hi))
	}
	x.send(sent.of)
	c.means = x
	return c
}

// mean is that of rows, of which there are some.
func (m *exact) mean(into, rows tensor.Matrix) {
	m.dev.ColumnSum(into, rows, false)
	m.dev.Combine(into, 1/float64(rows.Rows), into, 0, tensor.Matrix{})
}

// move puts rows right on average, and then those that are passed on.
func (c *centring) move(rows tensor.Matrix) {
	if c == nil {
		return
	}
	c.means.wait()
	for i, g := range c.come.list {
		c.m.moveTo(c.means.in.Slice(i, i+1), rows.Slice(g.lo, g.hi))
	}
	c.means.done()
	if c.b == nil || c.b.relay == nil {
		return
	}
	t, n := c.t, c.b.straightRows()
	t.relayed = true
	c.m.centre(t, c.b.relay.border(), rows.Slice(0, n)).move(rows.Slice(n, rows.Rows))
}

// moveTo gives rows a mean. A row moves by its share in the mean they have. Where that is small beside
// them, shares are large, and all rows move alike instead: by 1, the mean of all shares.
func (m *exact) moveTo(mean, rows tensor.Matrix) {
	by, share := m.dev.Scratch(m.dev.Type(), 1, rows.Cols), m.dev.Scratch(m.dev.Type(), rows.Rows, 1)
	m.mean(by, rows)
	m.dev.MatMul(share, rows, by, tensor.MatMul{TransB: true})
	size := m.dev.Dot(by, by)
	m.dev.Combine(by, 1, mean, -1, by)
	const large = 1000 // mean square of shares of which the half is left
	scale, alike := 0.0, m.dev.New(m.dev.Type(), 1, 1)
	if all := large*size*size + m.dev.Dot(share, share)/float64(rows.Rows); all > 0 {
		scale = large * size / all
	}
	m.dev.Upload(alike, []float64{1 - scale*size})
	m.dev.Combine(share, scale, share, 0, tensor.Matrix{})
	m.dev.Activate(share, share, tensor.After{Bias: alike})
	m.dev.MatMul(rows, share, by, tensor.MatMul{Add: true})
	for _, x := range []tensor.Matrix{by, share, alike} {
		m.dev.Free(x)
	}
}

// averaging is a mover that sends means.
type averaging interface {
	// means is how many go to a peer with a transfer of a training pass.
	means(t transfer, b *border, peer, epoch int) int64
}

// meansTo is one for each group of a border that a transfer has for the peer.
func (m *exact) meansTo(t transfer, b *border, peer int) int64 {
	if !m.opt.Strategy.Means {
		return 0
	}
	g := b.sent()
	if t.backward {
		g = b.come()
	}
	n := g.of[peer+1] - g.of[peer]
	if b.relay != nil {
		n += m.meansTo(t, b.relay.border(), peer)
	}
	return n
}
