package serve

import (
	"testing"

	"starling/graph"
)

// TestReportWithoutSplits: of a dataset whose splits are empty, as `import --like RUN` makes it, every label is compared.
func TestReportWithoutSplits(t *testing.T) {
	d := block(t)
	r := trained(t, models["gcn"], d)
	of, labels := *d, *d.Labels
	of.Splits, of.Labels = graph.Splits{}, &labels
	labels.Class = append([]int32(nil), labels.Class...)
	labels.Class[3], labels.Class[50] = -1, -1 // unknown
	p := predicted(t, r, &of, Labels)
	right, known := 0, 0
	for v, c := range labels.Class {
		if c >= 0 {
			known++
		}
		if c == p.Class[v] {
			right++
		}
	}
	e := p.Evaluation
	if e == nil || e.Split != "labelled" || e.Vertices != known || known != len(labels.Class)-2 {
		t.Fatalf("%+v of %d labels", e, known)
	}
	if want := float64(right) / float64(known); e.Metrics["accuracy"] != want {
		t.Errorf("accuracy %g, want %g", e.Metrics["accuracy"], want)
	}
	if e := predicted(t, r, d, Labels).Evaluation; e.Split != "test" || e.Vertices != len(d.Splits.Test) {
		t.Errorf("with splits %s, %d vertices", e.Split, e.Vertices)
	}
}
