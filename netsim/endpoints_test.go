package netsim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	_ "starling/train/full"
	"starling/train/traintest"
	"starling/wire"
	"starling/wire/wiretest"
)

// endpoints joins ranks over a topology.
func endpoints(t testing.TB, level, topology string, ranks int, opt wire.Options) []wire.Endpoint {
	t.Helper()
	eps, err := Endpoints(network(t, level, topology), nil, ranks, Options{Options: opt})
	if err != nil {
		t.Fatal(err)
	}
	return eps
}

// Every test of transports passes over a simulated network: with queues, with losses, with
// two ranks per host, at flow level.
func TestConformance(t *testing.T) {
	for _, net := range []struct{ level, topology string }{
		{"packet", "star hosts=8 rate=1Gbps buffer=20KB"},
		{"packet", "leaf-spine leaves=2 spines=2 hosts=1 ecn=20KB routing=spray"},
		{"flow", "star hosts=8 rate=10Gbps"},
	} {
		t.Run(net.level+" "+strings.ReplaceAll(net.topology, " ", ","), func(t *testing.T) {
			wiretest.Run(t, wiretest.Transport{Name: "netsim", Streams: net.level == "packet", Around: synctest.Test,
				Open: func(t testing.TB, n int, opt wire.Options) []wire.Endpoint {
					return endpoints(t, net.level, net.topology, n, opt)
				}})
		})
	}
}

// Outside a bubble there is no virtual time, and InVirtualTime makes one.
func TestVirtualTime(t *testing.T) {
	n := network(t, "packet", "star hosts=2")
	if _, err := Endpoints(n, nil, 2, Options{}); !errors.Is(err, ErrNoBubble) {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, hosts := range [][]int{{0, 2}, {0, -1}, {1}} {
			if _, err := Endpoints(n, hosts, 2, Options{}); err == nil || !strings.Contains(err.Error(), "want") {
				t.Errorf("hosts %v: %v", hosts, err)
			}
		}
	})
}

// A message takes the store-and-forward time of its bytes and of the frame's header.
func TestMessageTime(t *testing.T) {
	for _, level := range Levels {
		synctest.Test(t, func(t *testing.T) {
			eps := endpoints(t, level, "star hosts=2 rate=1Gbps delay=10us payload=1000B header=0B control=none", 2,
				wire.DefaultOptions())
			defer traintest.Close(eps)
			const bytes = 50000 - frameBytes
			k := wire.Key{Coflow: coflow.ID{Type: coflow.Rows}}
			eps[0].Send(1, k, wire.Feature, make([]byte, bytes))
			if err := eps[1].Recv(0, k, wire.Feature, make([]byte, bytes)).Wait(context.Background()); err != nil {
				t.Error(err)
			}
			if got := wire.Since(eps[1].Clock(), wire.VirtualStart); got != 428*time.Microsecond {
				t.Errorf("%s level: %v", level, got) // 50 packets of 8 us, one more for the switch, two delays
			}
		})
	}
}

// Urgent messages pass a large one at the host and in the switch: rank 0 and 1 fill the link
// to rank 2, and a row from rank 1 takes next to no time; with one code point for all it waits
// for the queue.
func TestCodePoints(t *testing.T) {
	took := map[string]time.Duration{}
	one := func(coflow.ID) uint8 { return 0 }
	for name, dscp := range map[string]func(coflow.ID) uint8{"by type": nil, "one": one} {
		synctest.Test(t, func(t *testing.T) {
			n := network(t, "packet", "star hosts=3 rate=1Gbps delay=1us")
			eps, err := Endpoints(n, nil, 3, Options{Options: wire.DefaultOptions(), DSCP: dscp})
			if err != nil {
				t.Fatal(err)
			}
			bulk, row := wire.Key{Coflow: coflow.ID{Type: coflow.Bulk}}, wire.Key{Coflow: coflow.ID{Type: coflow.Rows}}
			for r := range 2 {
				eps[r].Send(2, bulk, wire.Feature, make([]byte, 1<<20))
			}
			_ = wire.Sleep(context.Background(), eps[0].Clock(), 4*time.Millisecond)
			begin := eps[0].Clock().Now()
			eps[1].Send(2, row, wire.Activation, make([]byte, 1000))
			if err := eps[2].Recv(1, row, wire.Activation, make([]byte, 1000)).Wait(context.Background()); err != nil {
				t.Error(err)
			}
			took[name] = wire.Since(eps[0].Clock(), begin)
			for r := range 2 {
				p := eps[2].Recv(r, bulk, wire.Feature, make([]byte, 1<<20))
				if err := p.Wait(context.Background()); err != nil {
					t.Error(err)
				}
			}
			traintest.Close(eps)
		})
	}
	if took["by type"] > 100*time.Microsecond || took["one"] < 2*time.Millisecond {
		t.Errorf("an urgent message takes %v", took)
	}
}

