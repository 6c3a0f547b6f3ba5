package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"starling/spec"
	"starling/train"
)

// Comparison is a table of strategies, one row each.
type Comparison struct {
	Dataset  string       `json:"dataset"`
	Model    string       `json:"model"`
	Vertices int64        `json:"vertices"`
	Edges    int64        `json:"edges"`
	Workers  int          `json:"workers"`
	Servers  int          `json:"servers"`
	Baseline string       `json:"baseline"` // the strategy that speed-ups are relative to
	Rows     []CompareRow `json:"rows"`
	Notes    []string     `json:"notes,omitempty"`
	Made     *Made        `json:"made,omitempty"` // the first of its runs
}

// CompareRow is one strategy. Bytes and seconds are of an epoch of training, over all workers
// and as a mean over them.
type CompareRow struct {
	Strategy string         `json:"strategy"`
	Settings map[string]any `json:"settings,omitempty"`
	Spec     *spec.Spec     `json:"spec,omitempty"` // every setting of its first run
	Error    string         `json:"error,omitempty"`
	// Without are the settings of the model that its strategy cannot have, where others of the comparison have them:
	// it trains another model. Exact is whether it follows the loss curve of one worker that trains theirs.
	Without []string `json:"without,omitempty"`
	Exact   bool     `json:"exact"`
	Rounds  int      `json:"rounds"`
	Epochs  int      `json:"epochs"` // of each round

	EpochSeconds Number   `json:"epoch_seconds"` // the median
	MeanSeconds  Number   `json:"mean_epoch_seconds"`
	Spread       Spread   `json:"epoch_seconds_spread"`
	RoundSeconds []Number `json:"round_seconds"` // the mean epoch of each round
	// Speedup is by means: with some strategies epochs differ, and the median one is cheap. Difference says whether
	// the comparison can tell it from 1.
	Speedup         Number     `json:"speedup"`
	Difference      Difference `json:"difference,omitempty"`
	WaitShare       Number     `json:"wait_share"`
	TransferSeconds Number     `json:"transfer_seconds"`
	HiddenShare     Number     `json:"hidden_share"`

	Bytes   EpochBytes `json:"bytes_per_epoch"`
	Sent    int64      `json:"bytes_total"` // of a run, with what is sent once and to evaluate
	Planned int64      `json:"bytes_planned"`
	Plan    string     `json:"plan"` // equal, within (an upper bound), or differs

	WorkerPeakRSSBytes int64 `json:"worker_peak_rss_bytes"` // of the largest; 0: unknown
	DevicePeakBytes    int64 `json:"device_peak_bytes"`

	// CPUShare is the share of the processors' time that workers used, mean over rounds.
	CPUShare Number `json:"cpu_share,omitempty"`
	// Of mini-batches: training vertices per second, the share of rows of features that other hosts
	// own, the share of those that a cache had, and the rows of all workers' shares of a batch over the
	// distinct ones.
	SamplesPerSecond Number `json:"samples_per_second,omitempty"`
	MissRate         Number `json:"miss_rate,omitempty"`
	CacheHits        Number `json:"cache_hits,omitempty"`
	Redundancy       Number `json:"redundancy,omitempty"`
	// Of runs with --dgs: the explainers' share of the workers' processor time, mean over rounds, and the
	// memory of the largest.
	ExplainerCPU   Number `json:"explainer_cpu_share,omitempty"`
	ExplainerBytes int64  `json:"explainer_bytes,omitempty"`

	TestAccuracy Number `json:"test_accuracy"` // at the best epoch by validation, mean over rounds
	TestSpread   Number `json:"test_accuracy_deviation"`
	BestEpoch    int    `json:"best_epoch"`
	// LossApart is the largest relative difference from the baseline's curve.
	LossApart Number   `json:"loss_apart"`
	Loss      []Number `json:"loss"`
	// Val is the validation metric over the epochs in Measured, of the first round, and ValSeconds the
	// seconds of training until then, without what the first epoch takes longer than others.
	Metric     string       `json:"metric,omitempty"`
	Val        []Number     `json:"val_accuracy,omitempty"`
	Measured   []int        `json:"measured,omitempty"`
	ValSeconds []Number     `json:"val_seconds,omitempty"`
	Paper      *train.Paper `json:"paper,omitempty"`

	timed int // epochs that times are of
}

