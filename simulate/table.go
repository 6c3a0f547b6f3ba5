package simulate

import (
	"fmt"
	"io"
	"strings"

	"starling/event"
	"starling/netsim"
	"starling/report"
)

// Simulated is what simulated runs found.
type Simulated struct {
	Rows []Row `json:"rows"`
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
	fmt.Fprintf(&b, "%-20s %12s %11s %11s %9s %9s %8s %9s\n", "strategy", "s/epoch", "bytes/epoch", "bytes", "waited",
		"peak use", "drops", "queue")
	for i := range t.Rows {
		b.WriteString(t.Rows[i].line())
	}
	if len(t.Rows) > 0 && t.Rows[0].Computing != "" {
		fmt.Fprintf(&b, "computing is charged --computing \"%s\"\n", t.Rows[0].Computing)
	}
	for i := range t.Rows {
		b.WriteString(t.Rows[i].links())
	}
	return b.String()
}

// line is the row in its table.
func (r *Row) line() string {
	if r.Run == nil {
		return fmt.Sprintf("%-20s failed: %s\n", r.Strategy, r.Error)
	}
	var use float64
	var queue int64
	for _, t := range r.Network.Tiers {
		use, queue = max(use, t.MaxUtilisation), max(queue, t.PeakQueue)
	}
	epoch := "-"
	if p := r.Run.Bytes.PerEpoch; p != nil {
		epoch = event.Bytes(p.Total)
	}
	return fmt.Sprintf("%-20s %12.6g %11s %11s %9s %9s %8d %9s\n", r.Strategy, float64(r.Run.MedianEpochSeconds), epoch,
		event.Bytes(r.Run.Bytes.Total), report.Percent(float64(r.Run.WaitShare)), report.Percent(use), r.Network.Drops,
		event.Bytes(queue))
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
	fmt.Fprintf(&b, "\n%s: %.6g virtual seconds on %s (%s level, %s)\n", r.Strategy, n.Seconds, n.Topology,
		n.Level, event.Counted(int64(n.Events), "event"))
	if g := n.Background; g != nil {
		fmt.Fprintf(&b, "background: %s, %s; slowdown %.2f (median), %.2f (99%%)\n", event.Counted(g.Begun, "transfer"),
			event.Bytes(g.Bytes), g.Median, g.P99)
	}
	fmt.Fprintf(&b, "%-34s %6s %10s %8s %8s %10s %10s %7s %7s\n", "links", "number", "bytes", "mean use", "most",
		"mean queue", "peak", "drops", "marks")
	for _, t := range n.Tiers {
		fmt.Fprintf(&b, "%-34s %6d %10s %8s %8s %10s %10s %7d %7d\n", t.Name, t.Links, event.Bytes(t.Bytes),
			report.Percent(t.MeanUtilisation), report.Percent(t.MaxUtilisation), event.Bytes(int64(t.MeanQueue)),
			event.Bytes(t.PeakQueue), t.Drops, t.Marks)
	}
	for _, c := range n.Charts[:min(busyLinks, len(n.Charts))] {
		fmt.Fprintf(&b, "  %-32s %6s %10s %8s %8s %10s %10s %7d %7d\n", c.Name, "", event.Bytes(c.Bytes),
			report.Percent(c.Utilisation), "", event.Bytes(int64(c.MeanQueue)), event.Bytes(c.PeakQueue), c.Drops, c.Marks)
	}
	return b.String()
}
