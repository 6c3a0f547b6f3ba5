package netsim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"starling/rng"
)

// A packet is stored and forwarded by each switch: hops transmissions and delays, and then
// one transmission per further packet.
func TestStoreAndForward(t *testing.T) {
	for text, hops := range map[string]int{"star hosts=2": 2, "leaf-spine leaves=2 hosts=1": 4, "fat-tree k=4": 6} {
		for _, packets := range []int64{1, 2, 17, 100} {
			n := network(t, "packet", text+" rate=10Gbps delay=3us payload=1000B header=0B control=none")
			x := &Transfer{From: 0, To: n.Hosts() - 1, Bytes: 1000 * packets, Start: 5 * Microsecond}
			sendAll(t, n, x)
			want := Time(hops)*(800*Nanosecond+3*Microsecond) + Time(packets-1)*800*Nanosecond
			if got := x.End - x.Start; got != want {
				t.Errorf("%s, %d packets: %v, want %v", text, packets, got, want)
			}
			if got := n.Alone(0, n.Hosts()-1, x.Bytes); got != want {
				t.Errorf("%s, %d packets: %v alone, want %v", text, packets, got, want)
			}
		}
	}
}

// Alone is what a transfer takes at either level when there is no other, whatever its size,
// also where links differ.
func TestAlone(t *testing.T) {
	for _, level := range Levels {
		for _, text := range []string{"star", "leaf-spine leaves=2 spines=1 uplink=10Gbps",
			"fat-tree k=4 uplink=100Gbps"} {
			for _, bytes := range []int64{1, 1000, 1461, 5e4, 3e6} {
				n := network(t, level, text+" control=none")
				x := &Transfer{From: 0, To: n.Hosts() - 1, Bytes: bytes}
				sendAll(t, n, x)
				near(t, fmt.Sprintf("%s, %s level, %d bytes", text, level, bytes), x.Seconds(),
					n.Alone(x.From, x.To, bytes).Seconds(), 0.02)
			}
		}
	}
}

// The window of a connection that is alone does not slow it down, and bounds it where it is
// shorter than a round trip.
func TestWindow(t *testing.T) {
	const bytes = 10e6
	n := network(t, "packet", "star hosts=2 rate=10Gbps delay=1us payload=1000B header=0B")
	x := &Transfer{To: 1, Bytes: bytes}
	sendAll(t, n, x)
	near(t, "seconds alone", x.Seconds(), bytes*8/10e9, 0.002)
	n = network(t, "packet", "star hosts=2 rate=10Gbps delay=100us payload=1000B header=0B window=100KB")
	x = &Transfer{To: 1, Bytes: bytes}
	sendAll(t, n, x)
	near(t, "seconds with 100 KB per round trip", x.Seconds(), bytes/100e3*400e-6, 0.02)
}

// n senders into one port: the last byte arrives after all bytes over the port's rate, and
// the queue of datagrams grows to what came in and has not left.
func TestIncast(t *testing.T) {
	const bytes = 1e6
	for _, senders := range []int{2, 8, 32} {
		for _, control := range []string{"none", "dctcp ecn=60KB", "dctcp ecn=60KB buffer=200KB",
			"dctcp buffer=200KB"} {
			n := network(t, "packet", fmt.Sprintf("star hosts=%d rate=10Gbps delay=1us payload=1000B header=0B "+
				"control=%s", senders+1, control))
			var all []*Transfer
			for s := range senders {
				all = append(all, &Transfer{From: s + 1, To: 0, Bytes: bytes})
			}
			sendAll(t, n, all...)
			last := slices.MaxFunc(all, func(a, b *Transfer) int { return int(a.End - b.End) })
			what := fmt.Sprintf("%d senders, control=%s", senders, control)
			tolerance := 0.002
			if n.Stats().Drops > 0 {
				tolerance = 0.5 // timeouts; the queue is empty meanwhile
			}
			near(t, what+": the last ends", last.Seconds(), float64(senders)*bytes*8/10e9, tolerance)
			peak := busiestPort(n.Stats(), func(p *PortStats) int64 { return p.PeakQueue }).PeakQueue
			switch control {
			case "none":
				near(t, what+": peak", float64(peak), float64(senders-1)*bytes, 0.002)
			default:
				if n.Topology().Buffer > 0 && peak > n.Topology().Buffer {
					t.Errorf("%s: a queue of %d bytes", what, peak)
				}
			}
		}
	}
}

