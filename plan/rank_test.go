package plan

import (
	"slices"
	"strings"
	"testing"

	"starling/cost"
	"starling/train"
)

// choice is one that takes that many seconds and bytes.
func choice(strategy, name string, seconds float64, bytes int64, settings train.Settings) Planned {
	p := cost.Prediction{Seconds: seconds, Compute: seconds, Between: bytes}
	return Planned{Name: name, Strategy: strategy, Exact: true, Settings: settings, Predicted: p, counted: p,
		Command: "starling train graph --strategy " + name}
}

// TestEqualChoicesAreOneRow: a run that has several names is one row with all of them, under the simplest; another number
// of bytes makes another run, and what was learnt of a strategy does not.
func TestEqualChoicesAreOneRow(t *testing.T) {
	learnt := choice("neutronstar", "neutronstar", 2, 100, nil)
	learnt.Predicted = learnt.Predicted.Scaled(1.5)
	c := &Choices{Mode: "full", Rows: []Planned{learnt, choice("g3", "g3", 2, 90, nil), choice("halo", "halo", 2, 100, nil),
		choice("halo", "halo+relay", 2, 100, train.Settings{"relay": true})}}
	c.rank(&Options{})
	if len(c.Rows) != 2 || c.Rows[0].Name != "halo" || !slices.Equal(c.Rows[0].Aliases, []string{"neutronstar", "halo+relay"}) {
		t.Fatalf("%+v", c.Rows)
	}
	if text := c.String(); !strings.Contains(text, "halo = neutronstar = halo+relay ") || strings.Count(text, "neutronstar") != 2 {
		t.Error(text) // in its row, and as the pick
	}
}

// TestTiesGoToTheSimpler: of choices within one percent the one with fewer settings is picked, and then the default; more
// than that is worth them.
func TestTiesGoToTheSimpler(t *testing.T) {
	relay := train.Settings{"relay": true}
	for _, want := range []struct {
		name string
		rows []Planned
	}{
		{"halo", []Planned{choice("halo", "halo+relay", 1, 1, relay), choice("halo", "halo", 1.005, 2, nil)}},
		{"halo", []Planned{choice("g3", "g3", 1, 1, nil), choice("halo", "halo", 1.005, 2, nil)}},
		{"halo+relay", []Planned{choice("halo", "halo+relay", 1, 1, relay), choice("halo", "halo", 1.02, 2, nil)}},
	} {
		c := &Choices{Mode: "full", Rows: want.rows}
		if c.rank(&Options{}); c.Pick.Name != want.name || c.Rows[0].Name != want.name {
			t.Errorf("%s is picked, want %s", c.Pick.Name, want.name)
		}
	}
}

// TestPickComesLast: the text ends with the pick and its command, has a few rows, and fits 100 columns; --all has every
// row and what was left out.
func TestPickComesLast(t *testing.T) {
	c := &Choices{Dataset: "graph", Model: "gcn", Mode: "full", Workers: 4, Servers: 2}
	for i := range 70 {
		name := "halo+" + strings.Repeat("x", i)
		c.Rows = append(c.Rows, choice("halo", name, 1+float64(i), int64(i), nil))
		c.drop("g3+"+strings.Repeat("y", i), "", "does not go together with these settings")
	}
	c.Rows[0].Command += strings.Repeat(" --setting value", 12)
	c.rank(&Options{})
	text := c.String()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.Join(strings.Fields(strings.ReplaceAll(text[strings.Index(text, "\npick: "):], "\\\n", "")), " ")
	if !strings.HasSuffix(last, c.Pick.Command) || len(lines) > 21 || !strings.Contains(text, "and 62 more: --all") ||
		!strings.Contains(text, "left out: 70 choices; --all") ||
		!strings.Contains(text, `a worker in Kubernetes: requests: {cpu: "1", memory: `) {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
	for _, line := range lines {
		if len([]rune(line)) > 100 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	if c.All = true; strings.Count(c.String(), "halo+x") < 69 || !strings.Contains(c.String(), "does not go together") {
		t.Error(c.String())
	}
}

// TestRequests: a fifth more memory than predicted, in whole MiB.
func TestRequests(t *testing.T) {
	const want = `requests: {cpu: "4", memory: 121Mi}`
	if got := requests(4, &cost.Prediction{Memory: 100<<20 + 1}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