// A processor's work takes virtual time, one piece after the other.
func TestProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := endpoints(t, "packet", "star hosts=2", 2, wire.DefaultOptions())
		clock := eps[0].Clock()
		p := NewProcessor(clock)
		traintest.Each(4, func(int) { p.Charge(0.25) })
		for range 1000 {
			p.Charge(1e-10)
		}
		if got := wire.Since(clock, wire.VirtualStart); got < time.Second+99 || got > time.Second+100 {
			t.Errorf("a second and 100 ns of work took %v", got)
		}
		traintest.Close(eps)
	})
}

// Messages take the processors of both ends their time, urgent ones first, and computing that
// is under way so much longer: 1 MB at 1 GB/s, in chunks that the next one waits for.
func TestHostTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network(t, "packet", "star hosts=2 rate=100Gbps delay=1us")
		list := []*Processor{NewProcessor(nil), NewProcessor(nil)}
		opt := Options{Options: wire.DefaultOptions(), Host: HostOptions{Send: 1e9, Recv: 2e9,
			Message: 10 * time.Microsecond, Processors: list}}
		eps, err := Endpoints(n, nil, 2, opt)
		if err != nil {
			t.Fatal(err)
		}
		clock := eps[0].Clock()
		bulk, row := wire.Key{Coflow: coflow.ID{Type: coflow.Bulk}}, wire.Key{Coflow: coflow.ID{Type: coflow.Rows}}
		var computed, urgent, all time.Duration
		traintest.Each(3, func(i int) {
			switch i {
			case 0:
				eps[0].Send(1, bulk, wire.Feature, make([]byte, 1e6))
				_ = wire.Sleep(t.Context(), clock, 100*time.Microsecond)
				eps[0].Send(1, row, wire.Activation, make([]byte, 1000))
			case 1:
				list[0].Charge(500e-6)
				computed = wire.Since(clock, wire.VirtualStart)
			case 2:
				p := eps[1].Recv(0, row, wire.Activation, make([]byte, 1000))
				q := eps[1].Recv(0, bulk, wire.Feature, make([]byte, 1e6))
				if err := p.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				urgent = wire.Since(clock, wire.VirtualStart)
				if err := q.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				all = wire.Since(clock, wire.VirtualStart)
			}
		})
		between := func(what string, got, least, most time.Duration) {
			if got < least || got > most {
				t.Errorf("%s took %v, want %v to %v", what, got, least, most)
			}
		}
		between("1 MB of bulk", all, 1010*time.Microsecond, 1120*time.Microsecond)
		between("an urgent message", urgent, 110*time.Microsecond, 260*time.Microsecond)
		between("500 us of computing beside sending", computed, 900*time.Microsecond, 1600*time.Microsecond)
		traintest.Close(eps)
	})
}

