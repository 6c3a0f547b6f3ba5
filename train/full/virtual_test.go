package full

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"starling/coflow"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
	"starling/wire/wiretest"
)

// TestWholeRunInVirtualTime: four workers train over simulated links, whose clock is the only
// one that the run reads. The curve equals the curve of a run in real time, and every time that is
// reported is virtual: computing takes none, a message takes a second of latency, and what a
// link carries its bytes over the rate, while the test itself ends at once.
func TestWholeRunInVirtualTime(t *testing.T) {
	const workers, latency, rate = 4, time.Second, 1000.0
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", workers, 2)
	for _, name := range []string{"halo", "cagnet", "pipegcn", "sancus", "g3", "bns", "granndis", "neutronstar"} {
		t.Run(name, func(t *testing.T) {
			o := traintest.Options("gcn")
			o.Epochs = 4
			var err error
			if o.Strategy, err = train.Choose(name, nil); err != nil {
				t.Fatal(err)
			}
			want := traintest.TrainServers(t, parts, traintest.Ref, o)
			synctest.Test(t, func(t *testing.T) {
				opt := wire.DefaultOptions()
				opt.Timeout = time.Hour
				for k := range parts {
					opt.ServerOf = append(opt.ServerOf, parts[0].Book.Server(k))
				}
				ends := wiretest.Simulate(t, workers, opt, wiretest.Uniform(latency, rate))
				got := traintest.Observe(t, ends, parts, traintest.Ref, o)
				checkVirtual(t, got, want, ends[0].Clock(), latency, rate)
			})
		})
	}
}

// checkVirtual compares a run in virtual time with one in real time.
func checkVirtual(t *testing.T, got, want *traintest.Trained, clock wire.Clock, latency time.Duration, rate float64) {
	r := got.Results[0]
	for epoch, loss := range want.Results[0].Loss { // strategies that choose by measured rates may sum in another order
		if math.Abs(r.Loss[epoch]-loss) > 1e-12*loss {
			t.Errorf("epoch %d: loss %v, in real time %v", epoch, r.Loss[epoch], loss)
		}
	}
	total := wire.Since(clock, wire.VirtualStart).Seconds()
	var sum float64
	for epoch, s := range r.EpochSeconds {
		sum += s
		if s < latency.Seconds() || s > total {
			t.Errorf("epoch %d took %g s of virtual time, messages take %v each and the run %g s", epoch, s, latency,
				total)
		}
	}
	if sent := float64(got.Counted[0].Sum()); sum > total || total < sent/rate/float64(len(got.Results)) {
		t.Errorf("epochs took %g s, the whole run %g s; worker 0 sent %g bytes at %g per second to each", sum, total,
			sent, rate)
	}
	for _, span := range got.Spans {
		if span.Start.Before(wire.VirtualStart) || wire.Since(clock, span.Start) < span.Dur {
			t.Errorf("%q at %v for %v is not in virtual time", span.Name, span.Start, span.Dur)
		}
	}
}

// TestNobodyWaitsForBulk: with bulk transfers that take an hour of virtual time each, and all
// others a second, no epoch takes an hour: what a step waits for is of another type. Only
// what is told before the first may wait.
func TestNobodyWaitsForBulk(t *testing.T) {
	const workers, latency, bulk = 4, time.Second, time.Hour
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", workers, 2)
	for _, name := range []string{"halo", "halo+relay", "cagnet", "pipegcn", "pipegcn+means", "sancus", "skipg", "g3",
		"g3+relay", "bns", "bns:cached", "granndis", "granndis:eas", "neutronstar"} {
		t.Run(name, func(t *testing.T) {
			o := traintest.Options("gcn")
			o.Epochs = 4
			var err error
			if o.Strategy, err = train.Choose(name, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				opt := wire.DefaultOptions()
				opt.Timeout = 1000 * time.Hour
				for k := range parts {
					opt.ServerOf = append(opt.ServerOf, parts[0].Book.Server(k))
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
				r := traintest.Observe(t, ends, parts, traintest.Ref, o).Results[0]
				for epoch, s := range r.EpochSeconds {
					if s < latency.Seconds() || s >= bulk.Seconds() {
						t.Errorf("epoch %d took %g s: transfers take %v, bulk ones %v", epoch, s, latency, bulk)
					}
				}
			})
		})
	}
}
