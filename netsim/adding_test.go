package netsim

import (
	"testing"
	"testing/synctest"

	"starling/innet"
	"starling/train/traintest"
	"starling/wire"
)

// sequence is a block of rows of host 0, in the order of some vertices, for sums of host 1: an
// undirected graph whose vertices send and receive.
func sequence(neighbours [][]uint32, order []uint32) *innet.Plan {
	n := len(neighbours)
	b := &innet.Block{Ptr: []uint32{0}, InPtr: []uint32{0}, RowHost: make([]uint16, n), SlotHost: make([]uint16, n)}
	at := make([]uint32, n)
	for i, v := range order {
		at[v] = uint32(i)
		b.Rows = append(b.Rows, v)
		b.Into = append(b.Into, neighbours[v]...)
		b.Ptr = append(b.Ptr, uint32(len(b.Into)))
	}
	for v, list := range neighbours {
		b.SlotHost[v] = 1
		b.Slots, b.Need = append(b.Slots, uint32(v)), append(b.Need, uint16(len(list)))
		for _, u := range list {
			b.From = append(b.From, at[u])
		}
		b.InPtr = append(b.InPtr, uint32(len(b.From)))
	}
	return &innet.Plan{Blocks: []*innet.Block{b}, Hosts: 2}
}

// slots is z of the paper's equations 3 to 6 with k = 1.
func slots(neighbours [][]uint32, order []uint32) int {
	missing, queue := make([]int, len(neighbours)), 0
	for v := range missing {
		missing[v] = len(neighbours[v])
	}
	for _, v := range order {
		done := 0
		for _, u := range neighbours[v] {
			if missing[u]--; missing[u] == 0 {
				done++
			}
		}
		queue = max(done+queue-1, 0)
	}
	return len(order) + queue
}

// takes is when the last sum arrives, if rows leave in an order as fast as the link takes them.
func takes(t *testing.T, neighbours [][]uint32, order []uint32, passes float64) Time {
	t.Helper()
	n := network(t, "packet", "star hosts=2 rate=8Gbps delay=1us header=32B").(*Packets)
	p := sequence(neighbours, order)
	c := &cluster{net: n, hosts: []int{0, 1}, opt: Options{Switch: &SwitchOptions{Passes: passes}}}
	a := &adding{c: c, net: n, units: 1, memory: 1 << 20}
	for r := range c.hosts {
		a.hosts = append(a.hosts, &switchHost{a: a, rank: r, host: innet.NewHost(p, r, 1, 1, innet.DefaultHost)})
	}
	if err := a.build(p); err != nil {
		t.Fatal(err)
	}
	for i := range order {
		row := &innet.Packet{Header: innet.Header{Source: uint32(i), Round: 1, Units: 1, Job: 1},
			Body: make([]int32, innet.UnitLanes)}
		a.hosts[0].up.send(int64(row.Bytes()), func(bool) { a.switches[0].handle(0, row) })
	}
	Run(n, Never-1)
	edges := 0
	for _, list := range neighbours {
		edges += len(list)
	}
	took := Time(float64(edges) / passes * float64(Second))
	if p := a.switches[0]; passes > 0 && (p.passes != int64(edges) || p.busy != took) {
		t.Errorf("%d passes and %v for %d edges", p.passes, p.busy, edges)
	}
	return n.Now()
}

