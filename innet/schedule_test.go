package innet

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"starling/internal/testseed"
)

// network is hosts and switches joined by links that lose, repeat and reorder packets, in
// virtual time.
type network struct {
	rand         *rand.Rand
	now          time.Duration
	events       events
	count        int
	lose, dup    float64
	delay        time.Duration // the most that a packet takes
	hosts        []*Host
	switches     []*Switch
	tables       []*Table
	leafOf       []int // nil: one switch
	due          []time.Duration
	packets      int
	recirculated int
	partial      [5]int // partial sums that have arrived at each switch of two levels from below
}

// event is a packet that arrives at a host (at >= 0) or at a switch (at < 0) from a port.
type event struct {
	time  time.Duration
	order int
	at    int
	port  int
	bytes []byte // nil: a host is to be polled
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return e[i].time < e[j].time || e[i].time == e[j].time && e[i].order < e[j].order
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (n *network) put(e event) {
	e.order = n.count
	n.count++
	heap.Push(&n.events, e)
}

// send puts a packet on a link.
func (n *network) send(at, port int, p *Packet) {
	n.packets++
	for copies := 1; copies > 0; copies-- {
		if n.rand.Float64() < n.lose {
			continue
		}
		if n.rand.Float64() < n.dup {
			copies++
		}
		b := p.Append(nil)
		if n.rand.IntN(20) == 0 {
			b[12] |= ECN
		}
		n.put(event{time: n.now + 1 + time.Duration(n.rand.Int64N(int64(n.delay))), at: at, port: port, bytes: b})
	}
}

// Ends of links: host h's is h, switch s's is -1-s. Switches are two leaves, and spines from the third on.
func (n *network) switchOf(host int) int {
	if n.leafOf == nil {
		return 0
	}
	return n.leafOf[host]
}

// fromSwitch is where a port of a switch leads to, and as which port the packet arrives.
func (n *network) fromSwitch(s, port int) (at, as int) {
	switch {
	case n.leafOf == nil:
		return port, 0
	case s >= 2:
		return -1 - port, len(n.hosts) + s - 2
	case port >= len(n.hosts):
		return -1 - (2 + port - len(n.hosts)), s
	}
	return port, 0
}

// step handles one event.
func (n *network) step(t *testing.T) {
	e := heap.Pop(&n.events).(event)
	n.now = e.time
	var p Packet
	if e.bytes != nil {
		if err := p.Parse(e.bytes); err != nil {
			t.Fatal(err)
		}
	}
	if e.at < 0 {
		s := -1 - e.at
		if p.Has(Sum) && s >= 2 {
			n.partial[s]++
		}
		took := n.switches[s].Handle(e.port, &p, func(port int, out *Packet) {
			at, as := n.fromSwitch(s, port)
			n.send(at, as, out)
		})
		n.recirculated += took.Recirculated
		return
	}
	h := n.hosts[e.at]
	if e.bytes != nil {
		h.Receive(n.now, &p)
	} else if n.due[e.at] == n.now {
		n.due[e.at] = 0
	}
	n.poll(e.at)
}

func (n *network) poll(host int) {
	next := n.hosts[host].Poll(n.now, func(p *Packet) { n.send(-1-n.switchOf(host), host, p) })
	if next == never || n.due[host] != 0 && n.due[host] <= next {
		return
	}
	n.due[host] = max(next, n.now+1)
	n.put(event{time: n.due[host], at: host})
}

// restart empties the registers of a switch.
func (n *network) restart(s int) { n.switches[s] = NewSwitch(n.tables[s]) }

// schedule is one random run.
type schedule struct {
	*network
	plan  *Plan
	graph *Graph
	width int
	rows  [][]float64
	sums  [][]float64
	// lasting switches do not lose their registers.
	lasting bool
}

// newSchedule draws a graph, its blocks and a network.
func newSchedule(t *testing.T, seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 1))
	hosts, vertices := 2+r.IntN(4), 2+r.IntN(12)
	g := &Graph{}
	for v := range vertices {
		g.Host = append(g.Host, uint16(v%hosts))
	}
	for range r.IntN(4 * vertices) {
		if u, v := uint32(r.IntN(vertices)), uint32(r.IntN(vertices)); g.Host[u] != g.Host[v] {
			g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
		}
	}
	blocks, err := Blocks(g, Slots(1+r.IntN(vertices)), randomCut(r))
	if err != nil {
		t.Fatal(err)
	}
	s := &schedule{graph: g, plan: &Plan{Blocks: blocks, Hosts: hosts}, width: 1 + r.IntN(80)}
	n := &network{rand: r, delay: time.Duration(1+r.IntN(3)) * time.Millisecond, due: make([]time.Duration, hosts)}
	if r.IntN(3) > 0 {
		n.lose, n.dup = r.Float64()*0.3, r.Float64()*0.3
	}
	s.network = n
	s.wire(r)
	return s
}

// wire makes one switch or two levels, and the hosts.
func (s *schedule) wire(r *rand.Rand) {
	units, job, n := 1+r.IntN(2), r.Uint64(), s.network
	if r.IntN(3) == 0 {
		for range s.plan.Hosts {
			n.leafOf = append(n.leafOf, r.IntN(2))
		}
		n.leafOf[0], n.leafOf[1] = 0, 1
		leaves, spines := s.plan.Tables(job, units, n.leafOf, 2, 1+r.IntN(3))
		n.tables = append(leaves, spines...)
	} else {
		n.tables = []*Table{s.plan.Table(job, units)}
	}
	for _, t := range n.tables {
		n.switches = append(n.switches, NewSwitch(t))
	}
	opt := DefaultHost
	opt.Timeout, opt.PullRows = 10*time.Millisecond, 1+r.IntN(20)
	for h := range s.plan.Hosts {
		n.hosts = append(n.hosts, NewHost(s.plan, h, units, job, opt))
	}
}

