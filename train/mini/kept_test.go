package mini

import (
	"slices"
	"testing"

	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// TestEveryStrategyKeepsEdges: strategies that draw in ways of their own draw from in-edges that are kept too. They
// send fewer bytes of draws, and losses are the same to the bit.
func TestEveryStrategyKeepsEdges(t *testing.T) {
	for _, strategy := range []string{"bytegnn", "hopgnn", "cobatch", "salient", "lookahead"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			o := traintest.Options("sage")
			o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 8, 2, "none", 0
			m := train.BatchSettings{Sampler: "neighbour", Size: 60, Fanouts: []int{5, 5}, Threads: 1}
			parts := traintest.CutForServers(t, traintest.Communities(t, 300, false), "random", 2, 2)
			bytes, losses := map[string]int64{}, map[string][]float64{}
			for _, edges := range []string{"none", "100%"} {
				options := []string{"cache_budget=100%", "cache_edges=" + edges}
				if strategy != "lookahead" {
					options = append(options, "cache=frequency")
				}
				if strategy == "cobatch" { // else owners draw
					options = append(options, "together=server")
				}
				r := traintest.Batches(t, parts, o, m, true, strategy, options...)
				bytes[edges] = r.Sum(func(c wire.Class) bool { return c.Kind == wire.Topology })
				losses[edges] = r.Results[0].Loss
			}
			if 4*bytes["100%"] > 3*bytes["none"] || !slices.Equal(losses["100%"], losses["none"]) {
				t.Errorf("bytes %v, losses %v", bytes, losses)
			}
		})
	}
}
