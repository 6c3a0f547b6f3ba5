package report

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
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

// HTML is a page with the table.
func (t *Tune) HTML() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">"+
		"<title>Trials on %[1]s</title>\n<style>"+
		"body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}"+
		"td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"+
		"td:first-child,th:first-child{text-align:left}"+
		"</style>\n<h1>Trials on %[1]s</h1>\n<p>%[2]s; at most %[3]d epochs, seed %[4]d.</p>\n",
		html.EscapeString(t.Dataset), html.EscapeString(cmp.Or(t.Metric, "accuracy")), t.Epochs, t.Seed)
	if t.Best != "" {
		fmt.Fprintf(&b, "<p>Best: <code>%s</code></p>\n", html.EscapeString(t.Best))
	}
	b.WriteString("<table>\n")
	for i, line := range t.lines() {
		cell := "td"
		if i == 0 {
			cell = "th"
		}
		b.WriteString("<tr>")
		for _, text := range line {
			fmt.Fprintf(&b, "<%[1]s>%[2]s</%[1]s>", cell, html.EscapeString(text))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n</html>\n")
	return b.String()
}

// WriteHTML writes the page to a file, whole or not at all.
func (t *Tune) WriteHTML(path string) error { return writeFile(path, []byte(t.HTML())) }

// Write writes the result to a file, or for "-" to stdout.
func (t *Tune) Write(path string, stdout io.Writer) error { return WriteJSON(t, path, stdout) }
