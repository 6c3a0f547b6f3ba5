package run

import (
	"context"
	"path/filepath"

	"starling/cluster"
	"starling/event"
	"starling/plan"
	"starling/report"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/watch"
	"starling/worker"
)

// clusterRun is a run of several workers that can start.
type clusterRun struct {
	spec  spec.Spec
	parts *setup.Parts
	plans *plan.Plan    // nil: the workers are on other hosts
	from  *resume.Start // nil: from the beginning
	token []byte
	id    *cluster.Identity
	at    *rendezvous    // where workers that are started elsewhere find the run; nil: they are told
	slots []cluster.Host // of every worker, with --hosts

	infer    *worker.Inference // nil: it trains
	restarts []report.Restart
	watch    *watch.Watcher
	chosen   chosen
}

// prepareCluster checks all that can be checked before the workers start.
func prepareCluster(ctx context.Context, s spec.Spec, at *rendezvous, events event.Listener) (c *clusterRun,
	err error) {
	c = &clusterRun{spec: s, at: at}
	if err := c.completeRendezvous(); err != nil {
		return nil, err
	}
	if err := setup.Check(&c.spec); err != nil {
		return nil, err
	}
	if err := worker.CheckPaths(&c.spec); err != nil {
		return nil, err
	}
	if c.id, err = spec.Identity(c.spec.TLS); err != nil {
		return nil, err
	}
	if c.token, err = workerToken(&c.spec, c.at); err != nil {
		return nil, err
	}
	if c.parts, err = setup.FindParts(ctx, &c.spec, events); err != nil {
		return nil, err
	}
	if err := c.complete(events); err != nil {
		c.parts.Remove()
		return nil, err
	}
	return c, nil
}

// complete completes the spec from the data, the checkpoints and the machine, and makes the
// plan.
func (c *clusterRun) complete(events event.Listener) (err error) {
	s := &c.spec
	if err := c.parts.Suits(s); err != nil {
		return err
	}
	setup.NoteWeights(s, c.parts.Book.Weighted, events)
	setup.NotePulled(s, events)
	if s.CheckpointDir != "" { // rank 0 writes there, wherever it is started
		if s.CheckpointDir, err = filepath.Abs(s.CheckpointDir); err != nil {
			return err
		}
	}
	if err := c.planned().BatchIfTooLarge(events); err != nil {
		return err
	}
	if c.from, err = resume.StartOf(s, func() resume.Identity { return resume.PartsIdentity(c.parts) }, &c.parts.Meta, events); err != nil {
		return err
	}
	s.ForData(&c.parts.Meta, simd.Best().String())
	if setup.RemoteWorkers(s) { // the parts and the memory are those of other hosts
		_, err = s.Options(&c.parts.Meta)
		return err
	}
	if c.plans, err = c.planned().Plan(events); err != nil {
		return err
	}
	if err := setup.CheckDiskRoom(s, c.plans.Parameters); err != nil {
		return err
	}
	if err := plan.ChooseDevice(s, c.plans, nil, events); err != nil || s.OnCard() {
		return err
	}
	return plan.WorkersFit(s, c.plans, tensor.MemoryFree())
}

// planned is the run as far as plans are of it.
func (c *clusterRun) planned() *plan.Run {
	return &plan.Run{Spec: &c.spec, Parts: c.parts, From: c.from}
}

// workerToken is the secret that workers share. Workers that this run starts get a new one; others
// know that of this user, on loopback.
func workerToken(s *spec.Spec, at *rendezvous) ([]byte, error) {
	if given, err := spec.GivenToken(s.TokenFile); given != nil || err != nil {
		return given, err
	}
	tells := at != nil && at.Secret() // workers find the secret there
	switch {
	case !s.NoLaunch || tells && s.TLS == "" && !s.Insecure:
		return []byte(cluster.NewSecret()), nil
	case s.TLS != "" || s.Insecure:
		return nil, nil
	case spec.Exposed(s.Listen):
		return nil, spec.Mistake("--listen", s.Listen+", which others can reach", "--tls or a --token-file",
			"or let anyone join with --insecure")
	}
	return setup.LocalSecret()
}

// work runs the workers, in this process or in processes of their own. There are shares beside the error if only the
// last state could not be saved.
func (c *clusterRun) work(ctx context.Context, events event.Listener) ([]*worker.Share, error) {
	if c.spec.Goroutines() {
		return c.runGoroutines(ctx, events)
	}
	return c.runProcesses(ctx, events)
}

// task is what the workers are told.
func (c *clusterRun) task() *worker.Task {
	return &worker.Task{Spec: c.spec, Data: c.parts.Meta, Parts: c.parts.Dir, ID: c.parts.Book.ID, Infer: c.infer}
}
