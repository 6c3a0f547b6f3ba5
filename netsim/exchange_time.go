package netsim

import (
	"fmt"
	"time"

	"starling/innet"
)

// An exchange of one packet per row, on a star of its own with the links and the pipeline of the network: what blocks
// and the strawman (§2.3.2 of the paper) take for the same rows, without computing and other traffic.

// Times are how long exchanges take, where that is asked for. The strawman has an aggregator for each of limit
// destinations at a time.
func (h *switchHost) Times(p *innet.Plan, first, last int, g *innet.Graph, limit int) (blocks, strawman,
	unlimited time.Duration, err error) {
	if !h.a.c.opt.Switch.Strawman {
		return 0, 0, 0, nil
	}
	top := h.a.net.top
	if top.Kind != "star" {
		return 0, 0, 0, fmt.Errorf("the strawman is timed: found a %s, want a star", top.Kind)
	}
	passes := h.a.c.opt.Switch.Passes
	b, err := exchangeTime(top, p, first, last, h.a.units, h.a.memory, passes)
	if err != nil {
		return 0, 0, 0, err
	}
	s, err := strawmanTime(top, g, limit, p.Hosts, h.a.units, passes)
	if err != nil {
		return 0, 0, 0, err
	}
	u, err := strawmanTime(top, g, len(g.Host), p.Hosts, h.a.units, passes)
	return b.Duration(), s.Duration(), u.Duration(), err
}

// exchangeTime is the time of blocks of a plan, with their barriers.
func exchangeTime(top Topology, p *innet.Plan, first, last, units int, memory int64, passes float64) (Time, error) {
	n, err := NewPackets(top)
	if err != nil {
		return 0, err
	}
	c := &cluster{net: n, opt: Options{Switch: &SwitchOptions{Passes: passes}}}
	a := newAdding(c, n, p, units, memory)
	if err := a.build(p); err != nil {
		return 0, err
	}
	return a.exchange(first, last), nil
}

// newAdding is hosts of a plan that join the switches of a network by themselves.
func newAdding(c *cluster, n *Packets, p *innet.Plan, units int, memory int64) *adding {
	a := &adding{c: c, net: n, units: units, memory: memory}
	for r := range p.Hosts {
		c.hosts = append(c.hosts, r)
		a.hosts = append(a.hosts, &switchHost{a: a, rank: r, host: innet.NewHost(p, r, units, 1, a.hostOptions())})
	}
	return a
}

// exchange is the time of an exchange of rows of one packet.
func (a *adding) exchange(first, last int) Time {
	began, width := a.net.now, a.units*innet.UnitLanes
	row := make([]float64, width)
	a.c.over = nil
	for _, h := range a.hosts {
		h.x = &innet.Exchange{Lo: first, Hi: last, Width: width, Most: 1,
			Row: func(_ uint32, lo, hi int) []float64 { return row[lo:hi] }, Add: func(uint32, int, []float64) {}}
		h.over = make(chan struct{})
		h.begin()
	}
	for len(a.c.over) < len(a.hosts) && a.net.Step() {
	}
	return a.net.now - began
}

// strawmanTime is the time until all rows and sums of the strawman have arrived. Hosts send as fast as their links take
// rows; the switch takes a row in as many passes as it has aggregators for it.
func strawmanTime(top Topology, g *innet.Graph, limit, hosts, units int, passes float64) (Time, error) {
	n, err := NewPackets(top)
	if err != nil {
		return 0, err
	}
	var up, down []*hop
	for h := range int32(hosts) {
		up = append(up, n.newHop(n.between(h, int32(n.hosts)), rowDSCP))
		down = append(down, n.newHop(n.between(int32(n.hosts), h), rowDSCP))
	}
	bytes := int64(innet.HeaderBytes + units*innet.UnitBytes)
	s, free, last := innet.NewStrawmanSwitch(g, limit), Time(0), Time(0)
	arrived := func(bool) { last = n.now }
	for _, u := range innet.RandomSources(g) {
		up[g.Host[u]].send(bytes, func(bool) {
			var to []uint16
			added := s.Row(u, func(host uint16) { to = append(to, host) })
			leave := func() {
				for _, host := range to {
					down[host].send(bytes, arrived)
				}
			}
			if passes <= 0 {
				leave()
				return
			}
			free = max(free, n.now) + Time(float64(max(1, added))/passes*float64(Second))
			n.At(free, leave)
		})
	}
	Run(n, Never-1)
	return last, nil
}