// Rounds are the runs of one strategy, and the error that ended them.
type Rounds struct {
	Strategy string
	Runs     []*Run
	Err      error
}

// Compare makes one row per strategy; nil if none has run.
func Compare(all []*Rounds) *Comparison {
	c := &Comparison{}
	for _, r := range all {
		if len(r.Runs) > 0 || r.Err != nil {
			c.Rows = append(c.Rows, r.row())
		}
		if len(r.Runs) > 0 && c.Dataset == "" {
			f := r.Runs[0]
			c.Dataset, c.Model, c.Vertices, c.Edges = f.Dataset, f.Model, f.Vertices, f.Edges
			c.Workers, c.Servers, c.Made = f.Workers, f.Servers, f.Made
		}
	}
	if len(c.Rows) == 0 {
		return nil
	}
	c.compareWithBaseline()
	return c
}

// row joins the rounds of a strategy.
func (r *Rounds) row() CompareRow {
	row := emptyRow(r.Strategy)
	row.Rounds = len(r.Runs)
	if r.Err != nil {
		row.Error = strings.ReplaceAll(r.Err.Error(), "\n", "; ")
	}
	if len(r.Runs) == 0 {
		return row
	}
	f := r.Runs[0]
	row.Settings, row.Epochs, row.Loss, row.BestEpoch = f.StrategySettings, f.Epochs, f.Loss, f.BestEpoch
	row.TestAccuracy, row.TestSpread = meanAccuracy(r.Runs)
	row.Spec, row.Exact = f.Spec, isExact(f.Spec)
	row.setCurve(f)
	row.setTimes(r.Runs)
	row.setBytes(f)
	for _, x := range r.Runs {
		row.DevicePeakBytes = max(row.DevicePeakBytes, x.DevicePeakBytes)
		row.CPUShare += x.CPUShare / Number(len(r.Runs))
		if x.Explainer != nil {
			row.ExplainerCPU += x.Explainer.CPUShare / Number(len(r.Runs))
			row.ExplainerBytes = max(row.ExplainerBytes, x.Explainer.Bytes)
		}
		for _, rss := range x.WorkerPeakRSSBytes {
			row.WorkerPeakRSSBytes = max(row.WorkerPeakRSSBytes, rss)
		}
	}
	return row
}

// setCurve takes the validation metric over epochs and seconds.
func (row *CompareRow) setCurve(f *Run) {
	row.Metric = f.Metric
	var seconds Number
	trained := 0
	for i, epoch := range f.Measured {
		if i >= len(f.ValAccuracy) || epoch >= len(f.EpochSeconds) {
			return
		}
		for ; trained <= epoch; trained++ {
			seconds += f.warm(trained)
		}
		row.Val, row.Measured = append(row.Val, f.ValAccuracy[i]), append(row.Measured, epoch)
		row.ValSeconds = append(row.ValSeconds, seconds)
	}
}

// warm is what an epoch took. The first, which takes memory and fills caches, counts as the median of the others.
func (r *Run) warm(epoch int) Number {
	if epoch > 0 || len(r.EpochSeconds) < 2 {
		return r.EpochSeconds[epoch]
	}
	others := slices.Sorted(slices.Values(r.EpochSeconds[1:]))
	return min(r.EpochSeconds[0], others[len(others)/2])
}

// emptyRow is the row of a strategy that has not run: its numbers are unknown.
func emptyRow(strategy string) CompareRow {
	nan := Number(math.NaN())
	row := CompareRow{Strategy: strategy, BestEpoch: -1, Loss: []Number{}, RoundSeconds: []Number{},
		EpochSeconds: nan, MeanSeconds: nan, Spread: Spread{nan, nan, nan, nan}, Speedup: nan, WaitShare: nan,
		TransferSeconds: nan, HiddenShare: nan, TestAccuracy: nan, TestSpread: nan, LossApart: nan,
		Bytes: EpochBytes{ByKind: map[string]int64{}, ByLink: map[string]int64{}}}
	if d := train.Find(strategy); d != nil {
		row.Paper = d.Paper
	}
	return row
}

