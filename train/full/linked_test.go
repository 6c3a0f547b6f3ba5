package full

import (
	"strings"
	"testing"

	"starling/train/traintest"
)

// TestLinkedRows: rows that devices read of each other are those that go over the wire, to the bit, and the ledger has
// them as planned. Some workers cannot read each other; where rows are rounded, relayed or without zeros none do.
func TestLinkedRows(t *testing.T) {
	d := traintest.Communities(t, 160, false)
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	for _, c := range []struct {
		strategy, model string
		options         []string
		reads           bool
	}{
		{"halo", "gcn", nil, true},
		{"halo", "gat", nil, true},
		{"pipegcn", "sage", []string{"means"}, true},
		{"bns:0.5", "gcn", nil, true},
		{"halo", "gcn", []string{"relay"}, false},
		{"halo", "sage", []string{"wire_dtype=bf16"}, true}, // features and what is measured
		{"cagnet", "gcn", nil, false},
	} {
		name := strings.Join(append([]string{c.strategy, c.model}, c.options...), " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := traintest.Small(c.model)
			o.Strategy = traintest.Strategy(t, c.strategy, c.options...)
			want := traintest.TrainServers(t, parts, traintest.Single, o)
			for _, unmet := range [][]int64{nil, {2}} {
				links := traintest.NewLinks(t)
				got := traintest.TrainServers(t, parts, links.Device(traintest.Single, unmet...), o)
				traintest.SameCurve(t, name, got.Results[0].Loss, want.Results[0].Loss, 0)
				if reads := links.Fetched() > 0; reads != c.reads {
					t.Errorf("%d bytes were read, want some: %v", links.Fetched(), c.reads)
				}
			}
		})
	}
}

// TestLinkedWorkerFails: when a worker breaks, those that wait for its rows, or for it to read theirs, end too.
func TestLinkedWorkerFails(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3)
	o := traintest.Small("gcn")
	o.Strategy = traintest.Strategy(t, "halo")
	for at := 1; at < 40; at += 6 {
		traintest.StopsTogetherOn(t, parts, traintest.NewLinks(t).Device(traintest.Single), o, at)
	}
}
