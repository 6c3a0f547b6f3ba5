package netsim

import (
	"math/rand/v2"
	"testing"

	"starling/innet"
)

// exchanged is the mean time of an exchange among hosts that share ports with other traffic, of a load and seed.
func exchanged(t *testing.T, plan *innet.Plan, load float64, seed uint64, steady bool) float64 {
	t.Helper()
	n := network(t, "packet", "star hosts=8 rate=100Gbps delay=2us ecn=200KB buffer=400000B queues=1").(*Packets)
	c := &cluster{net: n, opt: Options{Switch: &SwitchOptions{Passes: DefaultPasses, Steady: steady}}}
	a := newAdding(c, n, plan, 4, 1<<30)
	if err := a.build(plan); err != nil {
		t.Fatal(err)
	}
	if _, err := (Background{Load: load, Seed: seed, DSCP: rowDSCP}).Start(n); err != nil {
		t.Fatal(err)
	}
	const warm, exchanges = 300 * Microsecond, 12
	Run(n, warm)
	var took Time
	for range exchanges {
		took += a.exchange(0, len(plan.Blocks))
	}
	return took.Seconds() / exchanges
}

// TestCongestionControlDoesNoHarm: hosts that follow the share of marked packets are as fast as those that do not, with
// and without other traffic. In times of the simulation, so that they are the same in every run.
func TestCongestionControlDoesNoHarm(t *testing.T) {
	g, r := &innet.Graph{}, rand.New(rand.NewPCG(3, 4))
	const vertices = 800
	for v := range vertices {
		g.Host = append(g.Host, uint16(v%8))
	}
	for range 8 * vertices {
		if u, v := uint32(r.IntN(vertices)), uint32(r.IntN(vertices)); g.Host[u] != g.Host[v] {
			g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
		}
	}
	blocks, err := innet.Blocks(g, innet.Slots(400), nil)
	if err != nil {
		t.Fatal(err)
	}
	plan := &innet.Plan{Blocks: blocks, Hosts: 8}
	for _, load := range []float64{0, 0.3, 0.6} {
		with, without := exchanged(t, plan, load, 1, false), exchanged(t, plan, load, 1, true)
		t.Logf("load %.1f: %.1f us with, %.1f without", load, 1e6*with, 1e6*without)
		if with > 1.05*without {
			t.Errorf("load %.1f: %.1f us with congestion control, %.1f without", load, 1e6*with, 1e6*without)
		}
	}
}
