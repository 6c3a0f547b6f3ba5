package netsim

// QueuedGroups is how many groups of transfers (Transfer.Group) have packets waiting in switches, counted at intervals.
type QueuedGroups struct {
	Samples int64 `json:"samples"`
	// Leaf is of the switches that hosts are joined to, Core of all others.
	Leaf QueuedTier `json:"leaf"`
	Core QueuedTier `json:"core"`
}

// QueuedTier is the counts of some switches.
type QueuedTier struct {
	Mean   float64 `json:"mean"`   // groups at a switch, over its samples
	Most   int     `json:"most"`   // of them
	Used   float64 `json:"used"`   // part of the samples of ports in which packets waited
	Shared float64 `json:"shared"` // part in which those of two groups or more did
}

// queuedCount counts while a simulation runs.
type queuedCount struct {
	every, next Time
	samples     int64
	tiers       [2]struct {
		switches, ports   int64
		sum, used, shared int64
		most              int
	}
	seen []int64 // by group: the switch and sample in which it was counted last
	turn int64
}

// groupWaiting is a group's packets at a port.
type groupWaiting struct {
	group   uint32
	packets int
}

// CountGroups counts the groups in queues at every interval from now on. It is called before anything is sent.
func (n *Packets) CountGroups(every Time) {
	n.groups = &queuedCount{every: every, next: n.now + every}
}

// waits and leaves keep a port's groups.
func (o *port) waits(group uint32) {
	for i := range o.groups {
		if o.groups[i].group == group {
			o.groups[i].packets++
			return
		}
	}
	o.groups = append(o.groups, groupWaiting{group, 1})
}

func (o *port) leaves(group uint32) {
	for i := range o.groups {
		if g := &o.groups[i]; g.group == group {
			if g.packets--; g.packets == 0 {
				last := len(o.groups) - 1
				o.groups[i] = o.groups[last]
				o.groups = o.groups[:last]
			}
			return
		}
	}
}

// sample counts at the times up to that of the next event: between two events queues stay as they are.
func (n *Packets) sample(until Time) {
	c := n.groups
	if until < c.next {
		return
	}
	times := int64((until-c.next)/c.every) + 1
	c.next += Time(times) * c.every
	c.samples += times
	for at := n.hosts; at < len(n.nodes); at++ {
		c.turn++
		tier, groups := &c.tiers[n.tier(&n.nodes[at])], 0
		for _, p := range n.nodes[at].ports {
			here := n.ports[p].groups
			tier.ports += times
			if len(here) > 0 {
				tier.used += times
			}
			if len(here) > 1 {
				tier.shared += times
			}
			for _, g := range here {
				groups += c.first(g.group)
			}
		}
		tier.switches += times
		tier.sum += times * int64(groups)
		tier.most = max(tier.most, groups)
	}
}

// first is 1 where a group was not counted in this turn.
func (c *queuedCount) first(group uint32) int {
	for int(group) >= len(c.seen) {
		c.seen = append(c.seen, 0)
	}
	if c.seen[group] == c.turn {
		return 0
	}
	c.seen[group] = c.turn
	return 1
}

// tier is 0 for a switch that hosts are joined to, else 1.
func (n *Packets) tier(at *node) int {
	for _, p := range at.ports {
		if n.isHost(n.ports[p].to) {
			return 0
		}
	}
	return 1
}

// QueuedGroups returns what CountGroups has counted.
func (n *Packets) QueuedGroups() *QueuedGroups {
	if n.groups == nil {
		return nil
	}
	q := &QueuedGroups{Samples: n.groups.samples}
	for i, out := range []*QueuedTier{&q.Leaf, &q.Core} {
		if t := &n.groups.tiers[i]; t.switches > 0 {
			*out = QueuedTier{float64(t.sum) / float64(t.switches), t.most, float64(t.used) / float64(t.ports),
				float64(t.shared) / float64(t.ports)}
		}
	}
	return q
}
