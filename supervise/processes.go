package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/internal/version"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/watch"
	"starling/worker"
)

// runProcesses trains with one process per worker. When one is lost, the others wait for its
// replacement, and all continue from the newest state.
func (c *Run) runProcesses(ctx context.Context, events event.Listener) ([]*worker.Share, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k, err := newKeeper(c, events, stop)
	if err != nil {
		return nil, err
	}
	r := &recovery{run: c, kept: k, events: events, job: cluster.NewSecret()[:12], at: k.at(), fault: faultOf(ctx)}
	shares, err := r.train(ctx)
	return shares, k.close(err)
}

// recovery is a run of processes that survives the loss of some.
type recovery struct {
	run    *Run
	kept   *keeper
	events event.Listener
	job    string
	co     *cluster.Coordinator
	procs  *cluster.Processes

	at     cluster.Position // where the workers last started from
	tries  int              // starts without a newer state
	lostAt time.Time        // when the last loss was noticed
	fault  *Fault           // nil: none
}

func (r *recovery) train(ctx context.Context) ([]*worker.Share, error) {
	refusals := watch.NewRefusals("", r.events)
	defer refusals.Close()
	if err := r.listen(refusals); err != nil {
		return nil, err
	}
	defer r.co.Close()
	end, err := r.run.publish(ctx, r.co.Addr(), r.job, r.events)
	if err != nil {
		return nil, err
	}
	defer end()
	if r.procs, err = r.launch(); err != nil {
		return nil, err
	}
	if r.procs != nil {
		r.procs.Hold()
		defer r.procs.Wait()
		defer r.procs.Release()
	}
	for {
		results, err := r.co.Run(ctx, r.procs)
		if err == nil {
			return worker.UnpackShares(results)
		}
		if err := r.again(ctx, err); err != nil {
			r.stopAll(err)
			return nil, r.jobError(err)
		}
	}
}

// listen opens the rendezvous of the job.
func (r *recovery) listen(refusals *watch.Refusals) error {
	c, s := r.run, &r.run.Spec
	task, from, err := r.task()
	if err != nil {
		return err
	}
	r.co, err = cluster.Listen(cluster.Config{Addr: s.Launch.Listen, Workers: s.Cluster.Workers,
		Servers: s.Cluster.Servers, Job: r.job, Version: version.Name(), Token: c.Token, Identity: c.id,
		Insecure: s.Launch.Insecure, Timeout: setup.Timeout(s), Silence: setup.Heartbeat(s), Task: task,
		Blob: from.blob, Own: from.own, Again: s.Cluster.OnFailure != "stop", Remote: c.slots != nil,
		State: r.kept.take, Events: r.forwardEvents(), Status: c.watch.Take,
		Watch: func() any { return c.watch.Snapshot() }, WatchToken: c.watchToken(),
		Refused: refusals.Refused})
	if err != nil {
		return spec.Mistake("--listen", graph.Sentence(err.Error()), "a free port of an address of this host", "port 0: any")
	}
	return nil
}

// again prepares another start after a loss, or returns why there is none.
func (r *recovery) again(ctx context.Context, cause error) error {
	onFailure := r.run.Spec.Cluster.OnFailure
	var died *cluster.Died
	lost := errors.As(cause, &died) && died.Lost()
	switch {
	case lost && ctx.Err() != nil: // a user who stops a run may stop its workers too
		r.events.On(event.Note{Text: fmt.Sprintf("lost %v; the run was stopping, and ends here", cause)})
		return context.Canceled
	case !lost || onFailure == "stop" || ctx.Err() != nil:
		return cause
	}
	if now := r.kept.at(); now.Compare(r.at) > 0 {
		r.at, r.tries = now, 0
	}
	if r.tries++; r.tries > mostTries {
		return fmt.Errorf("%w; %s from %v failed, and there will be no other", cause,
			event.Counted(r.tries, "start"), r.at)
	}
	r.lostAt = time.Now()
	r.run.watch.Forget()
	ranks := r.co.Lost()
	task, from, err := r.task()
	if err != nil {
		return err
	}
	how := "waiting " + setup.Timeout(&r.run.Spec).String() + " for it to come again"
	if r.procs != nil && onFailure == "restart" {
		how = "starting it again"
		if err := r.restart(ranks); err != nil {
			return err
		}
	}
	r.co.Next(task, from.blob, from.own, r.procs)
	r.events.On(event.Note{Text: fmt.Sprintf("lost %v; %s, to go on from %v", cause, how, r.kept.at()),
		Mark: event.Lost})
	return nil
}

