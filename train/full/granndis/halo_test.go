package granndis_test

import (
	"maps"
	"slices"
	"testing"

	_ "starling/train/full"
	"starling/train/traintest"
)

// TestWithoutPreloadingIsHalo, to the last bit.
func TestWithoutPreloadingIsHalo(t *testing.T) {
	d := traintest.Communities(t, 100, false)
	o := traintest.ThreeLayers("gat")
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	o.Strategy = traintest.Strategy(t, "granndis:0")
	got := traintest.TrainServers(t, parts, traintest.Single, o)
	o.Strategy = traintest.Strategy(t, "halo")
	want := traintest.TrainServers(t, parts, traintest.Single, o)
	for k := range parts {
		if !slices.Equal(got.Results[k].Loss, want.Results[k].Loss) || !maps.Equal(got.Counted[k], want.Counted[k]) {
			t.Errorf("worker %d: losses %v, bytes %v; halo has %v, %v", k, got.Results[k].Loss, got.Counted[k],
				want.Results[k].Loss, want.Counted[k])
		}
	}
}
