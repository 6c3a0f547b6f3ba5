package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"starling/event"
	"starling/train"
)

// Sweep is the result of runs with several seeds or settings.
type Sweep struct {
	Dataset string     `json:"dataset"`
	Model   string     `json:"model"`
	Metric  string     `json:"metric"`
	Best    int        `json:"best"` // the row with the best validation metric; -1: none
	Rows    []SweepRow `json:"rows"`
}

// SweepRow is one combination of settings. Metrics are means over its seeds, with their standard
// deviations, at the best epoch by validation.
type SweepRow struct {
	Settings  []string `json:"settings,omitempty"` // as in lr=0.1
	Seeds     []uint64 `json:"seeds"`
	Val       Number   `json:"val_accuracy"`
	ValSpread Number   `json:"val_accuracy_deviation"`
	Test      Number   `json:"test_accuracy"`
	Spread    Number   `json:"test_accuracy_deviation"`
	BestEpoch Number   `json:"best_epoch"`
	Seconds   float64  `json:"seconds"` // of all its runs
	Error     string   `json:"error,omitempty"`
	Runs      []*Run   `json:"runs"`
}

// Label names a row.
func (r *SweepRow) Label() string { return cmp.Or(strings.Join(r.Settings, " "), "the run") }

// Add adds a row with its means.
func (s *Sweep) Add(row SweepRow) {
	if len(row.Runs) == 0 && row.Error == "" {
		return
	}
	row.setMeans()
	s.Rows = append(s.Rows, row)
	s.Best = -1
	for i, r := range s.Rows {
		if len(r.Runs) > 0 && (s.Best < 0 || r.better(&s.Rows[s.Best])) {
			s.Best = i
		}
	}
	if s.Best >= 0 {
		first := s.Rows[s.Best].Runs[0]
		s.Dataset, s.Model, s.Metric = first.Dataset, first.Model, first.Metric
	}
}

// better reports whether the row's validation metric is better than another's.
func (r *SweepRow) better(than *SweepRow) bool {
	return train.Better(r.Runs[0].Metric, float64(r.Val), float64(than.Val))
}

func (r *SweepRow) setMeans() {
	r.Val, r.ValSpread = meanOf(r.Runs, func(x *Run) Number { return x.BestValAccuracy })
	r.Test, r.Spread = meanOf(r.Runs, func(x *Run) Number { return x.TestAccuracy })
	r.BestEpoch, _ = meanOf(r.Runs, func(x *Run) Number { return Number(x.BestEpoch) })
	for _, x := range r.Runs {
		r.Seeds = append(r.Seeds, x.Seed)
		r.Seconds += x.Seconds
	}
}

// meanOf is the mean over runs and the standard deviation; NaN without any.
func meanOf(runs []*Run, of func(*Run) Number) (mean, deviation Number) {
	n := Number(len(runs))
	for _, x := range runs {
		mean += of(x)
	}
	mean /= n
	for _, x := range runs {
		deviation += (of(x) - mean) * (of(x) - mean)
	}
	return mean, Number(math.Sqrt(float64(deviation / max(n-1, 1))))
}

// String is the table as text.
func (s *Sweep) String() string {
	var b strings.Builder
	if s.Best >= 0 && len(s.Rows) > 0 {
		fmt.Fprintf(&b, "%s on %s; %s at the best epoch by validation, mean ± standard deviation over seeds\n\n",
			s.Model, s.Dataset, cmp.Or(s.Metric, "accuracy"))
	}
	lines := [][]string{{"settings", "seeds", "validation", "test", "best epoch", "seconds"}}
	for i := range s.Rows {
		lines = append(lines, s.Rows[i].cells(i == s.Best && len(s.Rows) > 1))
	}
	writeColumns(&b, lines)
	for _, r := range s.Rows {
		if r.Error != "" {
			b.WriteString(wrap(fmt.Sprintf("%s failed: %s", r.Label(), r.Error), "  "))
		}
	}
	return b.String()
}

// cells are the row's; the best is marked.
func (r *SweepRow) cells(best bool) []string {
	label := r.Label()
	if best {
		label += " *"
	}
	if len(r.Runs) == 0 {
		return []string{label, "0", "-", "-", "-", "-"}
	}
	return []string{label, fmt.Sprint(len(r.Runs)), r.plusMinus(r.Val, r.ValSpread), r.plusMinus(r.Test, r.Spread),
		fmt.Sprintf("%.0f", float64(r.BestEpoch)), fmt.Sprintf("%.1f", r.Seconds)}
}

// plusMinus leaves out the deviation of a single run.
func (r *SweepRow) plusMinus(mean, deviation Number) string {
	if len(r.Runs) < 2 {
		return fmt.Sprintf("%.4f", float64(mean))
	}
	return fmt.Sprintf("%.4f ± %.4f", float64(mean), float64(deviation))
}

// writeColumns writes lines of cells, the first column to the left, the others to the right.
func writeColumns(b *strings.Builder, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, line := range lines {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteString("\n")
	}
}

// Err names the rows that failed; nil: none did.
func (s *Sweep) Err() error {
	var failed []string
	for i := range s.Rows {
		if s.Rows[i].Error != "" {
			failed = append(failed, s.Rows[i].Label())
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d failed: %s", event.Counted(len(failed), "combination"), len(s.Rows),
		strings.Join(failed, ", "))
}

// Write writes the result to a file, or for "-" to stdout.
func (s *Sweep) Write(path string, stdout io.Writer) error { return WriteJSON(s, path, stdout) }