// Workers train over simulated networks as they do in a process: the curve is the same, the
// bytes are as planned, and two runs take the same virtual time.
func TestTrains(t *testing.T) {
	const workers = 8
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", workers, workers)
	o := traintest.Options("gcn")
	o.Epochs = 4
	for _, strategy := range []string{"halo", "pipegcn"} {
		o.Strategy = traintest.Strategy(t, strategy)
		want := traintest.TrainServers(t, parts, traintest.Ref, o)
		for _, net := range []struct{ level, topology string }{
			{"packet", "star hosts=8 rate=10Gbps ecn=60KB"},
			{"packet", "leaf-spine leaves=4 spines=2 hosts=2 rate=1Gbps ecn=60KB"},
			{"packet", "star hosts=8 rate=1Gbps buffer=10KB"},
			{"flow", "leaf-spine leaves=4 spines=2 hosts=2 rate=1Gbps"},
		} {
			name := fmt.Sprintf("%s, %s level, %s", strategy, net.level, net.topology)
			var seconds [2][]float64
			var total [2]time.Duration
			for run := range 2 {
				synctest.Test(t, func(t *testing.T) {
					eps := endpoints(t, net.level, net.topology, workers, wire.DefaultOptions())
					got := traintest.Observe(t, eps, parts, traintest.Ref, o)
					traintest.SameCurve(t, name, got.Results[0].Loss, want.Results[0].Loss, 0)
					seconds[run] = got.Results[0].EpochSeconds
					total[run] = wire.Since(eps[0].Clock(), wire.VirtualStart)
				})
			}
			if fmt.Sprint(seconds[0], total[0]) != fmt.Sprint(seconds[1], total[1]) {
				t.Errorf("%s: epochs of %v s (%v in all), then %v s (%v in all)", name, seconds[0], total[0],
					seconds[1], total[1])
			}
			if seconds[0][1] < 10e-6 {
				t.Errorf("%s: an epoch takes %g s", name, seconds[0][1])
			}
			t.Logf("%s: %v", name, seconds[0])
		}
	}
}

// Two levels of a fat-tree with 64 workers: they agree in what an epoch takes.
func TestManyWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("64 workers take some seconds")
	}
	const workers = 64
	parts := traintest.CutForServers(t, traintest.Communities(t, 1500, false), "hash", workers, workers)
	o := traintest.Small("gcn")
	o.Epochs = 2
	o.Strategy = traintest.Strategy(t, "halo")
	want := traintest.TrainServers(t, parts, traintest.Single, o)
	took := map[string]float64{}
	for _, level := range Levels {
		synctest.Test(t, func(t *testing.T) {
			n := network(t, level, "fat-tree k=8 rate=10Gbps ecn=60KB")
			eps, err := Endpoints(n, nil, workers, Options{Options: wire.DefaultOptions()})
			if err != nil {
				t.Fatal(err)
			}
			got := traintest.Observe(t, eps, parts, traintest.Single, o)
			traintest.SameCurve(t, level, got.Results[0].Loss, want.Results[0].Loss, 0)
			s := n.Stats()
			took[level] = got.Results[0].EpochSeconds[1]
			t.Logf("%s level: epochs of %v s, %d events", level, got.Results[0].EpochSeconds, s.Events)
		})
	}
	near(t, "seconds per epoch at flow level and at packet level", took["flow"], took["packet"], 0.15)
}

// Every full-graph strategy trains over a network with losses and other traffic, with two
// workers per host, and two runs take the same virtual time.
func TestStrategies(t *testing.T) {
	const workers = 8
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", workers, 4)
	top := must(ParseTopology("leaf-spine leaves=2 spines=2 hosts=2 rate=1Gbps buffer=30KB ecn=15KB"))
	s := Scenario{Topology: top, Workers: workers, Hosts: []int{0, 0, 1, 1, 2, 2, 3, 3},
		Background: Background{Load: 0.2, Seed: 9}, Options: Options{Options: wire.DefaultOptions()}}
	for k := range parts {
		s.Options.ServerOf = append(s.Options.ServerOf, parts[0].Book.Server(k))
	}
	for _, strategy := range []string{"cagnet", "sancus", "g3", "bns", "granndis", "neutronstar", "neutrontp",
		"plexus:2x2x2"} {
		o := traintest.Options("gcn")
		o.Epochs = 3
		o.Strategy = traintest.Strategy(t, strategy)
		want := traintest.TrainServers(t, parts, traintest.Ref, o)
		var results [2]*Result
		for run := range results {
			synctest.Test(t, func(t *testing.T) {
				var err error
				results[run], err = s.Run(func(ends []wire.Endpoint) error {
					got := traintest.Observe(t, ends, parts, traintest.Ref, o)
					traintest.SameCurve(t, strategy, got.Results[0].Loss, want.Results[0].Loss, 1e-12)
					return nil
				})
				if err != nil {
					t.Error(strategy, err)
				}
			})
		}
		if !reflect.DeepEqual(results[0], results[1]) {
			t.Errorf("%s: two runs differ: %g s and %g s", strategy, results[0].Seconds, results[1].Seconds)
		}
	}
}
