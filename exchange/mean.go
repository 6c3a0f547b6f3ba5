package exchange

import (
	"starling/tensor"
	"starling/wire"
)

// Mean correction moves stale rows so that they are right on average. With z the rows that
// a peer has for us, z̃ those that we use in their place, and μ and μ̃ their means,
//
//	z̃ ← z̃ + (z̃·μ̃ᵀ/|μ̃|²)·(μ - μ̃)
//
// which has the mean μ. That is the least change of weights, of z̃ = x·W̃, that explains how
// the mean has moved (Broyden, "A Class of Methods for Solving Nonlinear Simultaneous
// Equations", 1965, §2). μ is of this epoch and waited for: one row per peer and layer,
// forward and backward.
//
// Why: what all rows share is what a step of the weights moves most, and where the loss is
// steepest. With momentum β steps are stable up to 2(1+β)/(1-β) over the curvature; of
// gradients that are an epoch stale, up to 1 over it: 38 times less for Adam's 0.9. What
// rows do one by one is summed away over neighbours, and may be stale.

// MeanOption is an option of strategies that use stale rows.
type MeanOption struct {
	Means bool `json:"means" suffix:"means" resume:"free" omit:"default" help:"correct the mean of stale rows: one row per peer and layer is sent fresh, and waited for"`
}

// group is rows, lo to hi, that have a mean of their own: those that one worker computes
// and another sends or receives.
type group struct{ lo, hi int }

// Groups are the groups of all peers: of[q] to of[q+1] are peer q's.
type Groups struct {
	list []group
	of   []int64
}