// Poisson arrivals of packets of one size at a port (M/D/1) wait rho/(2(1-rho)) transmissions
// on average (Pollaczek and Khinchine), which is the mean queue over the arrival rate.
func TestMD1(t *testing.T) {
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		// Packets of 63 hosts with fast links meet at the port to host 0, and nowhere else.
		n := network(t, "packet", "rail servers=1 gpus=64 spines=1 inside=10Gbps rate=1Gbps delay=0ps payload=1000B "+
			"header=0B control=none").(*Packets)
		for i := range n.ports { // the senders' links take next to no time
			if n.isHost(n.ports[i].from) {
				n.ports[i].perByte = 1
			}
		}
		key, at := rng.New(7).Fold(uint64(100*rho)), 0.0
		service := (10 * Gbps).Transmit(1000).Seconds()
		const packets = 200000
		for i := range uint64(packets) {
			at += -math.Log(1-key.Float64(2*i)) * service / rho
			Send(n, &Transfer{From: 1 + key.IntN(2*i+1, 63), To: 0, Bytes: 1000, Start: Time(at * float64(Second))})
		}
		Run(n, Never)
		queue := busiestPort(n.Stats(), func(p *PortStats) float64 { return p.MeanQueue })
		near(t, fmt.Sprintf("mean queue at %g", rho), queue.MeanQueue/1000, rho*rho/(2*(1-rho)), 0.04)
		near(t, fmt.Sprintf("utilisation at %g", rho), queue.Utilisation, rho, 0.01)
	}
}

// Transfers share a link equally, at either level: with sizes 1..n the k-th to end does
// so when all have sent k parts and those that ended before their own. Windows find equal
// shares only on average.
func TestFairShares(t *testing.T) {
	const senders, part = 5, 2e6
	for _, level := range Levels {
		n := network(t, level, "star hosts=6 rate=10Gbps delay=1us ecn=60KB")
		var all []*Transfer
		for s := range senders {
			all = append(all, &Transfer{From: s + 1, To: 0, Bytes: part * int64(s+1)})
		}
		sendAll(t, n, all...)
		sent, tolerance := 0.0, map[string]float64{"packet": 0.08, "flow": 0.01}[level]
		for s, x := range all {
			sent += part * float64(senders-s)
			near(t, fmt.Sprintf("%s level, transfer %d", level, s), x.Seconds(), sent*8/10e9*1538/1460, tolerance)
		}
	}
}

// Max-min fairness over several links: a long flow gets what the narrowest link leaves it,
// and others what it does not use. At flow level this is exact.
func TestMaxMin(t *testing.T) {
	n := network(t, "flow", "star hosts=4 rate=12Gbps delay=0ps header=0B").(*Flows)
	// 0>2 and 1>2 share host 2's link; 1>3 gets the rest of host 1's; 0>2 and 0>3, 1>3 compete too.
	for _, x := range []*Transfer{{From: 0, To: 2}, {From: 1, To: 2}, {From: 1, To: 3}, {From: 3, To: 2}} {
		x.Bytes = 1e9
		Send(n, x)
	}
	Run(n, 0)
	rates := map[string]float64{}
	for _, f := range n.ends {
		from, to := n.ports[f.conn.path[0].port].from, n.ports[f.conn.path[1].port].to
		rates[fmt.Sprintf("%d>%d", from, to)] = f.rate * 8e3
	}
	for pair, want := range map[string]float64{"0>2": 4, "1>2": 4, "3>2": 4, "1>3": 8} {
		near(t, pair+" in Gbps", rates[pair], want, 1e-9)
	}
}

// Random flows at flow level have max-min fair rates: each has a full link on which no flow
// of its priority, and none below, is faster.
func TestMaxMinProperty(t *testing.T) {
	for seed := range uint64(60) {
		text := []string{"star hosts=9", "leaf-spine leaves=3 spines=2 hosts=3 uplink=10Gbps",
			"fat-tree k=4 routing=spray", "rail servers=3 gpus=3 spines=2 inside=90Gbps"}[seed%4]
		n := network(t, "flow", text+" header=0B delay=0ps").(*Flows)
		key := rng.New(seed)
		for i := range uint64(3 + seed) {
			from := key.IntN(4*i, n.Hosts())
			to := (from + 1 + key.IntN(4*i+1, n.Hosts()-1)) % n.Hosts()
			Send(n, &Transfer{From: from, To: to, Bytes: 1e12, DSCP: uint8(32 * key.IntN(4*i+2, 2))})
		}
		Run(n, 0)
		for _, f := range n.ends {
			if !hasBottleneck(n, f) {
				t.Errorf("seed %d, %s: a flow with %g bytes per ps has no bottleneck", seed, text, f.rate)
			}
		}
	}
}

