package run

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"starling/event"
	"starling/wire"
)

// column is one of a table for people.
type column struct {
	head string
	cell func(r *CompareRow) string
}

// String is the comparison for people, at most 120 columns wide.
func (c *Comparison) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", c.Title())
	c.table(&b, c.speed())
	for _, r := range c.Rows {
		if r.Error != "" {
			b.WriteString(wrap(fmt.Sprintf("%s failed: %s", r.Strategy, r.Error), 118, "  "))
		}
	}
	b.WriteString("\n")
	c.table(&b, c.kinds())
	for _, n := range c.Notes {
		b.WriteString(wrap("note: "+n, 118, "  "))
	}
	return b.String()
}

// Title says what was compared.
func (c *Comparison) Title() string {
	if c.Dataset == "" {
		return "no strategy worked"
	}
	s := fmt.Sprintf("%s on %s: %s, %s; %s", c.Model, c.Dataset, event.Counted(c.Vertices, "vertex"), event.Counted(c.Edges, "edge"), event.Counted(c.Workers, "worker"))
	if c.Servers > 1 {
		s += fmt.Sprintf(" on %d servers", c.Servers)
	}
	return s
}

// speed are the columns of the first table.
func (c *Comparison) speed() []column {
	list := []column{
		{"mean", func(r *CompareRow) string { return seconds(float64(r.MeanSeconds)) }},
		{"median", func(r *CompareRow) string { return seconds(float64(r.EpochSeconds)) }},
		{"spread", func(r *CompareRow) string { return r.around() }},
		{"speed-up", func(r *CompareRow) string { return times(r.Speedup) }},
		{"waiting", func(r *CompareRow) string { return whole(r.WaitShare) }},
		{"hidden", func(r *CompareRow) string { return whole(r.HiddenShare) }},
		{"sent inside", func(r *CompareRow) string { return event.Bytes(r.inside()) }},
	}
	if c.between() {
		list = append(list, column{"between", func(r *CompareRow) string { return event.Bytes(r.Bytes.ByLink[wire.BetweenServers.String()]) }})
	}
	return append(list,
		column{"plan", func(r *CompareRow) string {
			return map[string]string{"equal": "=", "within": "<=", "differs": "differs"}[r.Plan]
		}},
		column{"memory", func(r *CompareRow) string { return memory(r.WorkerPeakRSSBytes) }},
		column{"matrices", func(r *CompareRow) string { return memory(r.DevicePeakBytes) }},
		column{"test", func(r *CompareRow) string { return metric(r.TestAccuracy, r.TestSpread) }})
}

// kinds are the columns of the second: bytes of an epoch, then of a run.
func (c *Comparison) kinds() (list []column) {
	for _, k := range c.kindNames() {
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
		column{"loss apart", func(r *CompareRow) string { return fmt.Sprintf("%.1e", float64(r.LossApart)) }})
}

func (c *Comparison) kindNames() (names []string) {
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

// between tells whether anything went between servers.
func (c *Comparison) between() bool {
	return slices.ContainsFunc(c.Rows, func(r CompareRow) bool { return r.Bytes.ByLink[wire.BetweenServers.String()] > 0 })
}

// table writes columns as wide as their widest cell.
func (c *Comparison) table(b *strings.Builder, columns []column) {
	columns = append([]column{{"strategy", func(r *CompareRow) string { return r.Strategy }}}, columns...)
	lines := make([]string, len(c.Rows)+1)
	for i, col := range columns {
		cells := []string{col.head}
		for j := range c.Rows {
			r := &c.Rows[j]
			switch {
			case i == 0 || r.Rounds > 0:
				cells = append(cells, col.cell(r))
			default:
				cells = append(cells, "-")
			}
		}
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

// Papers sets the papers' figures beside ours.
func (c *Comparison) Papers() string {
	var b strings.Builder
	for _, p := range c.besidePapers() {
		b.WriteString(wrap(p.Ours, 118, "  "))
		b.WriteString(wrap(fmt.Sprintf("  %s: %s. Differs because %s.", p.Title, p.Claim, p.Why), 118, "  "))
	}
	if b.Len() == 0 {
		return ""
	}
	return "beside the papers\n" + b.String()
}

// beside is what a paper says, and what was measured here.
type beside struct {
	Ours string
	Paper
}

// besidePapers are the papers of the strategies compared, each once.
func (c *Comparison) besidePapers() (list []beside) {
	at := map[string]int{}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Paper == nil || r.Rounds == 0 || r.Strategy == c.Baseline {
			continue
		}
		ours := c.ours(r)
		if j, ok := at[r.Paper.Title]; ok {
			list[j].Ours += "; " + ours
			continue
		}
		at[r.Paper.Title] = len(list)
		list = append(list, beside{ours, *r.Paper})
	}
	return list
}

// ours is a row's speed-up over the baseline, and over what its paper compares with.
func (c *Comparison) ours(r *CompareRow) string {
	text := fmt.Sprintf("%s: %s over %s", r.Strategy, times(r.Speedup), c.Baseline)
	if i := slices.IndexFunc(c.Rows, func(o CompareRow) bool { return o.Strategy == r.Paper.over && o.Rounds > 0 }); i >= 0 {
		o := &c.Rows[i]
		text += fmt.Sprintf(", %s over %s with %s of its bytes", times(o.MeanSeconds/r.MeanSeconds), o.Strategy, whole(Number(float64(r.Bytes.Total)/float64(o.Bytes.Total))))
	}
	return text
}

// around is half the distance of the quartiles, as a share of the median.
func (r *CompareRow) around() string {
	return fmt.Sprintf("±%.0f%%", 50*float64((r.Spread.Q3-r.Spread.Q1)/r.EpochSeconds))
}

// inside is what stays within a server.
func (r *CompareRow) inside() int64 {
	return r.Bytes.Total - r.Bytes.ByLink[wire.BetweenServers.String()]
}

func times(x Number) string {
	if math.IsNaN(float64(x)) {
		return "-"
	}
	return fmt.Sprintf("%.2fx", float64(x))
}

func whole(x Number) string {
	if math.IsNaN(float64(x)) {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(x))
}

func memory(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return event.Bytes(bytes)
}

func metric(x, deviation Number) string {
	switch {
	case math.IsNaN(float64(x)):
		return "-"
	case deviation > 0.00005:
		return fmt.Sprintf("%.4f±%s", float64(x), strings.TrimPrefix(fmt.Sprintf("%.3f", float64(deviation)), "0"))
	}
	return fmt.Sprintf("%.4f", float64(x))
}

// wrap breaks text into lines between words; all but the first are indented.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
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
