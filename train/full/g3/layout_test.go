package g3

import (
	"fmt"
	"testing"

	"starling/exchange"
	"starling/train/traintest"
)

// TestBinsByLayer: narrow layers have larger bins than wide ones, by rows that leave and, within a budget, by memory;
// the losses are one worker's.
func TestBinsByLayer(t *testing.T) {
	d := traintest.Communities(t, 2000, false)
	o := traintest.Options("gcn")
	o.Model.Layers, o.Model.Hidden, o.Epochs, o.EvalEvery = 3, 96, 2, 0
	want := traintest.Full(t, traintest.CPU(t, 2), d, o)
	for servers := 1; servers <= 2; servers++ {
		parts := traintest.CutForServers(t, d, "random", 4, servers)
		for _, budget := range []string{"", "128KiB"} {
			for _, pipeline := range []string{"intra", "both"} {
				label := fmt.Sprintf("%s, budget %q, %d servers", pipeline, budget, servers)
				o.Strategy = traintest.Made(Strategy, options{Pipeline: pipeline, RowOptions: exchange.DefaultRows,
					RelayOption:  exchange.RelayOption{Relay: servers > 1},
					BudgetOption: exchange.BudgetOption{MemoryBudget: budget}})
				r := traintest.Observe(t, traintest.Ends(4), parts, traintest.Single, o)
				traintest.SameCurve(t, label, r.Results[0].Loss, want.Loss, 1e-4)
				if pipeline != "intra" {
					continue // vertices go on before their bins
				}
				first := map[int]int{} // rows in the first bin, by phase
				for _, span := range r.Spans {
					var phase, hi int
					if n, _ := fmt.Sscanf(span.Name, "phase %d, rows 0 to %d", &phase, &hi); n == 2 {
						first[phase] = hi
					}
				}
				if !(first[0] < first[1] && first[1] <= first[2]) || budget != "" && first[1] == first[2] {
					t.Errorf("%s: %v rows per bin, want more in narrower layers", label, first)
				}
				if n := (&options{}).Messages(parts[0].Book, 4*96); budget == "" &&
					int(n) != len(cutBins(parts[0].Core(), first[0]))-1 {
					t.Errorf("%s: %g messages are planned per peer for bins of %d rows", label, n, first[0])
				}
			}
		}
	}
}