// groupsOf are the rows of each peer; where they are relayed, by who computes them.
func groupsOf(ptr []int64, holders []int) Groups {
	g := Groups{of: []int64{0}}
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

// But are the groups of peers that are not left out.
func (g Groups) But(left []bool) Groups {
	out := Groups{of: []int64{0}}
	for q, leave := range left {
		if !leave {
			out.list = append(out.list, g.list[g.of[q]:g.of[q+1]]...)
		}
		out.of = append(out.of, int64(len(out.list)))
	}
	return out
}

// Whole are as many groups, each of all rows below n.
func (g Groups) Whole(n int) Groups {
	for i := range g.list {
		g.list[i] = group{0, n}
	}
	return g
}

// Sent and Received are the groups of rows that leave a halo's worker, and that it needs.
func (h *Halo) Sent() Groups     { return groupsOf(h.SendPtr, h.sendHolders) }
func (h *Halo) Received() Groups { return groupsOf(h.HaloPtr, h.haloHolders) }

// Means corrects the means of stale rows; nil corrects nothing.
type Means struct{ rows *Rows }

// NewMeans corrects means with transfers of rows, if they are to be corrected.
func NewMeans(rows *Rows, o MeanOption) *Means {
	if !o.Means {
		return nil
	}
	return &Means{rows}
}

// Correction is the means of rows in flight; nil: rows stay as they are.
type Correction struct {
	m        *Means
	t        Tag
	received Groups
	h        *Halo // whose rows may be relayed; nil: not
	means    *Transfer
}

// Exchange begins to bring the means of halo rows.
func (m *Means) Exchange(t Tag, h *Halo, src tensor.Matrix) *Correction {
	if m == nil {
		return nil
	}
	dev := m.rows.W.Dev
	sent := dev.Scratch(src.Type(), h.Send.Len(), src.Cols)
	defer dev.Free(sent)
	dev.GatherRows(sent, src, h.Send)
	c := m.Swap(t, sent, h.Sent(), h.Received())
	c.h = h
	return c
}

// Reverse begins to bring the means of gradients of local rows. Those of relayed rows are
// first added inside the server, as the gradients themselves are.
func (m *Means) Reverse(t Tag, h *Halo, grads tensor.Matrix) *Correction {
	if m == nil {
		return nil
	}
	if h.Relay != nil {
		grads = m.addInside(t, h, grads)
		defer m.rows.W.Dev.Free(grads)
	}
	return m.Swap(t, grads, h.Received(), h.Sent())
}

// addInside is gradients of direct rows with the means of what the other workers of the
// server have for them.
func (m *Means) addInside(t Tag, h *Halo, grads tensor.Matrix) tensor.Matrix {
	dev, inside, n := m.rows.W.Dev, h.Relay.halo(), h.DirectRows()
	t.relayed = true
	theirs := dev.New(grads.Type(), inside.Send.Len(), grads.Cols)
	m.Reverse(t, inside, grads.Slice(n, grads.Rows)).Apply(theirs)
	sum := dev.Scratch(grads.Type(), n, grads.Cols)
	dev.Copy(sum, grads.Slice(0, n))
	m.rows.AddReturned(inside, sum, theirs)
	dev.Free(theirs)
	return sum
}

// Swap sends the means of groups of rows to peers, and asks for the means of theirs.
func (m *Means) Swap(t Tag, rows tensor.Matrix, sent, received Groups) *Correction {
	if m == nil {
		return nil
	}
	dev, c := m.rows.W.Dev, &Correction{m: m, t: t, received: received}
	t.mean, t.Kind = true, wire.Control
	x := m.rows.Transfer(t, dev.Scratch(dev.Type(), len(received.list), rows.Cols),
		dev.Scratch(dev.Type(), len(sent.list), rows.Cols))
	x.owned = append(x.owned, x.In, x.Out)
	x.Receive(received.of)
	for i, g := range sent.list {
		mean(dev, x.Out.Slice(i, i+1), rows.Slice(g.lo, g.hi))
	}
	x.Send(sent.of)
	c.means = x
	return c
}

// mean is the mean of rows. REQUIRES: there are some.
func mean(dev tensor.Device, into, rows tensor.Matrix) {
	dev.ColumnSum(into, rows, false)
	dev.Combine(into, 1/float64(rows.Rows), into, 0, tensor.Matrix{})
}

// Apply moves rows to their means, and then those that are relayed.
func (c *Correction) Apply(rows tensor.Matrix) {
	if c == nil {
		return
	}
	c.means.Wait()
	for i, g := range c.received.list {
		moveTo(c.m.rows.W.Dev, c.means.In.Slice(i, i+1), rows.Slice(g.lo, g.hi))
	}
	c.means.Done()
	if c.h == nil || c.h.Relay == nil {
		return
	}
	t, n := c.t, c.h.DirectRows()
	t.relayed = true
	c.m.Exchange(t, c.h.Relay.halo(), rows.Slice(0, n)).Apply(rows.Slice(n, rows.Rows))
}

// ApplySum moves rows that are sums over peers to the sum of their means; nothing where no
// mean comes.
func (c *Correction) ApplySum(rows tensor.Matrix) {
	if c == nil {
		return
	}
	c.means.Wait()
	if len(c.received.list) > 0 {
		dev := c.m.rows.W.Dev
		sum := dev.Scratch(dev.Type(), 1, rows.Cols)
		dev.ColumnSum(sum, c.means.In, false)
		moveTo(dev, sum, rows)
		dev.Free(sum)
	}
	c.means.Done()
}

// moveTo gives rows a mean. A row moves by its share in the mean they have. Where that is
// small beside them, shares are large, and all rows move alike instead: by 1, the mean of
// all shares.
func moveTo(dev tensor.Device, to, rows tensor.Matrix) {
	by, share := dev.Scratch(dev.Type(), 1, rows.Cols), dev.Scratch(dev.Type(), rows.Rows, 1)
	mean(dev, by, rows)
	dev.MatMul(share, rows, by, tensor.MatMul{TransB: true})
	dots := tensor.Dots(dev, [2]tensor.Matrix{by, by}, [2]tensor.Matrix{share, share})
	size := dots[0]
	dev.Combine(by, 1, to, -1, by)
	const large = 1000 // mean square of shares of which the half is left
	scale, alike := 0.0, dev.New(dev.Type(), 1, 1)
	if all := large*size*size + dots[1]/float64(rows.Rows); all > 0 {
		scale = large * size / all
	}
	dev.Upload(alike, []float64{1 - scale*size})
	dev.Combine(share, scale, share, 0, tensor.Matrix{})
	dev.Activate(share, share, tensor.Epilogue{Bias: alike})
	dev.MatMul(rows, share, by, tensor.MatMul{Add: true})
	for _, x := range []tensor.Matrix{by, share, alike} {
		dev.Free(x)
	}
}

// Averaging is a policy that sends means.
type Averaging interface {
	// MeansTo is how many go to a peer with a transfer of a training pass.
	MeansTo(t Tag, h *Halo, peer, epoch int) int64
}

// To is one mean for each group of a halo that a transfer has for the peer.
func (m *Means) To(t Tag, h *Halo, peer int) int64 {
	if m == nil {
		return 0
	}
	g := h.Sent()
	if t.Backward {
		g = h.Received()
	}
	n := g.of[peer+1] - g.of[peer]
	if h.Relay != nil {
		n += m.To(t, h.Relay.halo(), peer)
	}
	return n
}
