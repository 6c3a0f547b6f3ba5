package cagnet_test

import (
	"strings"
	"testing"

	"starling/train/traintest"
	"starling/wire"
)

func TestCAGNETIsExact(t *testing.T) { traintest.ExactEverywhere(t, traintest.Strategy(t, "cagnet")) }
func TestCAGNETOnOddParts(t *testing.T) {
	traintest.ExactOnOddParts(t, traintest.Strategy(t, "cagnet"))
}
func TestCAGNETStopsTogether(t *testing.T) { traintest.AllStop(t, traintest.Strategy(t, "cagnet")) }

// TestCAGNETSendsWholeBlocks: per layer a worker sends on every block but that of the next
// worker on the ring, whose path ends with it, and backward gradients of every other's
// vertices, whatever the cut.
func TestCAGNETSendsWholeBlocks(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "fennel", 4)
	o := traintest.Options("gcn")
	o.Model.Layers = 3
	o.Strategy = traintest.Strategy(t, "cagnet")
	for _, p := range parts {
		end := traintest.Ends(4)[p.Meta.Part]
		plan, err := traintest.Plan(p, end, o)
		if err != nil {
			t.Fatal(err)
		}
		next := p.Book.Size((p.Meta.Part + 1) % 4)
		for kind, rows := range map[wire.Kind]int64{wire.Activation: 120 - next, wire.Gradient: 120 - p.Meta.Core} {
			if got, want := plan.Epoch(0)[wire.Class{Kind: kind, Layer: 1, Link: end.Link(0)}], rows*16*8; got != want {
				t.Errorf("part %d plans %d bytes of %v in layer 1, want %d", p.Meta.Part, got, kind, want)
			}
		}
	}
}

// TestBlocksCrossServersOnce: with several workers on a server a block crosses to each other
// server once, forward and backward, with the curve of one worker; that plan and ledger
// agree is TrainServers' to say.
func TestBlocksCrossServersOnce(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for _, strategy := range []string{"cagnet", "sancus:epoch:0", "sancus:variation:0", "skipg:0"} {
		for _, servers := range []int{2, 3} {
			parts := traintest.CutForServers(t, d, "hash", 6, servers)
			o := traintest.Options("gcn")
			o.Model.Layers, o.Epochs, o.EvalEvery = 3, 3, 0
			want := traintest.Full(t, traintest.Ref(), d, o)
			var unclipped []string
			if strings.HasPrefix(strategy, "sancus") {
				unclipped = append(unclipped, "clip=0")
			}
			o.Strategy = traintest.Strategy(t, strategy, unclipped...)
			r := traintest.TrainServers(t, parts, traintest.Ref, o)
			traintest.SameCurve(t, strategy, r.Results[0].Loss, want.Loss, 1e-9)
			for _, kind := range []wire.Kind{wire.Activation, wire.Gradient} {
				var got int64
				for _, sent := range r.Counted {
					got += sent[wire.Class{Kind: kind, Layer: 1, Link: wire.BetweenServers}]
				}
				if want := int64(o.Epochs*(servers-1)*120*16*8) + measured(r, kind); got != want {
					t.Errorf("%s on %d servers: %d bytes of %v between servers, want %d", strategy, servers, got, kind,
						want)
				}
			}
		}
	}
}

// measured is what the measuring passes of all workers sent of a kind between servers in
// layer 1.
func measured(r *traintest.Trained, kind wire.Kind) (bytes int64) {
	for _, result := range r.Results {
		each := result.Plan.Measure[wire.Class{Kind: kind, Layer: 1, Link: wire.BetweenServers}]
		bytes += each * int64(len(result.Measured))
	}
	return bytes
}
