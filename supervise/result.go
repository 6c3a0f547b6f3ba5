package supervise

import (
	"math"

	"starling/graph"
	"starling/internal/version"
	"starling/plan"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/train"
)

// NewReport is the result of a run of one worker, and what all workers of a run have in common.
func NewReport(s *spec.Spec, data *graph.Meta, p *plan.Plan, r *train.Result) *report.Run {
	settings := *s
	return &report.Run{
		Spec: &settings, Made: report.NewMade(version.Name(), version.Commit(), tensor.MemoryTotal()),
		Dataset: data.Name, Vertices: data.Nodes, Edges: data.Edges,
		Task: s.Task, Model: s.Model.Name, Strategy: s.Strategy, StrategySettings: strategySettings(s),
		Workers: s.Cluster.Workers, Device: setup.DeviceName(s), DType: s.Machine.DType, SIMD: s.Machine.SIMD,
		CacheFirst: s.Machine.CacheFirst, Threads: s.Machine.Cores(), Seed: s.Seed, Epochs: len(r.Loss),
		Loss: report.Numbers(r.Loss), Reason: r.Reason, Metric: r.Metric,
		Measures: report.MeasuresOf(r.Measures), Measured: append([]int{}, r.Measured...),
		TrainAccuracy: report.Numbers(r.Train), ValAccuracy: report.Numbers(r.Val),
		TestAccuracies: report.Numbers(r.Test), BestEpoch: r.BestEpoch,
		BestValAccuracy:    report.Number(r.ValMetric),
		TestAccuracy:       report.Number(r.TestMetric),
		EpochSeconds:       report.Numbers(r.EpochSeconds),
		MedianEpochSeconds: report.Median(r.EpochSeconds),
		EpochSecondsSpread: report.SpreadOf(r.EpochSeconds),
		HiddenShare:        report.Number(math.NaN()),
		WaitShare:          report.Number(math.NaN()),
		Evaluation:         r.Evaluation,
		Warnings:           r.Evaluation.Warnings(s.Task, r.Metric),
		Parameters:         r.Parameters, LearntParameters: r.Learnt, PeakRSSBytes: tensor.PeakRSS(),
		DevicePeakBytes:    r.PeakBytes,
		DevicePlannedBytes: p.Peak,
		MemoryPlannedBytes: p.Needed(),
		Bytes:              report.NoBytes(),
	}
}

// strategySettings are the options of the run's strategy, for its result.
func strategySettings(s *spec.Spec) map[string]any {
	c, err := s.Choice()
	if err != nil {
		return nil
	}
	return c.Report()
}
