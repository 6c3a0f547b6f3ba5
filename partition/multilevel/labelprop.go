package multilevel

import (
	"math/bits"

	"starling/rng"
)

// labelPropagation clusters a level's vertices by size-constrained label propagation: every
// vertex joins the cluster it has most edge weight to, as long as that one stays below a cap.
//
// H. Meyerhenke, P. Sanders, C. Schulz: Partitioning complex networks via
// size-constrained clustering, 2014; L. Gottesbüren et al.: Deep multilevel graph
// partitioning, 2021 (two-hop clusters).
//
// Vertices are processed in groups, low degrees first. All vertices of a group choose in
// parallel from the state before it, and their moves are then applied in order; so the
// result does not depend on threads, and groups are small enough that few neighbours choose
// at once.
type labelPropagation struct {
	r     *run
	g     *levelGraph
	cap   []int64 // by constraint
	label []uint32
	count []uint32 // by cluster
	load  []int64  // by cluster and constraint; nil: the same as count
	key   rng.Key
}

// noCluster is the cluster of no vertex.
const noCluster = ^uint32(0)

// cluster returns the cluster of every vertex, named by one of its vertices. With balls, a
// small graph without edge weights starts from these.
func (r *run) cluster(g *levelGraph, cap []int64, rounds int, balls bool, key rng.Key) []uint32 {
	c := &labelPropagation{r: r, g: g, cap: cap, key: key}
	if g.edges() <= cacheSized {
		c.sequential(rounds, balls)
		free(r.mem, c.load)
		free(r.mem, c.count)
		return c.label
	}
	c.start()
	order, groups := c.order()
	want := makeZeroed[uint32](r.mem, g.n)
	for round := range rounds {
		moved := 0
		for i := range len(groups) - 1 {
			moved += c.group(order[groups[i]:groups[i+1]], want, key.Fold(uint64(round)))
		}
		if moved < g.n/20 || r.ctx.Err() != nil {
			break
		}
	}
	c.twoHop(want)
	free(r.mem, want)
	free(r.mem, order)
	free(r.mem, c.load)
	free(r.mem, c.count)
	return c.label
}

func (c *labelPropagation) start() {
	n := c.g.n
	c.label = makeZeroed[uint32](c.r.mem, n)
	for v := range c.label {
		c.label[v] = uint32(v)
	}
	c.count = makeZeroed[uint32](c.r.mem, n)
	for v := range c.count {
		c.count[v] = 1
	}
	c.load = makeZeroed[int64](c.r.mem, len(c.g.vw))
	copy(c.load, c.g.vw)
}

// order sorts vertices into groups: by the power of two of the degree, and at random
// into about equal groups within one. Vertices without edges are left out.
func (c *labelPropagation) order() (order []uint32, groups []int) {
	const magnitudes = 34
	size := max(c.g.n/32, 512)
	var in [magnitudes]int
	for v := range uint32(c.g.n) {
		in[bits.Len(uint(c.g.degree(v)))]++
	}
	var first, slots [magnitudes]int
	all := 0
	for m := 1; m < magnitudes; m++ {
		first[m], slots[m] = all, (in[m]+size-1)/size
		all += slots[m]
	}
	key := c.key.Fold(1 << 32)
	slotOf := func(v uint32) int {
		m := bits.Len(uint(c.g.degree(v)))
		if slots[m] <= 1 {
			return first[m]
		}
		return first[m] + key.IntN(uint64(v), slots[m])
	}
	groups = make([]int, all+1)
	for v := range uint32(c.g.n) {
		if c.g.degree(v) > 0 {
			groups[slotOf(v)+1]++
		}
	}
	for i := range all {
		groups[i+1] += groups[i]
	}
	next := append([]int(nil), groups...)
	order = makeZeroed[uint32](c.r.mem, c.g.n)
	for v := range uint32(c.g.n) {
		if c.g.degree(v) > 0 {
			i := slotOf(v)
			order[next[i]] = v
			next[i]++
		}
	}
	return order[:groups[all]], groups
}

// group lets some vertices choose, then moves them; it returns how many moved.
func (c *labelPropagation) group(vs, want []uint32, key rng.Key) (moved int) {
	c.r.each(len(vs), 256, func(s *scratch, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			want[i] = c.choose(s, vs[i], key)
		}
	})
	for i, v := range vs {
		if to := want[i]; to != c.label[v] && c.move(v, to) {
			moved++
		}
	}
	return moved
}

// rate sums the weight of v's edges by cluster.
func (c *labelPropagation) rate(s *scratch, v uint32) {
	lo, hi := c.g.off[v], c.g.off[v+1]
	t := &s.rating
	t.reset(int(hi - lo))
	keys := t.gather(c.g.adj[lo:hi], c.label)
	if c.g.w == nil {
		t.addUnit(keys)
	} else {
		t.addWeighted(keys, c.g.w[lo:hi])
	}
}

