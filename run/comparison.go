package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"starling/graph"
)

// Comparison is a table of strategies, one row each.
type Comparison struct {
	Dataset  string       `json:"dataset"`
	Model    string       `json:"model"`
	Vertices int64        `json:"vertices"`
	Edges    int64        `json:"edges"`
	Workers  int          `json:"workers"`
	Servers  int          `json:"servers"`
	Baseline string       `json:"baseline"` // the strategy that speed-ups are over
	Rows     []CompareRow `json:"rows"`
	Notes    []string     `json:"notes,omitempty"`
}

// CompareRow is one strategy. Bytes and seconds are of an epoch of training, over
// all workers and as a mean over them.
type CompareRow struct {
	Strategy string         `json:"strategy"`
	Settings map[string]any `json:"settings,omitempty"`
	Error    string         `json:"error,omitempty"`
	Rounds   int            `json:"rounds"`
	Epochs   int            `json:"epochs"` // of each round

	EpochSeconds Number `json:"epoch_seconds"` // the median
	MeanSeconds  Number `json:"mean_epoch_seconds"`
	Spread       Spread `json:"epoch_seconds_spread"`
	// Speedup is by means: with some strategies epochs differ, and the median one is
	// cheap.
	Speedup         Number `json:"speedup"`
	WaitShare       Number `json:"wait_share"`
	TransferSeconds Number `json:"transfer_seconds"`
	HiddenShare     Number `json:"hidden_share"`

	Bytes   EpochBytes `json:"bytes_per_epoch"`
	Sent    int64      `json:"bytes_total"` // in a run, with what is sent once and to measure
	Planned int64      `json:"bytes_planned"`
	Plan    string     `json:"plan"` // equal, within (an upper bound), or differs

	WorkerPeakRSSBytes int64 `json:"worker_peak_rss_bytes"` // of the largest; 0: not known of each
	DevicePeakBytes    int64 `json:"device_peak_bytes"`

	TestAccuracy Number   `json:"test_accuracy"` // of the best epoch by validation, mean over rounds
	TestSpread   Number   `json:"test_accuracy_deviation"`
	BestEpoch    int      `json:"best_epoch"`
	LossApart    Number   `json:"loss_apart"` // largest relative difference from the baseline's curve
	Loss         []Number `json:"loss"`
	Paper        *Paper   `json:"paper,omitempty"`
}

// newComparison makes the rows, nil if there is nothing to compare.
func newComparison(runs []*runsOf) *Comparison {
	c := &Comparison{}
	for _, r := range runs {
		if len(r.reports) > 0 || r.err != nil {
			c.Rows = append(c.Rows, newRow(r))
		}
		if len(r.reports) > 0 && c.Dataset == "" {
			f := r.reports[0]
			c.Dataset, c.Model, c.Vertices, c.Edges, c.Workers, c.Servers = f.Dataset, f.Model, f.Vertices, f.Edges, f.Workers, f.Servers
		}
	}
	if len(c.Rows) == 0 {
		return nil
	}
	c.rate()
	return c
}

func newRow(r *runsOf) CompareRow {
	nan := Number(math.NaN())
	row := CompareRow{Strategy: r.strategy, Rounds: len(r.reports), Paper: paperOf(r.strategy), BestEpoch: -1, Loss: []Number{},
		EpochSeconds: nan, MeanSeconds: nan, Spread: Spread{nan, nan, nan, nan}, Speedup: nan, WaitShare: nan, TransferSeconds: nan, HiddenShare: nan, TestAccuracy: nan, TestSpread: nan, LossApart: nan,
		Bytes: EpochBytes{ByKind: map[string]int64{}, ByLink: map[string]int64{}}}
	if r.err != nil {
		row.Error = strings.ReplaceAll(r.err.Error(), "\n", "; ")
	}
	if len(r.reports) == 0 {
		return row
	}
	f := r.reports[0]
	row.Settings, row.Epochs, row.Loss, row.BestEpoch = f.StrategySettings, f.Epochs, f.Loss, f.BestEpoch
	row.TestAccuracy, row.TestSpread = meanAccuracy(r.reports)
	row.times(r.reports)
	row.bytes(f)
	for _, x := range r.reports {
		row.DevicePeakBytes = max(row.DevicePeakBytes, x.DevicePeakBytes)
		for _, rss := range x.WorkerPeakRSSBytes {
			row.WorkerPeakRSSBytes = max(row.WorkerPeakRSSBytes, rss)
		}
	}
	return row
}

// meanAccuracy is the mean over rounds, which differ in their seeds if in anything,
// and the standard deviation.
func meanAccuracy(reports []*Report) (mean, deviation Number) {
	n := Number(len(reports))
	for _, x := range reports {
		mean += x.TestAccuracy / n
	}
	for _, x := range reports {
		deviation += (x.TestAccuracy - mean) * (x.TestAccuracy - mean)
	}
	return mean, Number(math.Sqrt(float64(deviation / max(n-1, 1))))
}

