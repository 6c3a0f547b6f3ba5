package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/run/watch"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/train"
)

// clusterRun is a run of several workers that can start.
type clusterRun struct {
	spec  spec.Spec
	parts *parts
	plans *Plan  // nil: the workers are on other hosts
	from  *start // nil: from the beginning
	token []byte
	id    *cluster.Identity
	at    *rendezvous    // where workers that are started elsewhere find the run; nil: they are told
	slots []cluster.Host // of every worker, with --hosts

	infer    *inference // nil: it trains
	restarts []report.Restart
	watch    *watch.Watcher
	chosen   chosen
	counts   []*workCounter // of the workers' dry runs; nil: not counted
}

// prepareCluster checks all that can be checked before the workers start.
func prepareCluster(ctx context.Context, s spec.Spec, at *rendezvous, events event.Listener) (c *clusterRun,
	err error) {
	c = &clusterRun{spec: s, at: at}
	if err := c.completeRendezvous(); err != nil {
		return nil, err
	}
	if err := checkSpec(&c.spec); err != nil {
		return nil, err
	}
	if err := checkPaths(&c.spec); err != nil {
		return nil, err
	}
	if c.id, err = spec.Load("--tls", c.spec.Launch.TLS, cluster.LoadIdentity); err != nil {
		return nil, err
	}
	if c.token, err = workerToken(&c.spec, c.at); err != nil {
		return nil, err
	}
	if c.parts, err = findParts(ctx, &c.spec, events); err != nil {
		return nil, err
	}
	if err := c.complete(events); err != nil {
		c.parts.remove()
		return nil, err
	}
	return c, nil
}

// complete completes the spec from the data, the checkpoints and the machine, and makes the
// plan.
func (c *clusterRun) complete(events event.Listener) (err error) {
	s := &c.spec
	if err := c.checkData(); err != nil {
		return err
	}
	noteWeights(s, c.parts.book.Weighted, events)
	notePulled(s, events)
	if s.Checkpoints.Dir != "" { // rank 0 writes there, wherever it is started
		if s.Checkpoints.Dir, err = filepath.Abs(s.Checkpoints.Dir); err != nil {
			return err
		}
	}
	if err := c.batchIfTooLarge(events); err != nil {
		return err
	}
	if c.from, err = startOf(s, c.parts.identity, &c.parts.meta, events); err != nil {
		return err
	}
	s.ForData(&c.parts.meta, simd.Best().String())
	if remoteWorkers(s) { // the parts and the memory are those of other hosts
		_, err = s.Options(&c.parts.meta)
		return err
	}
	if c.plans, err = c.plan(events); err != nil {
		return err
	}
	if err := checkDiskRoom(s, c.plans.Parameters); err != nil {
		return err
	}
	if err := chooseDevice(s, c.plans, nil, events); err != nil || s.Machine.OnGPU() {
		return err
	}
	return c.fitsMemory(c.plans, tensor.MemoryFree())
}

// checkData refuses settings that the partition is not for.
func (c *clusterRun) checkData() error {
	s := &c.spec
	switch {
	case s.Training.Patience > 0 && !s.LearnsPairs() && c.parts.book.Val == 0:
		return spec.Mistake("--patience", fmt.Sprint(s.Training.Patience), "0 for a dataset without a validation split",
			"")
	case s.Model.EdgeFeatures && c.parts.book.EdgeDim == 0:
		return &graph.InputError{File: c.parts.dir, Field: "--edge-features",
			Found: "a partition whose edges have none",
			Want:  "edge_features.npy in its parts",
			Fix:   "add the file to the dataset (see docs/data.md) and partition it again, or leave the flag out"}
	}
	if err := s.ForLabels(&c.parts.meta); err != nil {
		return err
	}
	return s.CheckData(&c.parts.meta, c.parts.book.Weighted)
}

// workerToken is the secret that workers share. Workers that this run starts get a new one; others
// know that of this user, on loopback.
func workerToken(s *spec.Spec, at *rendezvous) ([]byte, error) {
	if given, err := spec.GivenToken(s.Launch.TokenFile); given != nil || err != nil {
		return given, err
	}
	tells := at != nil && at.Secret() // workers find the secret there
	switch {
	case !s.Launch.NoLaunch || tells && s.Launch.TLS == "" && !s.Launch.Insecure:
		return []byte(cluster.NewSecret()), nil
	case s.Launch.TLS != "" || s.Launch.Insecure:
		return nil, nil
	case cluster.Exposed(s.Launch.Listen):
		return nil, spec.Mistake("--listen", s.Launch.Listen+", which others can reach", "--tls or a --token-file",
			"or let anyone join with --insecure")
	}
	return localSecret()
}

