package neutronstar

import (
	"fmt"
	"testing"

	"starling/exchange"
	"starling/nn"
	"starling/train"
	"starling/train/site"
	"starling/train/traintest"
	"starling/wire"
)

// priced is neutronstar with given costs, of seconds per row, edge and byte, so that no
// clock decides.
func priced(row, edge, byteSeconds float64) train.Descriptor {
	return train.Describe(train.Descriptor{Name: "priced"}, options{},
		func(s *train.Site, o options) (train.Strategy, error) {
			w := site.Worker(s, o.RowOptions, o.RelayOption)
			l := exchange.NewSetup(w)
			c := site.NewCosts(s, l).Unmeasured()
			c.Inside, c.Between = byteSeconds, byteSeconds
			for i := range c.Layers {
				c.Layers[i].Row, c.Layers[i].Edge = row, edge
			}
			return newHybrid(l, c, w.Budget(o.BudgetOption))
		})
}

var (
	allReceived    = priced(1, 1, 1e-9)
	someOfEach     = priced(100, 10, 1)
	mostRecomputed = priced(10, 1, 1)
	allRecomputed  = priced(1e-9, 1e-9, 1)
)

// within is a strategy with a memory budget.
func within(d train.Descriptor, budget string, relay bool) train.Choice {
	return traintest.Made(d, options{BudgetOption: exchange.BudgetOption{MemoryBudget: budget},
		RelayOption: exchange.RelayOption{Relay: relay}, RowOptions: exchange.DefaultRows})
}

// TestIsExact, whether little, some or everything is recomputed.
func TestIsExact(t *testing.T) {
	for i, model := range nn.Models {
		if model == "mlp" {
			continue
		}
		d := traintest.Communities(t, 100, i%2 == 1)
		o := traintest.ThreeLayers(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		workers := []int{1, 2, 3, 5}[i%4]
		parts := traintest.Cut(t, d, "fennel", max(workers, 2))
		for name, d := range map[string]train.Descriptor{"all received": allReceived, "some of each": someOfEach,
			"all recomputed": allRecomputed} {
			o.Strategy = within(d, "1TiB", false)
			run := traintest.TrainServers(t, parts, traintest.Ref, o)
			for _, r := range run.Results {
				traintest.SameCurve(t, model+", "+name, r.Loss, want.Loss, 1e-9)
				traintest.SameCurve(t, model+", "+name+", validation", r.Val, want.Val, 1e-9)
			}
			if sent := rowsSent(run); name == "all recomputed" && sent > 0 {
				t.Errorf("%s: %d bytes of rows sent, with %q", model, sent, run.Notes)
			}
			t.Log(model, run.Notes)
		}
		o.Strategy = within(allRecomputed, "1B", false)
		if sent := rowsSent(traintest.TrainServers(t, parts, traintest.Ref, o)); sent == 0 {
			t.Errorf("%s: everything recomputed without memory", model)
		}
	}
}

// rowsSent are the bytes of rows of hidden layers and their gradients.
func rowsSent(r *traintest.Trained) int64 {
	return r.Sum(func(c wire.Class) bool { return c.Layer >= 0 })
}

// TestMeasures: with rates of this machine it is exact too.
func TestMeasures(t *testing.T) {
	for _, model := range []string{"gcn", "mlp", "ressage+"} {
		d := traintest.Oddities(t, 80, model == "gcn")
		o := traintest.ThreeLayers(model)
		o.Strategy = within(Strategy, "", false)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for _, workers := range []int{1, 3} {
			for _, r := range traintest.TrainServers(t, traintest.Cut(t, d, "random", workers), traintest.Ref,
				o).Results {
				traintest.SameCurve(t, fmt.Sprint(model, " on ", workers), r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

// TestRelayed: whatever is chosen where rows are shared, losses are one worker's.
func TestRelayed(t *testing.T) {
	for i, model := range traintest.FamilyModels {
		d := traintest.Communities(t, 100, i%2 == 1)
		o := traintest.ThreeLayers(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		parts := traintest.CutForServers(t, d, "fennel", 4, 2)
		for name, d := range map[string]train.Descriptor{"some of each": someOfEach,
			"most recomputed": mostRecomputed} {
			o.Strategy = within(d, "1TiB", true)
			for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
				traintest.SameCurve(t, model+", "+name, r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

func TestOnOddParts(t *testing.T)    { traintest.ExactOnOddParts(t, within(Strategy, "", false)) }
func TestStopsTogether(t *testing.T) { traintest.AllStop(t, within(Strategy, "", false)) }

// TestEdgeFeatures: recomputed rows look at the features of their edges.
func TestEdgeFeatures(t *testing.T) {
	d := traintest.WithEdgeFeatures(traintest.Oddities(t, 70, false))
	parts := traintest.Cut(t, d, "random", 3)
	for _, model := range []string{"gat", "gatv2", "gin"} {
		o := traintest.EdgeOptions(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		o.Strategy = within(allRecomputed, "1TiB", false)
		for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
			traintest.SameCurve(t, model, r.Loss, want.Loss, 1e-9)
			traintest.SameCurve(t, model+", validation", r.Val, want.Val, 1e-9)
		}
	}
}
