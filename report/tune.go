package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"starling/report/chart"
)

// Tune is the result of a search over settings, its trials from the best.
type Tune struct {
	Dataset string  `json:"dataset"`
	Metric  string  `json:"metric"`
	Seed    uint64  `json:"seed"`
	Epochs  int     `json:"epochs"` // of a trial that is trained to the end
	Trials  []Trial `json:"trials"`
	Best    string  `json:"best"` // the flags of the best trial
}

// Trial is one choice of settings.
type Trial struct {
	Number   int      `json:"trial"`
	Settings []string `json:"settings"`
	Epochs   int      `json:"epochs"` // trained
	Val      Number   `json:"val_accuracy"`
	Test     Number   `json:"test_accuracy"`
	Seconds  float64  `json:"seconds"`
	Error    string   `json:"error,omitempty"`
}

// Sort puts the trials in order: those that were trained longest, of these the best by validation, then those that
// failed.
func (t *Tune) Sort() {
	slices.SortStableFunc(t.Trials, func(a, b Trial) int {
		if (a.Error == "") != (b.Error == "") {
			return cmp.Compare(len(a.Error), len(b.Error))
		}
		return cmp.Or(cmp.Compare(b.Epochs, a.Epochs), cmp.Compare(b.Val, a.Val), cmp.Compare(a.Number, b.Number))
	})
	if len(t.Trials) > 0 && t.Trials[0].Error == "" {
		t.Best = "--" + strings.Join(t.Trials[0].Settings, " --")
	}
}

func (t *Tune) lines() [][]string {
	lines := [][]string{{"settings", "trial", "epochs", "validation", "test", "seconds"}}
	for _, x := range t.Trials {
		line := []string{strings.Join(x.Settings, " "), fmt.Sprint(x.Number), fmt.Sprint(x.Epochs),
			fmt.Sprintf("%.4f", float64(x.Val)), fmt.Sprintf("%.4f", float64(x.Test)), fmt.Sprintf("%.1f", x.Seconds)}
		if x.Error != "" {
			line = []string{line[0], line[1], "failed", "-", "-", "-"}
		}
		lines = append(lines, line)
	}
	return lines
}

// String is the table as text.
func (t *Tune) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of trials on %s, at most %d epochs; test at the best epoch by validation\n\n",
		cmp.Or(t.Metric, "accuracy"), t.Dataset, t.Epochs)
	writeColumns(&b, t.lines())
	for _, x := range t.Trials {
		if x.Error != "" {
			b.WriteString(wrap(fmt.Sprintf("trial %d failed: %s", x.Number, x.Error), "  "))
		}
	}
	if t.Best != "" {
		fmt.Fprintf(&b, "\nbest: %s\n", t.Best)
	}
	return b.String()
}

//go:embed tune.html
var tuneText string

// tuneTemplate is parsed when it is first used, not whenever the program starts.
var tuneTemplate = sync.OnceValue(func() *template.Template { return newTemplate("tune", tuneText) })

// HTML is a page with the table.
func (t *Tune) HTML() string {
	lines := t.lines()
	table := &chart.Table{Heads: lines[0]}
	for _, line := range lines[1:] {
		var row chart.Line
		for _, text := range line {
			row.Cells = append(row.Cells, chart.Text(text))
		}
		table.Rows = append(table.Rows, row)
	}
	var b strings.Builder
	if err := tuneTemplate().Execute(&b, struct {
		*Tune
		Title, Of string
		Table     *chart.Table
	}{t, "Trials on " + t.Dataset, cmp.Or(t.Metric, "accuracy"), table}); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.String()
}

// WriteHTML writes the page to a file, whole or not at all.
func (t *Tune) WriteHTML(path string) error { return writeFile(path, []byte(t.HTML())) }

// Write writes the result to a file, or for "-" to stdout.
func (t *Tune) Write(path string, stdout io.Writer) error { return WriteJSON(t, path, stdout) }
