package supervise

import (
	"time"

	"starling/plan"
	"starling/report"
	"starling/train"
	"starling/watch"
	"starling/wire"
	"starling/worker"
)

// Report is the result of the run.
func (c *Run) Report(shares []*worker.Share, r *train.Result, took time.Duration) *report.Run {
	p := c.Plan
	if p == nil {
		p = &plan.Plan{}
	}
	out := NewReport(&c.Spec, &c.Parts.Meta, p, r)
	out.Seconds, out.Servers, out.Threads = took.Seconds(), max(c.Spec.Cluster.Servers, 1), shares[0].Threads
	out.Bytes, out.Restarts = sentBytes(shares, c.Spec.Mode == string(train.MiniBatch)), c.restarts
	out.Rows, out.Chosen = rowCounts(shares), c.chosen.settings()
	if out.Rows != nil && out.MedianEpochSeconds > 0 && !c.Spec.LearnsPairs() {
		out.SamplesPerSecond = report.Number(float64(c.Parts.Book.Train) / float64(out.MedianEpochSeconds))
	}
	measured := shares
	if c.Spec.Goroutines() { // each measured the process of all
		measured = shares[:1]
	}
	out.CPUShare, out.Explainer = worker.CPUShare(measured), explainers(shares, measured)
	out.Launches = launches(shares)
	var metered []watch.Metered
	for _, s := range shares {
		out.PeakRSSBytes = max(out.PeakRSSBytes, s.PeakRSS)
		if !c.Spec.Goroutines() { // else it is the peak of all together
			out.WorkerPeakRSSBytes = append(out.WorkerPeakRSSBytes, s.PeakRSS)
		}
		metered = append(metered, s.Metered)
	}
	wait, transfer, hidden := watch.Means(metered)
	out.WaitShare, out.TransferSeconds = report.Number(wait), report.Number(transfer)
	out.HiddenShare = report.Number(hidden)
	return out
}

// rowCounts are the rows that batches of all workers needed; nil: there were none.
func rowCounts(shares []*worker.Share) *train.RowCounts {
	sum := &train.RowCounts{}
	for _, s := range shares {
		sum.Needed, sum.Remote = sum.Needed+s.Rows.Needed, sum.Remote+s.Rows.Remote
		sum.Cached, sum.Requests = sum.Cached+s.Rows.Cached, sum.Requests+s.Rows.Requests
		sum.Redundancy = s.Rows.Redundancy // of all workers
	}
	if sum.Needed == 0 {
		return nil
	}
	return sum
}

// launches sums up why all workers launched batches; nil: none was scheduled.
func launches(shares []*worker.Share) *train.Launches {
	var sum train.Launches
	for _, s := range shares {
		l := &s.Launches
		sum.NoneUnderWay += l.NoneUnderWay
		sum.NoneWaits += l.NoneWaits
		sum.Window += l.Window
		sum.Score += l.Score
		sum.Most, sum.Allowed = max(sum.Most, l.Most), max(sum.Allowed, l.Allowed)
	}
	if sum.Most == 0 {
		return nil
	}
	return &sum
}

// explainers sums up the explainers of all workers, beside the processor time that was measured; nil: there
// were none.
func explainers(shares, measured []*worker.Share) *report.Explainer {
	sum, used := report.Explainer{}, 0.0
	sum.Nodes, sum.Columns = shares[0].Explainer.Nodes, shares[0].Explainer.Columns
	for _, s := range shares {
		sum.Explanations += s.Explainer.Explanations
		sum.Epochs += s.Explainer.Epochs
		sum.Vertices += s.Explainer.Vertices
		sum.CPUSeconds += s.Explainer.CPUSeconds
		sum.Bytes = max(sum.Bytes, s.Explainer.Bytes)
	}
	if sum.Explanations == 0 {
		return nil
	}
	for _, s := range measured {
		used += s.CPU.Seconds
	}
	sum.CPUShare = report.Number(sum.CPUSeconds / used)
	return &sum
}

// sentBytes is what all workers sent.
func sentBytes(shares []*worker.Share, batches bool) report.Bytes {
	var sent, perEpoch [][]report.Traffic
	atMost, deviation := false, 0.0
	for _, s := range shares {
		sent, perEpoch = append(sent, s.Traffic), append(perEpoch, s.Metered.Sent)
		atMost, deviation = atMost || s.AtMost, max(deviation, s.Deviation)
	}
	b := report.SumTraffic(sent)
	for _, s := range shares {
		for name, n := range s.Beside {
			if b.Beside == nil {
				b.Beside = map[string]wire.Count{}
			}
			sum := b.Beside[name]
			b.Beside[name] = wire.Count{Messages: sum.Messages + n.Messages, Bytes: sum.Bytes + n.Bytes}
		}
	}
	b.AtMost, b.Deviation, b.PerEpoch = atMost, deviation, report.SumEpochs(perEpoch, shares[0].Metered.Epochs, batches)
	return b
}