// TestClosedFormsOfSwitchGNN: the paper's section 3.2.2, in simulated packets. A row arrives at
// the end of its slot and its sums leave in the next, so that all take z + 1 slots of 200 bytes
// and two delays. In a star the order of Order takes n slots and a random one, on average over
// where the centre is, (3n - 1)/2 less what the equations say of the worst case; in a ring it
// takes n + 2, and a random order n + 1 or n + 2.
func TestClosedFormsOfSwitchGNN(t *testing.T) {
	const n = 12
	slot := func(z int) Time { return Time(z+1)*200*Nanosecond + 2*Microsecond }
	var star, ring [][]uint32
	for v := range uint32(n) {
		star, ring = append(star, []uint32{0}), append(ring, []uint32{(v + n - 1) % n, (v + 1) % n})
	}
	star[0] = nil
	for v := range uint32(n - 1) {
		star[0] = append(star[0], v+1)
	}
	total := 0
	for centre := range n {
		var order []uint32
		for v := range uint32(n - 1) {
			order = append(order, v+1)
		}
		order = append(order[:centre], append([]uint32{0}, order[centre:]...)...)
		z := slots(star, order)
		total += z
		if got := takes(t, star, order, 0); got != slot(z) {
			t.Errorf("star, centre at %d: %v, want %v", centre, got, slot(z))
		}
	}
	if best, worst := slots(star, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
		slots(star, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0}); best != n || worst != 2*n-2 {
		t.Errorf("a star takes %d to %d slots, want %d to %d", best, worst, n, 2*n-2)
	}
	if mean := float64(total) / n; mean < float64(3*n-1)/2-1 || mean > float64(3*n-1)/2 {
		t.Errorf("a star takes %g slots on average, want about %g", mean, float64(3*n-1)/2)
	}
	ptr, adj := []uint32{0}, []uint32(nil)
	for _, list := range ring {
		adj = append(adj, list...)
		ptr = append(ptr, uint32(len(adj)))
	}
	order := innet.Order(ptr, adj)
	if z, got := slots(ring, order), takes(t, ring, order, 0); z != n+2 || got != slot(z) {
		t.Errorf("a ring takes %d slots and %v, want %d and %v", z, got, n+2, slot(n+2))
	}
	// With a pass of 50 ns the row of the centre, which is for n-1 aggregators, takes n-1 of them.
	order = []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0}
	if got, want := takes(t, star, order, 20e6), takes(t, star, order, 0)+(n-1)*50*Nanosecond; got != want {
		t.Errorf("with recirculation a star takes %v, want %v", got, want)
	}
}

// TestSwitchesAdd: switchgnn over simulated switches that add, of one and of two levels with one and several spines,
// follows halo to the resolution of fixed point, sends what it plans, is the same whatever is
// lost, and takes the same time in every run; with less memory there are more blocks and bytes.
func TestSwitchesAdd(t *testing.T) {
	const workers = 8
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", workers, workers)
	o := traintest.ThreeLayers("sage")
	o.Epochs = 2
	o.Strategy = traintest.Strategy(t, "halo")
	want := traintest.TrainServers(t, parts, traintest.Ref, o).Results[0].Loss
	var lossless []float64
	rows := map[string]int64{}
	for _, c := range []struct{ topology, memory string }{
		{"star hosts=8 rate=10Gbps ecn=20KB", "100MiB"}, {"star hosts=8 rate=10Gbps buffer=8KB", "100MiB"},
		{"leaf-spine leaves=4 spines=1 hosts=2 rate=10Gbps uplink=40Gbps", "100MiB"},
		{"leaf-spine leaves=4 spines=4 hosts=2 rate=10Gbps", "100MiB"},
		{"star hosts=8 rate=10Gbps", "3KiB"},
	} {
		o.Strategy = traintest.Strategy(t, "switchgnn", "switch_memory="+c.memory)
		var seconds [2]float64
		for run := range seconds {
			synctest.Test(t, func(t *testing.T) {
				n := network(t, "packet", c.topology)
				opt := Options{Options: wire.DefaultOptions(), Switch: &SwitchOptions{Passes: DefaultPasses}}
				eps, err := Endpoints(n, nil, workers, opt)
				if err != nil {
					t.Fatal(err)
				}
				got := traintest.Observe(t, eps, parts, traintest.Ref, o)
				loss := got.Results[0].Loss
				traintest.SameCurve(t, c.topology, loss, want, 1e-6)
				if lossless == nil {
					lossless = loss
				}
				if c.memory == "100MiB" {
					traintest.SameCurve(t, c.topology+" against the first", loss, lossless, 0)
				}
				rows[c.topology] = got.Sum(traintest.IsRows)
				seconds[run] = n.Now().Seconds()
			})
		}
		if seconds[0] != seconds[1] {
			t.Errorf("%s: two runs take %g s and %g s", c.topology, seconds[0], seconds[1])
		}
	}
	if all, few := rows["star hosts=8 rate=10Gbps ecn=20KB"], rows["star hosts=8 rate=10Gbps"]; few <= all {
		t.Errorf("rows of %d bytes with 100 MiB, %d with 3 KiB", all, few)
	}
}
