package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"starling/event"
	"starling/partition"
)

// Partition is the result of starling partition.
type Partition struct{ *partition.Report }

// Write writes the result as one line of JSON to a file, or for "-" to stdout.
func (r *Partition) Write(path string, stdout io.Writer) error {
	return WriteJSON(r.Report, path, stdout)
}

// WriteHTML writes a page of the result to a file, whole or not at all.
func (r *Partition) WriteHTML(path string) error { return writeFile(path, r.HTML()) }

// String is the result as text.
func (r *Partition) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s by %s in %s\n", r.Dataset, event.Counted(r.Parts, "part"), r.Method,
		event.Duration(inSeconds(r.Seconds)))
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-21s %s\n", name, fmt.Sprintf(format, args...))
	}
	if r.Tries > 1 {
		line(fmt.Sprintf("best of %d tries", r.Tries), "that of seed %d", r.KeptSeed)
	}
	line("edge cut", "%s of edges (%s)", Percent(r.EdgeCutShare), event.Count(r.EdgeCut))
	line("communication volume", "%s; most over fewest remote %.3f", event.Counted(r.CommVolume, "row"),
		r.RemoteMaxOverMin)
	if r.Servers > 1 {
		line("between servers", "%s", event.Counted(r.BetweenServers, "row"))
	}
	line("balance", "%s", r.balance())
	if r.Limits != nil {
		line("limits", "%s", limits(*r.Limits))
	}
	if r.Plan.Trained != "" {
		line("full-graph epoch", "%s sent, and %s once (%s)", event.Bytes(r.Plan.EpochBytes),
			event.Bytes(r.Plan.FeatureBytes), r.Plan.Trained)
	} else {
		line("full-graph epoch", "about %s sent, and %s of features once (%d-layer %s, without dropout)",
			event.Bytes(r.Plan.EpochBytes), event.Bytes(r.Plan.FeatureBytes), len(r.Plan.Layers), r.Plan.Model)
	}
	if s := r.Plan.Sampled; s != nil {
		line("sampled epoch", "about %s pulled (%s of rows remote)", event.Bytes(s.EpochBytes), Percent(s.RemoteShare))
	}
	line("memory per worker", "about %s", event.Bytes(slices.Max(append(r.Plan.Memory, 0))))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	if r.Out != "" {
		state := "written"
		if r.Verified {
			state = "written and verified"
		}
		fmt.Fprintf(&b, "%s: %s in %s\n", r.Out, state, event.Duration(inSeconds(r.WriteSeconds)))
	}
	return b.String()
}

// limits says how the limits of the constraints were met.
func limits(l partition.Limits) string {
	how := "each kept by the method"
	if l.Folded {
		how = "folded into one weight per vertex"
	}
	if l.Repaired == 0 {
		return how + "; no vertex was moved afterwards"
	}
	return fmt.Sprintf("%s; repaired by moving %s afterwards", how, event.Tally(int(l.Repaired), "vertex"))
}

// balance lists the balance of each constraint.
func (r *Partition) balance() string {
	var list []string
	for _, name := range r.Constraints() {
		list = append(list, fmt.Sprintf("%s %.3f", name, r.Balance[name]))
	}
	return strings.Join(list, ", ")
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