// times joins those of all rounds, each without its first epoch.
func (row *CompareRow) times(reports []*Report) {
	var all []float64
	var waited, transfer, exposed float64
	for _, x := range reports {
		all = append(all, settled(floats(x.EpochSeconds))...)
		waited += float64(x.WaitShare)
		transfer += float64(x.TransferSeconds)
		if x.TransferSeconds > 0 {
			exposed += float64(x.TransferSeconds) * (1 - float64(x.HiddenShare))
		}
	}
	slices.Sort(all)
	q := func(at float64) Number { return Number(quantile(all, at)) }
	row.MeanSeconds = Number(mean(all))
	row.EpochSeconds, row.Spread = q(0.5), Spread{q(0), q(0.25), q(0.75), q(1)}
	n := float64(len(reports))
	row.WaitShare, row.TransferSeconds, row.HiddenShare = Number(waited/n), Number(transfer/n), Number(1-exposed/transfer)
}

func (row *CompareRow) bytes(r *Report) {
	b := &r.Bytes
	if b.PerEpoch != nil {
		row.Bytes = *b.PerEpoch
	}
	row.Sent, row.Planned, row.Plan = b.Total, b.Planned, "differs"
	switch {
	case b.Total == b.Planned:
		row.Plan = "equal"
	case b.AtMost && b.Total < b.Planned:
		row.Plan = "within"
	}
}

// rate fills in what is over the baseline: halo, or the first that worked.
func (c *Comparison) rate() {
	var base *CompareRow
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Rounds > 0 && (base == nil || r.Strategy == "halo") {
			base = r
		}
	}
	if base == nil {
		return
	}
	c.Baseline = base.Strategy
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Rounds > 0 {
			r.Speedup, r.LossApart = base.MeanSeconds/r.MeanSeconds, apart(base.Loss, r.Loss)
		}
	}
}

// apart is the largest relative difference of two curves where both have points.
func apart(a, b []Number) (most Number) {
	for i := range min(len(a), len(b)) {
		most = max(most, Number(math.Abs(float64(b[i]-a[i]))/math.Abs(float64(a[i]))))
	}
	return most
}

// Err says which strategies failed, nil if none did.
func (c *Comparison) Err() error {
	var failed []string
	for _, r := range c.Rows {
		if r.Error != "" {
			failed = append(failed, r.Strategy)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d strategies failed: %s", len(failed), len(c.Rows), strings.Join(failed, ", "))
}

// Write puts the comparison as one line of JSON into a file, or with "-" onto stdout.
func (c *Comparison) Write(path string, stdout io.Writer) error { return writeJSON(c, path, stdout) }

const maxReportBytes = 256 << 20

// compareSaved reads what starling train --json wrote. Runs of the same strategy are
// rounds of one row.
func compareSaved(files []string) (*Comparison, error) {
	var runs []*runsOf
	var all []*Report
	for _, path := range files {
		r, err := ReadReport(path)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		name := r.label()
		at := slices.IndexFunc(runs, func(o *runsOf) bool { return o.strategy == name })
		if at < 0 {
			at = len(runs)
			runs = append(runs, &runsOf{strategy: name})
		}
		runs[at].reports = append(runs[at].reports, r)
	}
	c := newComparison(runs)
	c.Notes = differences(files, all)
	return c, nil
}

// ReadReport reads a result that starling train --json wrote.
func ReadReport(path string) (*Report, error) {
	b, err := readAtMost(path, maxReportBytes)
	if err != nil {
		return nil, mistake("--from", unread(err), "a file that starling train --json wrote", "")
	}
	r, err := parseReport(b)
	return r, graph.InFile(path, err)
}

func parseReport(b []byte) (*Report, error) {
	r := &Report{HiddenShare: Number(math.NaN())}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, &graph.InputError{Field: "--from", Found: err.Error(), Want: "a file that starling train --json wrote"}
	}
	if r.Strategy == "" || r.Workers < 1 || len(r.Loss) == 0 || len(r.EpochSeconds) == 0 {
		return nil, &graph.InputError{Field: "--from", Found: "no result of a training run", Want: "a file that starling train --json wrote"}
	}
	return r, nil
}

// differences says in which settings runs are not comparable.
func differences(files []string, all []*Report) (notes []string) {
	first := all[0]
	for i, r := range all[1:] {
		var in []string
		for _, d := range []struct {
			what string
			cmp  int
		}{
			{"dataset", cmp.Or(cmp.Compare(r.Dataset, first.Dataset), cmp.Compare(r.Edges, first.Edges))}, {"model", cmp.Compare(r.Model, first.Model)},
			{"parameters", cmp.Compare(r.Parameters, first.Parameters)}, {"workers", cmp.Compare(r.Workers, first.Workers)}, {"servers", cmp.Compare(r.Servers, first.Servers)},
			{"epochs", cmp.Compare(r.Epochs, first.Epochs)}, {"seed", cmp.Compare(r.Seed, first.Seed)}, {"dtype", cmp.Compare(r.DType, first.DType)}, {"threads", cmp.Compare(r.Threads, first.Threads)},
		} {
			if d.cmp != 0 {
				in = append(in, d.what)
			}
		}
		if len(in) > 0 {
			notes = append(notes, fmt.Sprintf("%s is another run than %s: %s differ", files[i+1], files[0], strings.Join(in, ", ")))
		}
	}
	return notes
}

// renamed names another flag in a mistake.
func renamed(err error, flags map[string]string) error {
	var in *graph.InputError
	if !errors.As(err, &in) || flags[in.Field] == "" {
		return err
	}
	named := *in
	named.Field = flags[in.Field]
	return &named
}

// mean is NaN of nothing.
func mean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