func hasBottleneck(n *Flows, f *flow) bool {
	return slices.ContainsFunc(f.conn.path, func(s share) bool {
		sum, fastest := 0.0, 0.0
		for _, x := range n.links[s.port].flows {
			if x.flow.conn.class >= f.conn.class {
				sum += x.flow.rate * x.part
			}
			if x.flow.conn.class == f.conn.class {
				fastest = max(fastest, x.flow.rate)
			}
		}
		return sum > n.ports[s.port].rate.bytesPerPicosecond()*(1-1e-9) && f.rate >= fastest*(1-1e-9)
	})
}

// Of two transfers into one port the urgent one takes as long as alone, the other waits for it.
func TestStrictPriority(t *testing.T) {
	const bytes = 5e6
	for _, level := range Levels {
		n := network(t, level, "star hosts=3 rate=10Gbps delay=1us ecn=60KB header=0B")
		urgent := &Transfer{From: 1, To: 0, Bytes: bytes, DSCP: 46, Start: 100 * Microsecond}
		other := &Transfer{From: 2, To: 0, Bytes: bytes, DSCP: 0}
		sendAll(t, n, urgent, other)
		near(t, level+" level: urgent", urgent.Seconds(), bytes*8/10e9, 0.01)
		near(t, level+" level: other", other.Seconds(), 2*bytes*8/10e9, 0.02)
	}
}

// Spraying fills all spines; hashing puts some transfers onto the same. Both levels see it alike.
func TestSprayAgainstECMP(t *testing.T) {
	const bytes = 4e6
	last := map[string]float64{}
	for _, level := range Levels {
		for _, routing := range []string{"ecmp", "spray"} {
			n := network(t, level, "leaf-spine leaves=2 spines=4 hosts=4 rate=10Gbps ecn=80KB routing="+routing)
			var all []*Transfer
			for h := range 4 {
				all = append(all, &Transfer{From: h, To: 4 + h, Bytes: bytes})
			}
			sendAll(t, n, all...)
			for _, x := range all {
				last[level+routing] = max(last[level+routing], x.Seconds())
			}
		}
		near(t, level+" level: sprayed", last[level+"spray"], bytes*8/10e9*1538/1460, 0.05)
		if last[level+"ecmp"] < 1.5*last[level+"spray"] {
			t.Errorf("%s level: hashing takes %g s, spraying %g s", level, last[level+"ecmp"], last[level+"spray"])
		}
	}
}

// Everything arrives whatever is dropped: small buffers, shared or per port, with reordering.
func TestLossesAreRepaired(t *testing.T) {
	for _, text := range []string{"star hosts=16 buffer=20KB", "star hosts=16 buffer=40KB shared=true",
		"leaf-spine leaves=4 spines=2 hosts=4 buffer=30KB routing=spray", "fat-tree k=4 buffer=5KB ecn=3KB"} {
		n := network(t, "packet", text+" rate=10Gbps")
		var all []*Transfer
		for h := range n.Hosts() {
			for to := range n.Hosts() {
				if h != to {
					all = append(all, &Transfer{From: h, To: to, Bytes: int64(1 + h*to*3000)})
				}
			}
		}
		sendAll(t, n, all...)
		s := n.Stats()
		if s.Drops == 0 || s.Resent < s.Drops {
			t.Errorf("%s: %d drops, %d sent again", text, s.Drops, s.Resent)
		}
		for _, p := range s.Ports {
			if p.PeakQueue > n.Topology().Buffer {
				t.Errorf("%s: %s had %d bytes in its queue", text, p.Name, p.PeakQueue)
			}
		}
	}
}

// ECN keeps a queue near its threshold; without it the window decides.
func TestECNBoundsQueues(t *testing.T) {
	peak := func(ecn string) int64 {
		n := network(t, "packet", "star hosts=5 rate=10Gbps delay=2us window=400KB ecn="+ecn)
		for h := 1; h < 5; h++ {
			Send(n, &Transfer{From: h, To: 0, Bytes: 20e6})
		}
		Run(n, 20*Millisecond)
		return int64(busiestPort(n.Stats(), func(p *PortStats) float64 { return p.MeanQueue }).MeanQueue)
	}
	if with, without := peak("50KB"), peak("0B"); with > 100e3 || with < 10e3 || without < 1e6 {
		t.Errorf("mean queue %d bytes with marks from 50 KB on, %d without", with, without)
	}
}

