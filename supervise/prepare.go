package supervise

import (
	"context"
	"path/filepath"

	"starling/cluster"
	"starling/event"
	"starling/plan"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/worker"
)

// Prepare checks all that can be checked before the workers start.
func Prepare(ctx context.Context, s spec.Spec, at *Rendezvous, events event.Listener) (c *Run, err error) {
	c = &Run{Spec: s, at: at}
	if err := c.completeRendezvous(); err != nil {
		return nil, err
	}
	if err := setup.Check(&c.Spec); err != nil {
		return nil, err
	}
	if err := worker.CheckPaths(&c.Spec); err != nil {
		return nil, err
	}
	if c.id, err = spec.Load("--tls", c.Spec.Launch.TLS, cluster.LoadIdentity); err != nil {
		return nil, err
	}
	if c.Token, err = workerToken(&c.Spec, c.at); err != nil {
		return nil, err
	}
	if c.Parts, err = setup.FindParts(ctx, &c.Spec, events); err != nil {
		return nil, err
	}
	if err := c.complete(events); err != nil {
		c.Parts.Remove()
		return nil, err
	}
	return c, nil
}

// complete completes the spec from the data, the checkpoints and the machine, and makes the
// plan.
func (c *Run) complete(events event.Listener) (err error) {
	s := &c.Spec
	if err := c.Parts.Suits(s); err != nil {
		return err
	}
	if err := c.Parts.Judge(s); err != nil {
		return err
	}
	setup.NoteEdges(s, c.Parts.Book.Weighted, c.Parts.Book.EdgeDim, events)
	setup.NotePulled(s, events)
	if err := setup.WholePaths(s); err != nil {
		return err
	}
	if s.Checkpoints.Dir != "" { // rank 0 writes there, wherever it is started
		if s.Checkpoints.Dir, err = filepath.Abs(s.Checkpoints.Dir); err != nil {
			return err
		}
	}
	if err := c.Planned().BatchIfTooLarge(events); err != nil {
		return err
	}
	identity := func() resume.Identity { return resume.PartsIdentity(c.Parts) }
	if c.From, err = resume.StartOf(s, identity, &c.Parts.Meta, events); err != nil {
		return err
	}
	s.ForData(&c.Parts.Meta, simd.Best().String())
	if setup.RemoteWorkers(s) { // the parts and the memory are on other hosts
		_, err = setup.Options(s, &c.Parts.Meta)
		return err
	}
	if c.Plan, err = c.Planned().Plan(events); err != nil {
		return err
	}
	if err := setup.CheckDiskRoom(s, c.Plan.Parameters); err != nil {
		return err
	}
	if err := plan.ChooseDevice(s, c.Plan, nil, events); err != nil || s.Machine.OnGPU() {
		return err
	}
	return plan.WorkersFit(s, c.Plan, tensor.MemoryFree())
}

// workerToken is the secret that workers share. Workers that this run starts get a new one; others
// know this user's, on loopback.
func workerToken(s *spec.Spec, at *Rendezvous) ([]byte, error) {
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
	return setup.LocalSecret()
}

// completeRendezvous completes a run whose workers are started elsewhere.
func (c *Run) completeRendezvous() (err error) {
	s := &c.Spec
	switch {
	case s.Launch.Hosts != "":
		c.slots, err = hostSlots(s)
	case c.at == nil && s.Launch.Rendezvous != "" && s.Launch.NoLaunch:
		c.at, err = newRendezvous(s, nil)
	}
	return err
}
