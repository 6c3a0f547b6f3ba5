package report

import (
	"math"
	"strings"
	"testing"

	"starling/spec"
)

// timed is a strategy with the epochs' seconds of each round, after a first epoch that does not count.
func timed(strategy string, rounds ...[]float64) *Rounds {
	r := &Rounds{Strategy: strategy}
	for _, seconds := range rounds {
		r.Runs = append(r.Runs, &Run{Dataset: "d", Model: "gcn", Strategy: strategy, Workers: 2, Epochs: 2,
			Loss: []Number{2, 1}, EpochSeconds: Numbers(append([]float64{9}, seconds...)),
			WaitShare: Number(math.NaN()), HiddenShare: Number(math.NaN()), TestAccuracy: Number(math.NaN())})
	}
	return r
}

// TestNoiseIsNoSpeedup: a comparison of one round claims no ratio between rows whose epochs overlap, nor of a few
// epochs; one of several rounds shows differences within the spread as equal; what is told has its ratio.
func TestNoiseIsNoSpeedup(t *testing.T) {
	quick, slow, noisy := []float64{1, 1, 1.1, 1, 1}, []float64{3, 3.1, 3, 3, 3}, []float64{1, 1, 8.6, 1, 1}
	for _, c := range []struct {
		name       string
		halo, g3   [][]float64
		want, over string
		ratio      bool
	}{
		{"overlapping epochs", [][]float64{noisy}, [][]float64{quick}, "unclear", "one round does not tell", false},
		{"two epochs", [][]float64{slow[:2]}, [][]float64{quick[:2]}, "unclear", "one round does not tell", false},
		{"one round apart", [][]float64{slow}, [][]float64{quick}, "2.96x", "2.96x over halo", true},
		{"rounds that differ as much", [][]float64{slow, quick, quick}, [][]float64{quick, quick, quick}, "about equal",
			"about as fast as halo", false},
		{"rounds apart", [][]float64{slow, slow, slow}, [][]float64{quick, quick, quick}, "2.96x", "2.96x over halo",
			true},
	} {
		out := Compare([]*Rounds{timed("halo", c.halo...), timed("g3", c.g3...)})
		text, page := out.String(), string(out.HTML())
		row := strings.Fields(strings.Split(text[strings.Index(text, "\ng3 ")+1:], "\n")[0])
		if !strings.Contains(strings.Join(row, " "), c.want) || !strings.Contains(page, c.want) ||
			!strings.Contains(out.Papers(), c.over) {
			t.Errorf("%s: want %q and %q in\n%s%s", c.name, c.want, c.over, text, out.Papers())
		}
		if got := strings.Contains(text+page+out.Papers(), "2.96x"); got != c.ratio {
			t.Errorf("%s: a ratio is claimed: %v\n%s", c.name, got, text)
		}
		if got := strings.Contains(text, "--rounds 3"); got != (c.want == "unclear") {
			t.Errorf("%s: more rounds are advised: %v\n%s", c.name, got, text)
		}
	}
}

// TestRowNamesSettingItCannotHave: a row that trains another model than the others says in which setting, and is not
// exact.
func TestRowNamesSettingItCannotHave(t *testing.T) {
	s := spec.Default()
	s.Strategy, s.Model.Dropout, s.Model.InputDropout = "halo", 0.5, spec.On
	other := s
	other.Strategy, other.Model.InputDropout = "cagnet", spec.Off
	a, b := timed("halo", []float64{1, 1}), timed("cagnet", []float64{1, 1})
	a.Runs[0].Spec, b.Runs[0].Spec = &s, &other
	c := Compare([]*Rounds{a, b})
	if len(c.Rows[0].Without) != 0 || !c.Rows[0].Exact || c.Rows[1].Exact {
		t.Errorf("%+v", c.Rows)
	}
	for _, text := range []string{c.String(), string(c.HTML())} {
		if !strings.Contains(text, "cagnet, without input dropout") || !strings.Contains(text, "another model") {
			t.Errorf("nothing names the setting in\n%s", text)
		}
	}
}

// TestWaitingNotMeasuredIsADash: a share of waiting that was not measured is never shown as 0%.
func TestWaitingNotMeasuredIsADash(t *testing.T) {
	batches := timed("distdgl", []float64{1, 1})
	batches.Runs[0].SamplesPerSecond = 100
	c := Compare([]*Rounds{batches})
	for _, col := range c.speedColumns() {
		if col.head == "waiting" && col.cell(&c.Rows[0]) != "-" {
			t.Errorf("waiting is shown as %s", col.cell(&c.Rows[0]))
		}
	}
	if text, page := c.String(), string(c.HTML()); !strings.Contains(text, "waiting") ||
		strings.Contains(page, "0% waiting") || !strings.Contains(page, "waiting not measured") {
		t.Errorf("%s%s", text, page)
	}
	batches.Runs[0].WaitShare = 0.22
	if text := Compare([]*Rounds{batches}).String(); !strings.Contains(text, "22%") {
		t.Errorf("what was measured is not shown in\n%s", text)
	}
}