// randomCut puts vertices into parts of at most limit, at random.
func randomCut(r *rand.Rand) Cut {
	return func(vertices int, _, _ []uint32, parts, limit int) ([]uint32, error) {
		out := make([]uint32, vertices)
		for i, v := range r.Perm(vertices) {
			out[v] = uint32(i / limit)
		}
		return out, nil
	}
}

// draw makes rows of random numbers; huge ones make sums overflow.
func (s *schedule) draw() {
	s.rows, s.sums = nil, nil
	for range s.graph.Host {
		row := make([]float64, s.width)
		scale := math.Ldexp(1, s.rand.IntN(12)-6)
		for c := range row {
			row[c] = s.rand.NormFloat64() * scale
		}
		s.rows, s.sums = append(s.rows, row), append(s.sums, make([]float64, s.width))
	}
}

// exchange runs one to its end.
func (s *schedule) exchange(t *testing.T) {
	for k, h := range s.hosts {
		most := 0.0
		for v, row := range s.rows {
			if int(s.graph.Host[v]) == k {
				for _, x := range row {
					most = max(most, math.Abs(x))
				}
			}
		}
		h.Begin(&Exchange{Lo: 0, Hi: len(s.plan.Blocks), Width: s.width, Most: most,
			Row: func(v uint32, lo, hi int) []float64 { return s.rows[v][lo:hi] },
			Add: func(v uint32, lo int, sum []float64) {
				if int(s.graph.Host[v]) != k {
					t.Fatalf("host %d has a sum of host %d's", k, s.graph.Host[v])
				}
				for c, x := range sum {
					s.sums[v][lo+c] += x
				}
			}})
		s.put(event{time: s.now + time.Duration(s.rand.Int64N(int64(20*time.Millisecond))), at: k})
	}
	restarts := 0
	if !s.lasting && s.rand.IntN(4) == 0 {
		restarts = 1 + s.rand.IntN(3)
	}
	for steps := 0; !s.finished(); steps++ {
		if len(s.events) == 0 || steps > 2_000_000 {
			for k, h := range s.hosts {
				t.Logf("host %d, round %d, waits for %s", k, h.round, h.Waiting())
			}
			t.Fatalf("no end after %d steps, %d events left", steps, len(s.events))
		}
		if restarts > 0 && s.rand.IntN(200) == 0 {
			restarts--
			s.restart(s.rand.IntN(len(s.switches)))
		}
		s.step(t)
	}
}

func (s *schedule) finished() bool {
	for _, h := range s.hosts {
		if !h.Finished() {
			return false
		}
	}
	return true
}

// check compares all sums with those of the rows in fixed point, to the bit, and with those
// of the rows themselves, within the bound.
func (s *schedule) check(t *testing.T) {
	shift := s.hosts[0].Shift()
	counts := make([]int, len(s.rows))
	exact, fixed := make([][]float64, len(s.rows)), make([][]float64, len(s.rows))
	for v := range s.rows {
		exact[v], fixed[v] = make([]float64, s.width), make([]float64, s.width)
	}
	lanes := make([]int32, s.width)
	for i, u := range s.graph.Src {
		v := s.graph.Dst[i]
		counts[v]++
		quantise(lanes, s.rows[u], shift)
		for c, x := range s.rows[u] {
			exact[v][c] += x
			fixed[v][c] += math.Ldexp(float64(lanes[c]), -shift)
		}
	}
	for v := range s.rows {
		for c, got := range s.sums[v] {
			if got != fixed[v][c] {
				t.Fatalf("vertex %d, column %d: sum %g, of fixed-point rows %g", v, c, got, fixed[v][c])
			}
			if bound := Bound(counts[v], shift) + 1e-12*math.Abs(exact[v][c]) + 1e-300; math.Abs(got-exact[v][c]) > bound {
				t.Fatalf("vertex %d, column %d: sum %g, want %g within %g", v, c, got, exact[v][c], bound)
			}
		}
	}
	for i, sw := range s.switches {
		if sw.Round() == s.hosts[0].round && sw.Occupied() > 0 {
			t.Fatalf("switch %d: %d aggregators are occupied after the last round", i, sw.Occupied())
		}
	}
}

// TestSchedules: on random graphs, blocks, topologies and networks that lose, repeat and
// reorder packets, with switches that lose their registers, every exchange ends with the
// right sums, and no aggregator is lost.
func TestSchedules(t *testing.T) {
	seed, runs := testseed.New(t), 3_000
	if _, given := testseed.Given(t); given {
		runs = 1
	} else if testing.Short() {
		runs = 500
	}
	var counts HostCounts
	for i := range runs {
		t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) {
			t.Logf("%s=%d", testseed.Env, seed+uint64(i))
			s := newSchedule(t, seed+uint64(i))
			for range 1 + s.rand.IntN(3) { // packets of one exchange arrive in the next
				s.draw()
				s.exchange(t)
				s.check(t)
			}
			for _, h := range s.hosts {
				counts.Sums, counts.Raw = counts.Sums+h.Count.Sums, counts.Raw+h.Count.Raw
				counts.Pulls, counts.Resends = counts.Pulls+h.Count.Pulls, counts.Resends+h.Count.Resends
			}
		})
	}
	t.Logf("%+v", counts)
	if runs > 1 && (counts.Sums == 0 || counts.Raw == 0 || counts.Pulls == 0 || counts.Resends == 0) {
		t.Errorf("not everything was tried: %+v", counts)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// restart0 makes the switches of the tables.
func (n *network) restart0() {
	n.switches = nil
	for _, t := range n.tables {
		n.switches = append(n.switches, NewSwitch(t))
	}
}
