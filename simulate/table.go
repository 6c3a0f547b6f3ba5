package simulate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"starling/event"
	"starling/netsim"
	"starling/report"
)

// Simulated is what simulated runs found.
type Simulated struct {
	Rows    []Row  `json:"rows"`
	From    string `json:"rates_from,omitempty"` // where rates of computing come from; "": they were given
	Skipped bool   `json:"skipped,omitempty"`    // numbers were not computed
}

// Row is one run: its report, in virtual seconds, and what the network saw of it.
type Row struct {
	Strategy  string         `json:"strategy"`
	Computing string         `json:"computing,omitempty"` // the rates that were charged
	Run       *report.Run    `json:"run,omitempty"`
	Network   *netsim.Result `json:"network,omitempty"`
	Error     string         `json:"error,omitempty"`
	err       error
}

// JSON writes the rows.
func (t *Simulated) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(t, path, stdout)
}

// String is a table, and of each row the links.
func (t *Simulated) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %12s %11s %11s %9s %9s %8s %9s\n", "strategy", "epoch", "bytes/epoch", "bytes", "waited",
		"peak use", "drops", "queue")
	for i := range t.Rows {
		b.WriteString(t.Rows[i].line())
	}
	b.WriteString(t.charged())
	for i := range t.Rows {
		b.WriteString(t.Rows[i].links())
	}
	return b.String()
}

// charged says what virtual time operations took.
func (t *Simulated) charged() string {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Computing != "" && r.Computing != "none" })
	if i < 0 {
		return ""
	}
	text := "computing is charged"
	if t.Skipped {
		text = "numbers were not computed; what would compute them takes the virtual time of"
	}
	text += fmt.Sprintf(" --computing \"%s\"", t.Rows[i].Computing)
	if t.From != "" {
		text += ", " + t.From
	}
	return text + "\n"
}

// line is the row in its table.
func (r *Row) line() string {
	if r.Run == nil {
		return fmt.Sprintf("%-20s failed: %s\n", r.Strategy, r.Error)
	}
	use, queue := r.peaks()
	epoch := "-"
	if p := r.Run.Bytes.PerEpoch; p != nil {
		epoch = event.Bytes(p.Total)
	}
	return fmt.Sprintf("%-20s %12s %11s %11s %9s %9s %8s %9s\n", r.Strategy, report.Seconds(float64(r.Run.MedianEpochSeconds)),
		epoch, event.Bytes(r.Run.Bytes.Total), report.Percent(float64(r.Run.WaitShare)), report.Percent(use),
		event.Count(r.Network.Drops), event.Bytes(queue))
}

// peaks are the use of the link that is used most, and the longest queue.
func (r *Row) peaks() (use float64, queue int64) {
	for _, t := range r.Network.Tiers {
		use, queue = max(use, t.MaxUtilisation), max(queue, t.PeakQueue)
	}
	return use, queue
}

// busyLinks is how many single links are shown.
const busyLinks = 4

// links are the traffic, utilisation and queues of a row's network.
func (r *Row) links() string {
	if r.Network == nil {
		return ""
	}
	var b strings.Builder
	n := r.Network
	fmt.Fprintf(&b, "\n%s: %s of virtual time on %s (%s level, %s)\n", r.Strategy, report.Seconds(n.Seconds),
		n.Topology, n.Level, event.Counted(int64(n.Events), "event"))
	if g := n.Background; g != nil {
		fmt.Fprintf(&b, "background: %s, %s; slowdown %.2f (median), %.2f (99%%)\n", event.Counted(int64(g.Begun), "transfer"),
			event.Bytes(g.Bytes), g.Median, g.P99)
	}
	fmt.Fprintf(&b, "%-34s %6s %10s %8s %8s %10s %10s %7s %7s\n", "links", "number", "bytes", "mean use", "most",
		"mean queue", "peak", "drops", "marks")
	for _, t := range n.Tiers {
		fmt.Fprintf(&b, "%-34s %6d %10s %8s %8s %10s %10s %7s %7s\n", t.Name, t.Links, event.Bytes(t.Bytes),
			report.Percent(t.MeanUtilisation), report.Percent(t.MaxUtilisation), event.Bytes(int64(t.MeanQueue)),
			event.Bytes(t.PeakQueue), event.Count(t.Drops), event.Count(t.Marks))
	}
	for _, c := range n.Charts[:min(busyLinks, len(n.Charts))] {
		fmt.Fprintf(&b, "  %-32s %6s %10s %8s %8s %10s %10s %7s %7s\n", c.Name, "", event.Bytes(c.Bytes),
			report.Percent(c.Utilisation), "", event.Bytes(int64(c.MeanQueue)), event.Bytes(c.PeakQueue),
			event.Count(c.Drops), event.Count(c.Marks))
	}
	return b.String()
}
