package netsim

import "math/bits"

// routes has, for each host that something was sent to, the shortest paths from all
// switches. They are computed on first use, so that memory grows with what is in
// use. Hosts do not forward.
type routes struct {
	f       *fabric
	columns []*column // by destination
	sets    [][]int32 // sets of ports that are in use as next hops
	known   map[string]int32
}

// column is one destination. Switches are counted from the first of them.
type column struct {
	hops []int16 // links to the destination; far where there is no path
	next []int32 // a set of ports; unknown where it was not asked for yet
}

const far, unknown = 1 << 14, -1

func newRoutes(f *fabric) routes {
	return routes{f: f, columns: make([]*column, f.hosts), known: map[string]int32{}}
}

// to is the column of a destination.
func (r *routes) to(dst int32) *column {
	if c := r.columns[dst]; c != nil {
		return c
	}
	switches := len(r.f.nodes) - r.f.hosts
	c := &column{hops: make([]int16, switches), next: make([]int32, switches)}
	for i := range c.hops {
		c.hops[i], c.next[i] = far, unknown
	}
	r.search(c, dst)
	r.columns[dst] = c
	return c
}

// search is a breadth-first search from the destination.
func (r *routes) search(c *column, dst int32) {
	front, hops := []int32{dst}, int16(0)
	for len(front) > 0 {
		hops++
		var next []int32
		for _, n := range front {
			for _, p := range r.f.nodes[n].ports {
				if to := r.f.ports[p].to; !r.f.isHost(to) && c.hops[int(to)-r.f.hosts] == far {
					c.hops[int(to)-r.f.hosts] = hops
					next = append(next, to)
				}
			}
		}
		front = next
	}
}

// towards are the ports of a node that lead to the destination by the fewest links.
func (r *routes) towards(c *column, n, dst int32) (ports []int32) {
	best := int16(far)
	for _, p := range r.f.nodes[n].ports {
		hops := int16(far)
		if to := r.f.ports[p].to; to == dst {
			hops = 0
		} else if !r.f.isHost(to) {
			hops = c.hops[int(to)-r.f.hosts]
		}
		if hops < best {
			best, ports = hops, ports[:0]
		}
		if hops == best && hops < far {
			ports = append(ports, p)
		}
	}
	return ports
}

// intern is the number of a set of ports.
func (r *routes) intern(ports []int32) int32 {
	key := make([]byte, 0, 4*len(ports))
	for _, p := range ports {
		key = append(key, byte(p), byte(p>>8), byte(p>>16), byte(p>>24))
	}
	id, ok := r.known[string(key)]
	if !ok {
		id = int32(len(r.sets))
		r.known[string(key)], r.sets = id, append(r.sets, ports)
	}
	return id
}

// choices are the ports of a node that are next hops to a destination.
func (r *routes) choices(n, dst int32) []int32 {
	c := r.to(dst)
	if r.f.isHost(n) {
		return r.towards(c, n, dst)
	}
	set := &c.next[int(n)-r.f.hosts]
	if *set == unknown {
		*set = r.intern(r.towards(c, n, dst))
	}
	return r.sets[*set]
}

// choose is one of some ports, the same for the same hash at the same node.
func choose(ports []int32, hash uint64, n int32) int32 {
	if len(ports) == 1 {
		return ports[0]
	}
	x, _ := bits.Mul64(scramble(hash+uint64(n)<<40), uint64(len(ports)))
	return ports[x]
}

// scramble is a hash of 64 bits.
func scramble(z uint64) uint64 {
	z = (z ^ z>>33) * 0xff51afd7ed558ccd
	z = (z ^ z>>33) * 0xc4ceb9fe1a85ec53
	return z ^ z>>33
}

// path are the ports that packets with a hash pass on their way.
func (r *routes) path(from, to int32, hash uint64) (ports []int32) {
	for n := from; n != to; {
		p := choose(r.choices(n, to), hash, n)
		ports = append(ports, p)
		n = r.f.ports[p].to
	}
	return ports
}

// latency is how long a packet takes over a path whose queues are empty.
func (f *fabric) latency(path []int32, bytes int64) (t Time) {
	for _, p := range path {
		t += f.ports[p].transmit(bytes) + f.ports[p].delay
	}
	return t
}

// Alone is how long a transfer takes on an empty network, as fast as the slowest link of its
// path.
func (f *fabric) Alone(from, to int, bytes int64) Time {
	packets := max(1, (bytes+f.top.Payload-1)/f.top.Payload)
	total := bytes + packets*f.top.Header
	packet := min(total, f.top.Payload+f.top.Header)
	path := f.paths.path(int32(from), int32(to), 0)
	var slowest Time
	for _, p := range path {
		slowest = max(slowest, f.ports[p].transmit(total)-f.ports[p].transmit(packet))
	}
	return slowest + f.latency(path, packet)
}

// share is the part of a flow's bytes that pass a port.
type share struct {
	port int32
	part float64
}

// spread are the shares of all ports when packets are sprayed evenly at every switch.
func (r *routes) spread(from, to int32) (out []share) {
	parts, order := map[int32]float64{from: 1}, []int32{from}
	for i := 0; i < len(order); i++ {
		n := order[i]
		if n == to {
			continue
		}
		ports := r.choices(n, to)
		for _, p := range ports {
			part, next := parts[n]/float64(len(ports)), r.f.ports[p].to
			out = append(out, share{p, part})
			if _, ok := parts[next]; !ok {
				order = append(order, next)
			}
			parts[next] += part
		}
	}
	return out
}