// choose is the cluster v has most weight to among those it fits into, its own included.
func (c *labelPropagation) choose(s *scratch, v uint32, key rng.Key) uint32 {
	p := clusterChoice{v: v, own: c.label[v], salt: uint32(key.Uint64(uint64(v))) | 1}
	if c.g.degree(v) <= shortRow {
		return c.chooseShort(&p)
	}
	c.rate(s, v)
	t := &s.rating
	p.start(t.get(p.own))
	for _, i := range t.used {
		c.consider(&p, uint32(t.slot[i]>>32)-1, uint32(t.slot[i]))
		t.slot[i] = 0
	}
	t.used = t.used[:0]
	return p.best
}

// shortRow is the degree up to which comparing all neighbours is faster than a table.
const shortRow = 12

func (c *labelPropagation) chooseShort(p *clusterChoice) uint32 {
	var label, weight [shortRow]uint32
	n, own := 0, uint32(0)
	lo, hi := c.g.off[p.v], c.g.off[p.v+1]
	for i, u := range c.g.adj[lo:hi] {
		l, w := c.label[u], uint32(1)
		if c.g.w != nil {
			w = c.g.w[lo+int64(i)]
		}
		if l == p.own {
			own += w
			continue
		}
		j := 0
		for j < n && label[j] != l {
			j++
		}
		if j == n {
			label[j] = l
			n++
		}
		weight[j] += w
	}
	p.start(own)
	for j := range n {
		c.consider(p, label[j], weight[j])
	}
	return p.best
}

// clusterChoice is the best cluster seen so far for a vertex.
type clusterChoice struct {
	v, own, salt      uint32
	best, weight, tie uint32
}

func (p *clusterChoice) start(own uint32) { p.best, p.weight = p.own, own }

// consider takes cluster l if it is better than the best so far. Ties are broken at random,
// but a vertex does not leave its own cluster for an equal one.
func (c *labelPropagation) consider(p *clusterChoice, l, w uint32) {
	if w < p.weight || l == p.own || w == p.weight && p.best == p.own {
		return
	}
	tie := l * p.salt
	if w == p.weight && tie >= p.tie || !c.fits(p.v, l) {
		return
	}
	p.best, p.weight, p.tie = l, w, tie
}

// fits reports whether v fits into cluster l.
func (c *labelPropagation) fits(v, l uint32) bool {
	if c.g.vw == nil {
		return int64(c.count[l]) < c.cap[0]
	}
	n := c.g.con
	for k, most := range c.cap {
		if w := c.g.vw[int(v)*n+k]; w > 0 && c.load[int(l)*n+k]+w > most {
			return false
		}
	}
	return true
}

// move puts v into cluster l, unless that has become full or empty meanwhile.
func (c *labelPropagation) move(v, l uint32) bool {
	if c.count[l] == 0 || !c.fits(v, l) {
		return false
	}
	from := c.label[v]
	c.label[v] = l
	c.count[from]--
	c.count[l]++
	if c.g.vw == nil {
		return true
	}
	n := c.g.con
	for k := range n {
		w := c.g.vw[int(v)*n+k]
		c.load[int(from)*n+k] -= w
		c.load[int(l)*n+k] += w
	}
	return true
}

// twoHop joins vertices that are still single with others that favour the same cluster:
// above all, leaves of a hub whose cluster is full. Vertices without edges are joined with
// one another.
func (c *labelPropagation) twoHop(favourite []uint32) {
	single := func(v uint32) bool { return c.count[c.label[v]] == 1 }
	c.r.each(c.g.n, 1024, func(s *scratch, _, lo, hi int) {
		for v := uint32(lo); v < uint32(hi); v++ {
			favourite[v] = noCluster
			if single(v) && c.g.degree(v) > 0 {
				favourite[v] = c.favourite(s, v)
			}
		}
	})
	open := makeZeroed[uint32](c.r.mem, c.g.n) // by favourite: the cluster being filled, plus one
	edgeless := noCluster
	singles := make([]uint32, 0, 1024)
	for v := range uint32(c.g.n) {
		if single(v) {
			singles = append(singles, v)
		}
	}
	for _, v := range singles {
		if c.g.degree(v) == 0 {
			edgeless = c.join(v, edgeless)
			continue
		}
		f := favourite[v]
		open[f] = c.join(v, open[f]-1) + 1
	}
	free(c.r.mem, open)
}

// join puts v into cluster l if it fits; it returns the cluster to try next.
func (c *labelPropagation) join(v, l uint32) uint32 {
	if l != noCluster && c.fits(v, l) {
		c.move(v, l)
		return l
	}
	return c.label[v]
}

// favourite is the cluster v has most weight to, full or not.
func (c *labelPropagation) favourite(s *scratch, v uint32) uint32 {
	c.rate(s, v)
	t := &s.rating
	own := c.label[v]
	best, bestW := own, uint32(0)
	for _, i := range t.used {
		w, l := uint32(t.slot[i]), uint32(t.slot[i]>>32)-1
		if l != own && (w > bestW || w == bestW && l < best) {
			best, bestW = l, w
		}
	}
	t.clear()
	return best
}
