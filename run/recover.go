package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"starling/cluster"
	"starling/event"
)

// runProcesses trains with a process a worker. When one is lost, it and those that
// are left meet again and go on from the newest state.
func (c *clusterRun) runProcesses(ctx context.Context, events event.Listener) ([]*share, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k, err := newKeeper(c, events, stop)
	if err != nil {
		return nil, err
	}
	r := &recovery{clusterRun: c, kept: k, events: events, job: cluster.NewSecret()[:12], at: k.epoch(), drill: drillOf(ctx)}
	shares, err := r.run(ctx)
	return shares, k.close(err)
}

// recovery is a run of processes that outlives them.
type recovery struct {
	*clusterRun
	kept   *keeper
	events event.Listener
	job    string
	co     *cluster.Coordinator
	procs  *cluster.Processes

	at     int       // the epoch that the workers last started from
	tries  int       // starts without a newer state
	lostAt time.Time // when the last loss was noticed
	drill  *Drill    // nil: none
}

// mostTries bounds starts that lead nowhere: what ends a run at the same place again
// and again is no accident.
const mostTries = 3

func (r *recovery) run(ctx context.Context) ([]*share, error) {
	s := &r.spec
	task, from, err := r.task()
	if err != nil {
		return nil, err
	}
	strangers := newRefusals("", r.events)
	defer strangers.close()
	r.co, err = cluster.Listen(cluster.Config{Addr: s.Listen, Workers: s.Workers, Servers: s.Servers, Job: r.job, Version: Version(), Token: r.token,
		Identity: r.id, Insecure: s.Insecure, Timeout: s.timeout(), Silence: s.heartbeat(), Task: task, Blob: from.blob, Own: from.own, Again: s.OnFailure != "stop", Remote: r.slots != nil, State: r.kept.take, Events: r.hears(),
		Status: r.watch.heard, Watch: func() any { return r.watch.snapshot() }, WatchToken: r.watchToken(),
		Refused: strangers.refused})
	if err != nil {
		return nil, mistake("--listen", err.Error(), "a free port of an address of this host", "port 0 is any")
	}
	defer r.co.Close()
	end, err := r.open(ctx, r.co.Addr(), r.job, r.events)
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
			return unpackShares(results)
		}
		if err := r.again(ctx, err); err != nil {
			r.dismiss(err)
			return nil, ended(err)
		}
	}
}

// again prepares another start after a loss, or says why there is none.
func (r *recovery) again(ctx context.Context, cause error) error {
	var died *cluster.Died
	lost := errors.As(cause, &died) && died.Lost()
	switch {
	case lost && ctx.Err() != nil: // whoever stops a run may well stop its workers too
		r.events.On(event.Note{Text: fmt.Sprintf("lost %v; the run was stopping, and ends here", cause)})
		return context.Canceled
	case !lost || r.spec.OnFailure == "stop" || ctx.Err() != nil:
		return cause
	}
	if now := r.kept.epoch(); now > r.at {
		r.at, r.tries = now, 0
	}
	if r.tries++; r.tries > mostTries {
		return fmt.Errorf("%w; after %d starts from epoch %d that ended so there will be no other", cause, r.tries, r.at)
	}
	r.lostAt = time.Now()
	r.watch.forget()
	ranks := r.co.Lost()
	task, from, err := r.task()
	if err != nil {
		return err
	}
	how := "waiting " + r.spec.timeout().String() + " for it to come again"
	if r.procs != nil && r.spec.OnFailure == "restart" {
		how = "starting it again"
		if err := r.start(ranks); err != nil {
			return err
		}
	}
	r.co.Next(task, from.blob, from.own, r.procs)
	r.events.On(event.Note{Text: fmt.Sprintf("lost %v; %s, to go on from epoch %d", cause, how, r.kept.epoch())})
	return nil
}

// start starts processes of lost ranks anew.
func (r *recovery) start(lost []int) error {
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

// dismiss sends everybody home.
func (r *recovery) dismiss(why error) {
	if r.procs != nil {
		r.procs.Stop(time.Second)
		return
	}
	if r.spec.OnFailure != "stop" {
		r.co.Dismiss(why, 2*time.Second)
	}
}

// task is what workers are told when they start, and the state they start from.
func (r *recovery) task() (json.RawMessage, *kept, error) {
	t := r.clusterRun.task()
	from := r.kept.state()
	if from == nil {
		from = &kept{}
	}
	t.From = from.from
	text, err := json.Marshal(t)
	return text, from, err
}

// hears passes on what workers say. When training has started all have mapped
// their parts, and a temporary partition can go, unless workers may start again:
// then none is left behind, whatever happens.
func (r *recovery) hears() func(int, event.Event) {
	return func(_ int, e event.Event) {
		if _, ok := e.(event.Started); ok {
			if r.spec.OnFailure == "stop" {
				r.parts.remove()
			}
			if !r.lostAt.IsZero() {
				took := time.Since(r.lostAt).Seconds()
				r.restarts = append(r.restarts, Restart{Epoch: r.kept.epoch(), Seconds: took})
				r.events.On(event.Note{Text: fmt.Sprintf("training goes on from epoch %d, %.1f s after the loss was noticed", r.kept.epoch(), took)})
				r.lostAt = time.Time{}
			}
		}
		r.events.On(e)
		r.drill.on(e, r.procs, r.events)
	}
}

// launch starts the workers, unless others do.
func (r *recovery) launch() (*cluster.Processes, error) {
	s := &r.spec
	if s.NoLaunch {
		r.events.On(event.Note{Text: fmt.Sprintf("waiting %s for %s: %s", s.timeout(), event.Counted(s.Workers, "worker"), r.howToJoin(r.co.Addr()))})
		return nil, nil
	}
	var cmds []*exec.Cmd
	for rank := range s.Workers {
		cmd, err := r.command(rank)
		if err != nil {
			return nil, err
		}
		cmds = append(cmds, cmd)
	}
	return cluster.Launch(cmds, r.slots, func(rank int, line string) {
		r.events.On(event.Note{Text: fmt.Sprintf("[rank %d] %s", rank, line)})
	})
}

// command starts the worker of a rank.
func (r *recovery) command(rank int) (*exec.Cmd, error) {
	w := r.spec.workerOf(rank, r.token)
	w.Join, w.Job = r.co.Addr(), r.job
	if r.slots != nil {
		return r.overSSH(w)
	}
	return w.command()
}