// restart starts new processes of lost ranks.
func (r *recovery) restart(lost []int) error {
	for _, rank := range lost {
		cmd, err := r.command(rank)
		if err == nil {
			err = r.procs.Start(rank, cmd)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stopAll ends the workers that are left. Those that were started by hand may come to join again.
func (r *recovery) stopAll(why error) {
	if r.procs != nil {
		r.procs.Stop(time.Second)
		return
	}
	if r.run.Spec.Cluster.OnFailure == "stop" {
		return
	}
	left := r.run.Spec.Cluster.Workers - len(r.co.Lost())
	switch {
	case !errors.Is(why, context.Canceled):
		r.co.RefuseLate(why, 2*time.Second, 0)
	case left > 0:
		r.co.RefuseLate(errInterrupted, interruptedTime, left)
	}
}

// errInterrupted is why workers that come back are refused when a user has stopped the run, for interruptedTime at most.
var errInterrupted = errors.New("it was interrupted")

const interruptedTime = 600 * time.Millisecond

// task is what workers get when they start, and the state that they start from.
func (r *recovery) task() (json.RawMessage, *kept, error) {
	t := r.run.Task()
	from, err := r.kept.settled()
	if err != nil {
		return nil, nil, err
	}
	if from == nil {
		from = &kept{}
	}
	t.From, t.Shards = from.from, r.kept.folder()
	text, err := json.Marshal(t)
	return text, from, err
}

// forwardEvents forwards the events of workers. When training has started, all have mapped
// their parts, and a temporary partition can be removed, unless workers may be restarted: so
// none is left behind, whatever happens.
func (r *recovery) forwardEvents() func(int, event.Event) {
	return func(_ int, e event.Event) {
		if _, ok := e.(event.Started); ok {
			r.started()
		}
		r.events.On(e)
		r.fault.on(e, r.procs, r.events)
	}
}

func (r *recovery) started() {
	if r.run.Spec.Cluster.OnFailure == "stop" {
		r.run.Parts.Remove()
	}
	if r.lostAt.IsZero() {
		return
	}
	at, took := r.kept.at(), time.Since(r.lostAt).Seconds()
	r.run.restarts = append(r.run.restarts, report.Restart{Epoch: at.Epoch, Step: at.Batch, Seconds: took})
	r.events.On(event.Note{Text: fmt.Sprintf("training goes on from %v, %.1f s after the loss was noticed", at, took),
		Mark: event.Back})
	r.lostAt = time.Time{}
}

// launch starts the workers, unless they are started elsewhere.
func (r *recovery) launch() (*cluster.Processes, error) {
	s := &r.run.Spec
	if s.Launch.NoLaunch {
		r.events.On(event.Note{Text: fmt.Sprintf("waiting %s for %s: %s", setup.Timeout(s),
			event.Counted(s.Cluster.Workers, "worker"),
			r.run.howToJoin(r.co.Addr()))})
		return nil, nil
	}
	var cmds []*exec.Cmd
	for rank := range s.Cluster.Workers {
		cmd, err := r.command(rank)
		if err != nil {
			return nil, err
		}
		cmds = append(cmds, cmd)
	}
	return cluster.Launch(cmds, r.run.slots, func(rank int, line string) {
		r.events.On(event.Note{Text: fmt.Sprintf("[rank %d] %s", rank, line)})
	})
}

// command starts the worker of a rank.
func (r *recovery) command(rank int) (*exec.Cmd, error) {
	w := worker.For(&r.run.Spec, rank, r.run.Token)
	w.Addr, w.Job = r.co.Addr(), r.job
	if r.run.slots != nil {
		return r.run.overSSH(w)
	}
	return w.Command()
}

// jobError is the error of a job. What a worker finds wrong that was started anew was right when the run began, and
// is no mistake of the user's any more.
func (r *recovery) jobError(err error) error {
	err = jobError(err)
	if m, ok := err.(*workerMistake); ok && !r.lostAt.IsZero() {
		return m.Died
	}
	return err
}

// jobError is the error of a job as the command reports it.
func jobError(err error) error {
	var d *cluster.Died
	switch {
	case errors.Is(err, context.Canceled):
		return report.ErrInterrupted
	case errors.As(err, &d) && d.Input:
		return &workerMistake{d}
	}
	return err
}

// workerMistake is a user's mistake that a worker found.
type workerMistake struct{ *cluster.Died }

func (*workerMistake) Is(target error) bool { return target == graph.ErrInput }

// Work runs the workers, in this process or in processes of their own. There are shares beside the error if only the
// last state could not be saved.
func (c *Run) Work(ctx context.Context, events event.Listener) ([]*worker.Share, error) {
	if c.Spec.Goroutines() {
		return c.runGoroutines(ctx, events)
	}
	return c.runProcesses(ctx, events)
}