// localSecret is that of this user on this host.
func localSecret() ([]byte, error) {
	b, err := cluster.LocalSecret()
	if err != nil {
		return nil, spec.Mistake("--token-file", graph.Sentence("none is given, and "+err.Error()), "a file with a secret",
			"or let every user of this host join with --insecure")
	}
	return b, nil
}

// trainCluster runs s on several workers, as Train does on one.
func trainCluster(ctx context.Context, s spec.Spec, at *rendezvous, events event.Listener) (*report.Run, error) {
	began := time.Now()
	c, err := prepareCluster(ctx, s, at, events)
	if err != nil {
		return nil, err
	}
	defer c.parts.remove()
	release, err := claimCheckpoints(&c.spec)
	if err != nil {
		return nil, err
	}
	defer release()
	events, finish, err := eventFiles(ctx, &c.spec, events)
	if err != nil {
		return nil, err
	}
	c.watch = watch.New(c.spec.Cluster.Workers, events, time.Now)
	events = event.All(c.watch, &c.chosen, events)
	metrics, err := c.serveMetrics()
	if err != nil {
		return nil, errors.Join(err, finish())
	}
	defer metrics.Close()
	run := c.runProcesses
	if c.spec.Goroutines() {
		run = c.runGoroutines
	}
	shares, lost := run(ctx, events) // lost: the last state could not be saved
	if shares == nil {
		return nil, errors.Join(lost, finish())
	}
	r, err := joinShares(shares)
	if err != nil || lost != nil && r.Reason == "interrupted" && ctx.Err() == nil { // by the full disk
		return nil, errors.Join(err, lost, finish())
	}
	written := conclude(&c.spec, &c.parts.meta, c.parts.book.Weighted, r, began, events, c.writeHeldOut)
	return c.report(shares, r, time.Since(began)), errors.Join(lost, written, finish())
}

// report is the result of the run.
func (c *clusterRun) report(shares []*share, r *train.Result, took time.Duration) *report.Run {
	p := c.plans
	if p == nil {
		p = &Plan{}
	}
	out := newReport(&c.spec, &c.parts.meta, p, r)
	out.Seconds, out.Servers, out.Threads = took.Seconds(), max(c.spec.Cluster.Servers, 1), shares[0].Threads
	out.Bytes, out.Restarts = sentBytes(shares, c.spec.Mode == string(train.MiniBatch)), c.restarts
	out.Rows, out.Chosen = rowCounts(shares), c.chosen.settings()
	if out.Rows != nil && out.MedianEpochSeconds > 0 && !c.spec.LearnsPairs() {
		out.SamplesPerSecond = report.Number(float64(c.parts.book.Train) / float64(out.MedianEpochSeconds))
	}
	measured := shares
	if c.spec.Goroutines() { // each measured the process of all
		measured = shares[:1]
	}
	out.CPUShare, out.Explainer = cpuShare(measured), explainers(shares, measured)
	var metered []watch.Metered
	for _, s := range shares {
		out.PeakRSSBytes = max(out.PeakRSSBytes, s.PeakRSS)
		if !c.spec.Goroutines() { // else it is that of all together
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
func rowCounts(shares []*share) *train.RowCounts {
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

// explainers are what those of all workers took, beside the processor time that was measured; nil:
// there were none.
func explainers(shares, measured []*share) *report.Explainer {
	sum, used := report.Explainer{}, 0.0
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
func sentBytes(shares []*share, batches bool) report.Bytes {
	var sent, perEpoch [][]report.Traffic
	atMost, deviation := false, 0.0
	for _, s := range shares {
		sent, perEpoch = append(sent, s.Traffic), append(perEpoch, s.Metered.Sent)
		atMost, deviation = atMost || s.AtMost, max(deviation, s.Deviation)
	}
	b := report.SumTraffic(sent)
	b.AtMost, b.Deviation, b.PerEpoch = atMost, deviation, report.SumEpochs(perEpoch, shares[0].Metered.Epochs, batches)
	return b
}

// task is what the workers are told.
func (c *clusterRun) task() *task {
	return &task{Spec: c.spec, Data: c.parts.meta, Parts: c.parts.dir, ID: c.parts.book.ID, Infer: c.infer}
}

// servers is the server of each rank; nil: every host is a server.
func (c *clusterRun) servers() (of []int) {
	if c.spec.Cluster.Servers == 0 {
		return nil
	}
	for r := range c.spec.Cluster.Workers {
		of = append(of, serverOf(&c.spec, r))
	}
	return of
}

// serverOf is the server of a rank, if workers are grouped.
func serverOf(s *spec.Spec, rank int) int {
	return rank / (s.Cluster.Workers / max(s.Cluster.Servers, 1))
}

// remoteWorkers reports whether workers may be on other hosts.
func remoteWorkers(s *spec.Spec) bool { return s.Launch.NoLaunch || s.Launch.Hosts != "" }
