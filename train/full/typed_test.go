package full

import (
	"fmt"
	"strings"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/train"
	"starling/train/traintest"
)

// TestTypedIsExact: typed models on several workers follow one worker's loss, whatever the strategy, and send what was
// planned.
func TestTypedIsExact(t *testing.T) {
	d := traintest.Typed(t, 60)
	for _, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for _, w := range []int{1, 2, 3, 5} {
			parts := traintest.Cut(t, d, []string{"random", "hash"}[w%2], w)
			for _, strategy := range []string{"halo", "g3", "cagnet"} {
				o.Strategy = traintest.Strategy(t, strategy)
				label := fmt.Sprintf("%s with %s on %d workers", model, strategy, w)
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
				}
			}
		}
		o.Strategy = traintest.Strategy(t, "halo", "relay")
		parts := traintest.CutForServers(t, d, "hash", 4, 2)
		for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
			traintest.SameCurve(t, model+" with rows relayed inside servers", r.Loss, want.Loss, 1e-12)
		}
	}
}

// TestTypedReplicasAreExact: workers that compute replicas of others' vertices follow one worker's loss, with features
// of a width per type and with rows that are learnt, which are never replicated.
func TestTypedReplicasAreExact(t *testing.T) {
	const cheap, dear = "neutronstar rates=row:1e-9:1e-9:1e-9,edge:1e-9:1e-9:1e-9,inside:1,between:1",
		"neutronstar rates=row:900:900:900,edge:9:9:9,inside:1,between:1"
	some := []string{"granndis:1", cheap, "granndis:3", dear, "granndis:2"}
	for i, d := range []*graph.Dataset{traintest.Typed(t, 30), traintest.Featured(traintest.Typed(t, 30))} {
		want := map[string]*train.Result{}
		for j, w := range []int{1, 2, 3, 5, 4} {
			parts := traintest.CutForServers(t, d, []string{"random", "hash"}[w%2], w, []int{w, 2}[j/4])
			for k, model := range nn.TypedModels {
				o := traintest.TypedOptions(d, model)
				o.Epochs, o.EvalEvery, o.Model.Layers = 3, 3, 3
				if want[model] == nil {
					want[model] = traintest.Full(t, traintest.Ref(), d, o)
				}
				label := fmt.Sprintf("%s, graph %d, on %d workers", model, i, w)
				follows(t, label, parts, o, want[model], some[(j+k)%5], some[(j+k+3)%5])
				if w == 4 && k+i == 0 {
					follows(t, label+", by measured rates", parts, o, want[model], "granndis", "neutronstar")
				}
			}
		}
	}
}

// follows trains with strategies and compares with one worker's run.
func follows(t *testing.T, label string, parts []*partition.Part, o train.Options, want *train.Result,
	strategies ...string) {
	t.Helper()
	for _, text := range strategies {
		name, option, _ := strings.Cut(text, " ")
		o.Strategy = traintest.Strategy(t, name, option, optionIf(option != "", "memory_budget=1GiB"))
		for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
			traintest.SameCurve(t, label+" with "+text, r.Loss, want.Loss, 1e-12)
			traintest.SameCurve(t, label+" with "+text+", validation", r.Val, want.Val, 1e-12)
		}
	}
}

// TestUntypedStrategiesSayWhy: who cannot train on a typed graph refuses it with a reason.
func TestUntypedStrategiesSayWhy(t *testing.T) {
	o := traintest.TypedOptions(traintest.Typed(t, 60), "rgcn")
	for _, strategy := range []string{"bns", "switchgnn", "granndis:eas", "neutrontp", "plexus"} {
		o.Strategy = traintest.Strategy(t, strategy)
		if err := train.Check(&o, train.Facts{Workers: 2}); err == nil ||
			!strings.Contains(err.Error(), "a typed graph") {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}

// TestTypedSancusLooksAtBlocks: blocks that depend on what they hold are planned without features of one width.
func TestTypedSancusLooksAtBlocks(t *testing.T) {
	d := traintest.Typed(t, 30)
	o := traintest.TypedOptions(d, "rgcn")
	o.Epochs, o.EvalEvery, o.Strategy = 2, 2, traintest.Strategy(t, "sancus:variation:0.01")
	traintest.TrainParts(t, traintest.Cut(t, d, "hash", 2), traintest.Ref, o)
}
