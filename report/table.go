package report

import (
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/wire"
)

// lineWidth is the width of wrapped text.
const lineWidth = 118

// column is one of a comparison's table.
type column struct {
	head string
	cell func(r *CompareRow) string
}

// String is the comparison as text, at most 120 columns wide.
func (c *Comparison) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", c.Title())
	c.table(&b, c.speedColumns())
	for _, r := range c.Rows {
		if r.Error != "" {
			b.WriteString(wrap(fmt.Sprintf("%s failed: %s", r.Strategy, r.Error), "  "))
		}
	}
	if text := c.needsRounds(); text != "" {
		b.WriteString(wrap(text, "  "))
	}
	b.WriteString("\n")
	c.table(&b, c.kindColumns())
	for _, n := range c.Notes {
		b.WriteString(wrap("note: "+n, "  "))
	}
	return b.String()
}

// Title says what was compared.
func (c *Comparison) Title() string {
	if c.Dataset == "" {
		return "no strategy worked"
	}
	s := fmt.Sprintf("%s on %s: %s, %s; %s", c.Model, c.Dataset, event.Counted(c.Vertices, "vertex"),
		event.Counted(c.Edges, "edge"), event.Counted(c.Workers, "worker"))
	if c.Servers > 1 {
		s += fmt.Sprintf(" on %d servers", c.Servers)
	}
	return s
}

// explainer is its share of the processor time, and its memory.
func (r *CompareRow) explainer() string {
	if r.ExplainerBytes == 0 {
		return ""
	}
	return wholePercent(r.ExplainerCPU) + " " + memory(r.ExplainerBytes)
}

// speedColumns are the columns of the first table.
func (c *Comparison) speedColumns() []column {
	list := []column{
		{"mean", func(r *CompareRow) string { return Seconds(float64(r.MeanSeconds)) }},
		{"median", func(r *CompareRow) string { return Seconds(float64(r.EpochSeconds)) }},
		{"spread", func(r *CompareRow) string { return r.quartiles() }},
		{"speed-up", func(r *CompareRow) string { return r.speedup() }},
		{"waiting", func(r *CompareRow) string { return wholePercent(r.WaitShare) }},
		{"hidden", func(r *CompareRow) string { return wholePercent(r.HiddenShare) }},
		{"sent inside", func(r *CompareRow) string { return event.Bytes(r.insideServers()) }},
	}
	if slices.ContainsFunc(c.Rows, func(r CompareRow) bool { return r.betweenServers() > 0 }) {
		list = append(list, column{"between", func(r *CompareRow) string { return event.Bytes(r.betweenServers()) }})
	}
	if slices.ContainsFunc(c.Rows, func(r CompareRow) bool { return r.SamplesPerSecond > 0 }) {
		list = slices.DeleteFunc(list, func(c column) bool { return c.head == "hidden" })
		list = append(list, batchColumns...)
	}
	if slices.ContainsFunc(c.Rows, func(r CompareRow) bool { return r.ExplainerBytes > 0 }) {
		list = append(list, column{"explainer", func(r *CompareRow) string { return r.explainer() }})
	}
	return append(list,
		column{"plan", func(r *CompareRow) string {
			return map[string]string{"equal": "=", "within": "<=", "about": "~", "differs": "differs"}[r.Plan]
		}},
		column{"memory", func(r *CompareRow) string { return memory(r.WorkerPeakRSSBytes) }},
		column{"matrices", func(r *CompareRow) string { return memory(r.DevicePeakBytes) }},
		column{"test", func(r *CompareRow) string { return metric(r.TestAccuracy, r.TestSpread) }})
}

// batchColumns are of rows of mini-batches only.
var batchColumns = []column{
	{"samples/s", func(r *CompareRow) string { return r.ofBatches(event.Count(int64(r.SamplesPerSecond))) }},
	{"remote", func(r *CompareRow) string { return r.ofBatches(wholePercent(r.MissRate)) }},
	{"cached", func(r *CompareRow) string { return r.ofBatches(wholePercent(r.CacheHits)) }},
	{"redundant", func(r *CompareRow) string { return r.ofBatches(times(r.Redundancy)) }},
	{"cpu", func(r *CompareRow) string { return wholePercent(r.CPUShare) }},
}

// ofBatches is a cell of a row of mini-batches, and a dash for others.
func (r *CompareRow) ofBatches(text string) string {
	if r.SamplesPerSecond > 0 {
		return text
	}
	return "-"
}

// kindColumns are the columns of the second table: bytes per epoch, then of the run.
func (c *Comparison) kindColumns() (list []column) {
	for _, k := range c.kinds() {
		list = append(list, column{k, func(r *CompareRow) string { return event.Bytes(r.Bytes.ByKind[k]) }})
	}
	return append(list,
		column{"in all", func(r *CompareRow) string { return event.Bytes(r.Sent) }},
		column{"planned", func(r *CompareRow) string {
			if r.Plan == "within" {
				return "<= " + event.Bytes(r.Planned)
			}
			return event.Bytes(r.Planned)
		}},
		column{"loss apart", func(r *CompareRow) string { return fmt.Sprintf("%.1e", float64(r.LossApart)) }},
		column{"exact", func(r *CompareRow) string { return r.exactness() }})
}

// kinds are the kinds of which any strategy sent something.
func (c *Comparison) kinds() (names []string) {
	for _, r := range c.Rows {
		for k, n := range r.Bytes.ByKind {
			if n > 0 && !slices.Contains(names, k) {
				names = append(names, k)
			}
		}
	}
	slices.Sort(names)
	return names
}

// table writes columns as wide as their widest cell.
func (c *Comparison) table(b *strings.Builder, columns []column) {
	columns = append([]column{{"strategy", func(r *CompareRow) string { return r.label() }}}, columns...)
	lines := make([]string, len(c.Rows)+1)
	for i, col := range columns {
		cells := c.cells(col, i == 0)
		width := 0
		for _, x := range cells {
			width = max(width, len([]rune(x)))
		}
		for j, x := range cells {
			if pad := strings.Repeat(" ", width-len([]rune(x))); i == 0 {
				lines[j] += x + pad
			} else {
				lines[j] += "  " + pad + x
			}
		}
	}
	b.WriteString(strings.Join(lines, "\n") + "\n")
}

// cells are a column's head and rows; "-" for a strategy that has not run, unless always.
func (c *Comparison) cells(col column, always bool) []string {
	cells := []string{col.head}
	for j := range c.Rows {
		text := "-"
		if r := &c.Rows[j]; always || r.Rounds > 0 {
			text = col.cell(r)
		}
		cells = append(cells, text)
	}
	return cells
}

// quartiles is half their distance, as a share of the median.
func (r *CompareRow) quartiles() string {
	return fmt.Sprintf("±%.0f%%", 100*r.quartileShare())
}

func (r *CompareRow) quartileShare() float64 {
	return float64((r.Spread.Q3 - r.Spread.Q1) / r.EpochSeconds / 2)
}

func (r *CompareRow) betweenServers() int64 { return r.Bytes.ByLink[wire.BetweenServers.String()] }

func (r *CompareRow) insideServers() int64 { return r.Bytes.Total - r.betweenServers() }

// wrap breaks text into lines between words. All lines but the first are indented; the first
// keeps its own indentation.
func wrap(text, indent string) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > lineWidth {
			b.WriteString(line + "\n")
			line = indent + word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if strings.HasPrefix(text, "  ") {
		return "  " + b.String() + line + "\n"
	}
	return b.String() + line + "\n"
}
