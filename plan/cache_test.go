package plan

import (
	"testing"

	"starling/train"
)

// TestPlanCaches: what a cache saves is planned without a dry run of its own: strategies that differ in their
// defaults alone are predicted alike, a cache that all rows fit sends a part of what none does, and one
// of a few rows saves next to nothing.
func TestPlanCaches(t *testing.T) {
	t.Parallel()
	small := "distdgl+probability"
	of := func(budget string) map[string]Planned {
		c := planned(t, func(o *Options) {
			o.Mode, o.Batches.Size, o.Batches.Fanout, o.Model.Layers = "mini", 40, "3,3", 2
			o.Strategies = []string{"distdgl", small, "distdgl+degree", "salient", "hopgnn", "hopgnn+frequency"}
			if budget != "" {
				o.Settings = train.Settings{"cache_budget": budget}
			}
		})
		out := map[string]Planned{}
		for _, r := range c.Rows {
			for _, name := range append([]string{r.Name}, r.Aliases...) {
				out[name] = r
			}
		}
		if len(out) != 6 {
			t.Fatalf("planned %v, dropped %v", out, c.Dropped)
		}
		return out
	}
	rows := of("100%")
	none, cached := rows["distdgl"].Predicted, rows[small].Predicted
	if cached != rows["salient"].Predicted {
		t.Errorf("salient: %+v, want that of %s: %+v", rows["salient"].Predicted, small, cached)
	}
	if cached.Between >= none.Between || cached.Between == 0 || cached.Memory <= none.Memory {
		t.Errorf("with a cache %+v, without %+v", cached, none)
	}
	if a, b := rows["hopgnn+frequency"].Predicted, rows["hopgnn"].Predicted; a.Between >= b.Between {
		t.Errorf("hopgnn with a cache %+v, without %+v", a, b)
	}
	if rows["salient"].Settings["cache"] != nil {
		t.Errorf("salient's settings are %v, want none that it has anyway", rows["salient"].Settings)
	}
	if few := of("1KiB")[small].Predicted; few.Between <= cached.Between {
		t.Errorf("with a cache of few rows %+v, of all %+v", few, cached)
	}
}