// meanAccuracy is the mean over rounds and the standard deviation. Rounds differ in their
// seeds if in anything.
func meanAccuracy(runs []*Run) (mean, deviation Number) {
	n := Number(len(runs))
	for _, x := range runs {
		mean += x.TestAccuracy / n
	}
	for _, x := range runs {
		deviation += (x.TestAccuracy - mean) * (x.TestAccuracy - mean)
	}
	return mean, Number(math.Sqrt(float64(deviation / max(n-1, 1))))
}

// setTimes joins the times of all rounds, each without its first epoch.
func (row *CompareRow) setTimes(runs []*Run) {
	var all []float64
	var waited, transfer, exposed float64
	for _, x := range runs {
		timed := withoutFirst(Floats(x.EpochSeconds))
		all, row.RoundSeconds = append(all, timed...), append(row.RoundSeconds, Number(mean(timed)))
		waited += float64(x.WaitShare)
		transfer += float64(x.TransferSeconds)
		if x.TransferSeconds > 0 {
			exposed += float64(x.TransferSeconds) * (1 - float64(x.HiddenShare))
		}
	}
	slices.Sort(all)
	row.MeanSeconds, row.timed = Number(mean(all)), len(all)
	row.EpochSeconds, row.Spread = Number(quantile(all, 0.5)), spreadOf(all)
	n := float64(len(runs))
	row.WaitShare, row.TransferSeconds = Number(waited/n), Number(transfer/n)
	row.HiddenShare = Number(1 - exposed/transfer)
}

func (row *CompareRow) setBytes(r *Run) {
	b := &r.Bytes
	if r.Rows != nil {
		row.SamplesPerSecond = r.SamplesPerSecond
		row.MissRate = Number(float64(r.Rows.Remote) / float64(r.Rows.Needed))
		row.Redundancy = Number(r.Rows.Redundancy)
		row.CacheHits = Number(float64(r.Rows.Cached) / float64(max(r.Rows.Remote, 1)))
	}
	if b.PerEpoch != nil {
		row.Bytes = *b.PerEpoch
	}
	row.Sent, row.Planned, row.Plan = b.Total, b.Planned, "differs"
	switch {
	case b.Total == b.Planned:
		row.Plan = "equal"
	case b.AtMost && b.Total < b.Planned:
		row.Plan = "within"
	case b.Deviation > 0 && math.Abs(float64(b.Total-b.Planned)) <= 3*b.Deviation*float64(b.Planned):
		row.Plan = "about"
	}
}

// compareWithBaseline sets what is relative to the baseline: the mode's reference, or the
// first that has run.
func (c *Comparison) compareWithBaseline() {
	var base *CompareRow
	for i := range c.Rows {
		r := &c.Rows[i]
		d := train.Find(r.Strategy)
		if r.Rounds > 0 && (base == nil || d != nil && r.Strategy == train.ReferenceOf(d.Mode).Name) {
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
			r.Speedup, r.LossApart = base.MeanSeconds/r.MeanSeconds, LossDifference(base.Loss, r.Loss)
			r.Difference = r.differs(base)
		}
	}
	c.nameSettings(base)
}

// LossDifference is the largest relative difference of two curves over the epochs that both
// have.
func LossDifference(a, b []Number) (most Number) {
	for i := range min(len(a), len(b)) {
		most = max(most, Number(math.Abs(float64(b[i]-a[i]))/math.Abs(float64(a[i]))))
	}
	return most
}

// Err names the strategies that failed; nil: none did.
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

// Write writes the comparison to a file, or for "-" to stdout.
func (c *Comparison) Write(path string, stdout io.Writer) error { return WriteJSON(c, path, stdout) }
