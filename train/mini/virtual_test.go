package mini

import (
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
	"starling/wire/wiretest"
)

// TestNobodyWaitsForBulk: as for whole graphs, bulk transfers take an hour of virtual time each
// and all others a second. No epoch of mini-batches takes an hour; the filling of caches,
// which is bulk, happens before the first.
func TestNobodyWaitsForBulk(t *testing.T) {
	const workers, latency, bulk = 3, time.Second, time.Hour
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", workers)
	for _, c := range []struct {
		name    string
		options []string
		fills   bool
	}{{"distdgl", nil, false}, {"distdgl", []string{"cache=degree", "cache_budget=1KB"}, true},
		{"salient", nil, false}, {"bytegnn", nil, false}, {"hopgnn", nil, false},
		{"naive-hop", nil, false}, {"p3", nil, false}, {"cobatch", nil, false}, {"lookahead", nil, false}} {
		t.Run(c.name, func(t *testing.T) {
			o := traintest.Options("gcn")
			o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
			o.Strategy = traintest.Strategy(t, c.name, c.options...)
			o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 1}
			synctest.Test(t, func(t *testing.T) {
				opt := wire.DefaultOptions()
				opt.Timeout = 1000 * time.Hour
				for k := range parts {
					opt.ServerOf = append(opt.ServerOf, k)
				}
				delay := func(id coflow.ID) time.Duration {
					if id.Type == coflow.Bulk {
						return bulk
					}
					return 0
				}
				ends := wiretest.Simulate(t, workers, opt, func(int, int) wiretest.SimulatedLink {
					return wiretest.SimulatedLink{Latency: latency, Delay: delay}
				})
				clock := ends[0].Clock()
				r := traintest.Observe(t, ends, parts, traintest.Ref, o).Results[0]
				for epoch, s := range r.EpochSeconds {
					if s < latency.Seconds() || s >= bulk.Seconds() {
						t.Errorf("epoch %d took %g s: transfers take %v, bulk ones %v", epoch, s, latency, bulk)
					}
				}
				if took := wire.Since(clock, wire.VirtualStart); c.fills && took < bulk {
					t.Errorf("the run took %v: no bulk transfer was there to wait for", took)
				}
			})
		})
	}
}
