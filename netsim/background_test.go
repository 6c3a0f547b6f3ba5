package netsim

import (
	"math"
	"testing"

	"starling/rng"
)

func TestHadoopSizes(t *testing.T) {
	near(t, "mean size", Hadoop.Mean(), 112e3, 0.01)
	var sum float64
	below := map[int64]float64{1000: 0, 100e3: 0, 1e6: 0}
	const draws = 400000
	for i := range uint64(draws) {
		size := Hadoop.At(rng.New(1).Float64(i))
		sum += float64(size)
		for limit := range below {
			if size <= limit {
				below[limit]++
			}
		}
	}
	near(t, "mean of drawn sizes", sum/draws, Hadoop.Mean(), 0.03)
	for limit, part := range map[int64]float64{1000: 0.6, 100e3: 0.9, 1e6: 0.98} {
		near(t, "part of small sizes", below[limit]/draws, part, 0.01)
	}
	if Hadoop.At(0) != 100 || Hadoop.At(1) != 10e6 {
		t.Error(Hadoop.At(0), Hadoop.At(1))
	}
}

// The arrivals make the load, they are Poisson, and the seed decides them.
func TestBackground(t *testing.T) {
	run := func(seed uint64) (*Traffic, *Stats) {
		n := network(t, "packet", "leaf-spine leaves=4 spines=4 hosts=4 rate=10Gbps ecn=60KB")
		traffic, err := Background{Load: 0.4, Seed: seed, Until: 200 * Millisecond}.Start(n)
		if err != nil {
			t.Fatal(err)
		}
		Run(n, Never)
		return traffic, n.Stats()
	}
	a, stats := run(1)
	b, _ := run(1)
	if c, _ := run(2); a.Begun != b.Begun || a.Bytes != b.Bytes || c.Bytes == a.Bytes {
		t.Errorf("%d transfers of %d bytes, then %d of %d; another seed %d bytes", a.Begun, a.Bytes, b.Begun, b.Bytes,
			c.Bytes)
	}
	const hosts, seconds = 16, 0.2
	want := 0.4 * hosts * 10e9 / 8 * seconds
	near(t, "bytes", float64(a.Bytes), want, 0.1)
	near(t, "transfers", float64(a.Begun), want/Hadoop.Mean(), 4/math.Sqrt(want/Hadoop.Mean()))
	if int64(len(a.Seconds)) != a.Begun || Quantile(a.Slowdown, 0) < 0.9999 || Quantile(a.Slowdown, 0.99) < 1.5 {
		t.Errorf("%d of %d ended; slowdown from %g to %g", len(a.Seconds), a.Begun, Quantile(a.Slowdown, 0),
			Quantile(a.Slowdown, 0.99))
	}
	near(t, "utilisation of a host's link", stats.Ports[0].Utilisation, 0.4, 0.5)
	if _, err := (Background{Load: 1}).Start(network(t, "flow", "star")); err == nil {
		t.Error("a load of 1 is taken")
	}
}

// Connections are used again, so that background traffic takes no more memory the longer it runs.
func TestConnectionsAreReused(t *testing.T) {
	n := network(t, "packet", "star hosts=8 rate=10Gbps buffer=30KB").(*Packets)
	traffic, _ := Background{Load: 0.5, Seed: 3, Until: 300 * Millisecond}.Start(n)
	Run(n, Never)
	begun, ended := int(traffic.Begun), len(traffic.Seconds)
	if len(n.conns) > begun/4 || len(n.closed) != len(n.conns) || begun != ended {
		t.Errorf("%d transfers, %d ended, %d connections, %d of them closed", begun, ended, len(n.conns), len(n.closed))
	}
	if n.total.drops == 0 {
		t.Error("no drops")
	}
}
