package full

import (
	"slices"
	"testing"

	"starling/train/traintest"
)

// TestTypedResumeIsExact: a typed run with replicas, and one that learns from a relation, continue to the same bits,
// with rows that are learnt.
func TestTypedResumeIsExact(t *testing.T) {
	d := traintest.Typed(t, 30)
	parts := traintest.CutForServers(t, d, "hash", 4, 2)
	for i, strategy := range []string{"granndis:1", "neutronstar", "halo"} {
		o := traintest.TypedOptions(d, []string{"rgcn", "rgat", "hsage"}[i])
		if strategy == "halo" {
			o = traintest.RelationOptions(d, "hsage", "mlp", "likes")
			o.Pairs.ValEdges = 0.2
		}
		o.Strategy = traintest.Strategy(t, strategy, rated(strategy, o.Model.Layers))
		if want, got := traintest.Resumed(t, parts, o, 2, true); !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: %v, never stopped %v", strategy, got.Loss, want.Loss)
		}
	}
}

// TestResumeIsExact: a run that is resumed from a checkpoint has every loss of one that
// never stopped, to the bit, also where stale rows or error-feedback residuals are used.
func TestResumeIsExact(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "hash", 4, 2)
	for i, model := range []string{"sage", "gat"} {
		for j, strategy := range []string{"halo", "bns:0.5", "bns:0.3:cached", "pipegcn", "sancus:epoch:2",
			"sancus:adaptive:1+gradients",
			"sancus:variation:0.9", "skipg:2", "g3", "granndis:1", "granndis", "neutronstar"} {
			for k, dtype := range []string{"none", "int8"} {
				for _, smooth := range []string{"", "smooth=0.6"} {
					if smooth != "" && strategy != "pipegcn" {
						continue
					}
					o := traintest.Options(model)
					o.Epochs, o.EvalEvery, o.Model.Layers = 7, 2, 3
					o.Strategy = traintest.Strategy(t, strategy, "wire_dtype="+dtype, smooth,
						rated(strategy, o.Model.Layers))
					at := []int{1, 4}[(i+j+k)%2] // either with each model and with each type of rows
					if want, got := traintest.Resumed(t, parts, o, at, true); !slices.Equal(got.Loss, want.Loss) {
						t.Errorf("%s %s %s %s, saved after %d: %v, never stopped %v", model, strategy, dtype, smooth,
							at, got.Loss, want.Loss)
					}
				}
			}
		}
	}
}

// TestEveryOptionStopsAndResumes: likewise with the options of the papers that have no test of their own, on workers of
// two servers; and when a worker breaks, all end, and know why.
func TestEveryOptionStopsAndResumes(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "hash", 4, 2)
	for _, c := range []struct {
		model, strategy string
		options         []string
	}{
		{"gat", "sancus:epoch:1", []string{"clip=0.01"}},
		{"sage", "sancus:epoch:2+gradients", nil},
		{"gcn", "sancus:variation:0.01", nil},
		{"gcn", "granndis:most", nil},
		{"sage", "granndis:eas1,3", nil},
		{"gat", "granndis:eas1,3:plain", nil},
		{"gcn", "neutrontp:decoupled", nil},
		{"sage", "plexus+rows", nil},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			t.Parallel()
			o := traintest.Options(c.model)
			o.Epochs, o.EvalEvery, o.Model.Layers = 6, 2, 3
			o.Strategy = traintest.Strategy(t, c.strategy, c.options...)
			if want, got := traintest.Resumed(t, parts, o, 3, true); !slices.Equal(got.Loss, want.Loss) {
				t.Errorf("%v, never stopped %v", got.Loss, want.Loss)
			}
			for _, at := range []int{3, 60} {
				traintest.StopsTogether(t, parts, o, at)
			}
		})
	}
}