// Two simulations of the same thing are the same, event by event; others do not disturb them.
func TestDeterministic(t *testing.T) {
	run := func() (Stats, Time) {
		n := network(t, "packet", "fat-tree k=4 buffer=40KB ecn=20KB routing=spray")
		for h := range 16 {
			Send(n, &Transfer{From: h, To: (h*7 + 3) % 16, Bytes: int64(h+1) * 100e3, DSCP: uint8(h)})
		}
		Run(n, Never)
		return *n.Stats(), n.Now()
	}
	results := make(chan Time, 4)
	for range 4 {
		go func() { _, end := run(); results <- end }()
	}
	want, end := run()
	again, _ := run()
	if fmt.Sprint(want) != fmt.Sprint(again) {
		t.Error("two runs differ")
	}
	for range 4 {
		if got := <-results; got != end {
			t.Errorf("one ends at %v, another at %v", got, end)
		}
	}
}

// What series say adds up to the counts.
func TestSeries(t *testing.T) {
	for _, level := range Levels {
		n := network(t, level, "star hosts=4 rate=10Gbps ecn=60KB")
		n.Record()
		for h := 1; h < 4; h++ {
			Send(n, &Transfer{From: h, To: 0, Bytes: 3e6, Start: Time(h) * Millisecond})
		}
		Run(n, Never)
		for i, p := range n.Stats().Ports {
			samples := n.Series(i)
			if len(samples) == 0 {
				continue
			}
			var peak int64
			var area, busy float64
			for k, s := range samples {
				end := n.Now().Seconds()
				if k+1 < len(samples) {
					end = samples[k+1].Seconds
				}
				d := end - s.Seconds
				peak, area, busy = max(peak, s.PeakQueue), area+s.MeanQueue*d, busy+s.Utilisation*d
			}
			near(t, p.Name+": peak", float64(peak), float64(p.PeakQueue), 0)
			near(t, p.Name+": mean", area/n.Now().Seconds(), p.MeanQueue, 1e-6)
			near(t, p.Name+": utilisation", busy/n.Now().Seconds(), p.Utilisation, 1e-6)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	for _, text := range []string{"star hosts=16 ecn=60KB", "leaf-spine leaves=8 spines=8 hosts=16 ecn=60KB",
		"fat-tree k=8 ecn=60KB routing=spray"} {
		b.Run("topology="+must(ParseTopology(text)).Kind, func(b *testing.B) {
			n := network(b, "packet", text).(*Packets)
			for h := range n.Hosts() {
				for k := 1; k < 8; k++ {
					Send(n, &Transfer{From: h, To: (h + k*5) % n.Hosts(), Bytes: 1 << 40})
				}
			}
			Run(n, 200*Microsecond)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				n.handle(n.take())
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// BenchmarkTransfers is one transfer at flow level among thousands of hosts: rings of 8 hosts
// on the rails, one transfer after the other on each connection, of random sizes.
func BenchmarkTransfers(b *testing.B) {
	for _, servers := range []int{16, 128, 1024} {
		b.Run(fmt.Sprintf("hosts=%d", 8*servers), func(b *testing.B) {
			n := network(b, "flow", fmt.Sprintf("rail servers=%d gpus=8 spines=8 rate=400Gbps routing=spray", servers))
			key, sent := rng.New(1), uint64(0)
			for h := range n.Hosts() {
				server := h / 8
				next := (server/8*8+(server+1)%8)*8 + h%8
				var again func()
				again = func() {
					sent++
					Send(n, &Transfer{From: h, To: next, Bytes: 1e6 + int64(key.IntN(sent, 1e6)), Start: n.Now(),
						Done: again})
				}
				again()
			}
			flows := n.(*Flows)
			b.ResetTimer()
			for flows.arrived < int64(b.N) {
				n.Step()
			}
		})
	}
}

// busiestPort is the port with the largest value.
func busiestPort[T cmp.Ordered](s *Stats, value func(*PortStats) T) *PortStats {
	best := &s.Ports[0]
	for i := range s.Ports {
		if value(&s.Ports[i]) > value(best) {
			best = &s.Ports[i]
		}
	}
	return best
}
