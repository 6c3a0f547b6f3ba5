package full

import (
	"testing"

	"starling/train/traintest"
	"starling/wire"
)

func TestCAGNETIsExact(t *testing.T) { traintest.ExactEverywhere(t, traintest.Strategy(t, "cagnet")) }
func TestCAGNETOnOddParts(t *testing.T) {
	traintest.ExactOnOddParts(t, traintest.Strategy(t, "cagnet"))
}
func TestCAGNETStopsTogether(t *testing.T) { traintest.AllStop(t, traintest.Strategy(t, "cagnet")) }

// TestCAGNETSendsWholeBlocks: per layer the core goes to every peer, and a gradient of
// every other vertex to its owner, whatever the cut.
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
		for kind, rows := range map[wire.Kind]int64{wire.Activation: 3 * p.Meta.Core,
			wire.Gradient: 120 - p.Meta.Core} {
			if got, want := plan.Epoch(0)[wire.Class{Kind: kind, Layer: 1, Link: end.Link(0)}], rows*16*8; got != want {
				t.Errorf("part %d plans %d bytes of %v in layer 1, want %d", p.Meta.Part, got, kind, want)
			}
		}
	}
}
