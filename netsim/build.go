package netsim

import "fmt"

// node is a host or a switch. Hosts have the lowest numbers.
type node struct {
	name  string
	ports []int32 // the directions of links that leave it
	// buffered is the bytes in all queues of a switch.
	buffered int64
	sprayed  uint32 // packets, for taking ports one after the other
}

// port is one direction of a link: the queue at its sender, the transmitter and the wire.
type port struct {
	from, to int32 // nodes
	rate     Rate
	delay    Time
	perByte  Time // picoseconds to transmit a byte, where that is a whole number; else 0
	limit    int64

	queues    []list // waiting packets, one list per priority
	waiting   uint64 // the priorities that have some
	queued    int64  // bytes in them
	busyUntil Time   // when the transmission under way ends
	called    bool   // eventFree is scheduled
	inFlight  list   // transmitted, and not arrived yet

	groups []groupWaiting // that wait, where Packets counts them

	nic  *nic // of a host: connections that have something to send
	stat portStat
}

// transmit is how long the port is occupied by some bytes.
func (p *port) transmit(bytes int64) Time {
	if p.perByte > 0 {
		return p.perByte * Time(bytes)
	}
	return p.rate.Transmit(bytes)
}

// list is a first-in first-out list of packets, by their numbers; 0: none.
type list struct {
	first, last int32
	bytes       int64
}

// fabric is the hosts, switches and ports of a topology.
type fabric struct {
	top   Topology
	hosts int
	nodes []node
	ports []port
	paths routes
}

// Hosts is how many hosts there are, numbered from 0.
func (f *fabric) Hosts() int { return f.hosts }

// Topology is what the network was made from.
func (f *fabric) Topology() Topology { return f.top }

func build(t Topology) *fabric {
	f := &fabric{top: t, hosts: t.HostCount()}
	for h := range f.hosts {
		f.add(fmt.Sprintf("host %d", h))
	}
	switch t.Kind {
	case "star":
		f.buildStar()
	case "leaf-spine":
		f.buildLeafSpine()
	case "fat-tree":
		f.buildFatTree()
	case "rail":
		f.buildRail()
	}
	f.paths = newRoutes(f)
	return f
}

func (f *fabric) isHost(n int32) bool { return int(n) < f.hosts }

// add adds a node.
func (f *fabric) add(name string) int32 {
	f.nodes = append(f.nodes, node{name: name})
	return int32(len(f.nodes) - 1)
}

// addEach adds n nodes, numbered.
func (f *fabric) addEach(name string, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = f.add(fmt.Sprintf("%s %d", name, i))
	}
	return out
}

// join adds the two directions of a link.
func (f *fabric) join(a, b int32, rate Rate) {
	f.joinOne(a, b, rate)
	f.joinOne(b, a, rate)
}

func (f *fabric) joinOne(from, to int32, rate Rate) {
	p := port{from: from, to: to, rate: rate, delay: f.top.Delay, queues: make([]list, f.top.Queues)}
	if per := 8 * int64(Second) / int64(rate); per*int64(rate) == 8*int64(Second) {
		p.perByte = Time(per)
	}
	if !f.isHost(from) && !f.top.Shared {
		p.limit = f.top.Buffer
	}
	f.nodes[from].ports = append(f.nodes[from].ports, int32(len(f.ports)))
	f.ports = append(f.ports, p)
}

func (f *fabric) buildStar() {
	s := f.add("switch")
	for h := range f.hosts {
		f.join(int32(h), s, f.top.Rate)
	}
}

func (f *fabric) buildLeafSpine() {
	leaves, spines := f.addEach("leaf", f.top.Leaves), f.addEach("spine", f.top.Spines)
	for h := range f.hosts {
		f.join(int32(h), leaves[h/f.top.Hosts], f.top.Rate)
	}
	f.joinAll(leaves, spines)
}

// joinAll joins each of a with each of b.
func (f *fabric) joinAll(a, b []int32) {
	for _, x := range a {
		for _, y := range b {
			f.join(x, y, f.top.uplink())
		}
	}
}

// buildFatTree builds the fat tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008): k pods of k/2 edge
// and k/2 aggregation switches, k*k/4 core switches, k/2 hosts per edge switch.
func (f *fabric) buildFatTree() {
	half := f.top.K / 2
	core := f.addEach("core", half*half)
	for pod := range f.top.K {
		edge := f.addEach(fmt.Sprintf("pod %d edge", pod), half)
		aggregation := f.addEach(fmt.Sprintf("pod %d aggregation", pod), half)
		for i, e := range edge {
			for h := range half {
				f.join(int32((pod*half+i)*half+h), e, f.top.Rate)
			}
		}
		f.joinAll(edge, aggregation)
		for i, a := range aggregation {
			f.joinAll([]int32{a}, core[i*half:(i+1)*half])
		}
	}
}

func (f *fabric) buildRail() {
	inside := f.addEach("server switch", f.top.Servers)
	rails, spines := f.addEach("rail", f.top.GPUs), f.addEach("spine", f.top.Spines)
	for h := range f.hosts {
		f.join(int32(h), inside[h/f.top.GPUs], f.top.Inside)
		f.join(int32(h), rails[h%f.top.GPUs], f.top.Rate)
	}
	f.joinAll(rails, spines)
}

// name is a port in words.
func (f *fabric) name(p int32) string {
	return f.nodes[f.ports[p].from].name + " to " + f.nodes[f.ports[p].to].name
}
