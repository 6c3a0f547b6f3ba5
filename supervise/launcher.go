package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/worker"
)

// PlaceOf is this process's place among the tasks of a launcher; nil: it is no task, or the spec
// itself says how workers start.
func PlaceOf(s *spec.Spec, getenv func(string) string) (*Place, error) {
	if s.Launch.NoLaunch || s.Launch.Hosts != "" || s.Goroutines() {
		return nil, nil
	}
	p, err := cluster.Environment(getenv, s.Launch.Launcher)
	if err != nil {
		return nil, spec.Mistake("environment", graph.Sentence(err.Error()), "", "--launcher none ignores it")
	}
	return p, nil
}

// RankOf is this process's rank among the tasks of a launcher; -1: it is no task.
func RankOf(getenv func(string) string) (int, error) {
	s := spec.Default()
	p, err := PlaceOf(&s, getenv)
	if p == nil || err != nil {
		return -1, err
	}
	return p.Rank, nil
}

// checkFollower finds the mistakes that rank 0 finds too, so that no task waits for one that
// has failed.
func checkFollower(s *spec.Spec) error {
	if err := s.Complete(); err != nil {
		return err
	}
	if _, err := os.Stat(s.Dataset); err == nil && s.PartitionFolder() == "" {
		return setup.NeedsPartition(s)
	}
	return s.Validate()
}

// Meet makes every task of a launcher a worker, and chooses where they find each other.
func Meet(s *spec.Spec, p *Place) (*Rendezvous, error) {
	if err := useTasks(s, p); err != nil {
		return nil, err
	}
	return newRendezvous(s, p)
}

// useTasks makes every task a worker.
func useTasks(s *spec.Spec, p *Place) error {
	if err := s.CompleteParts(); err != nil {
		return err
	}
	if s.Cluster.Workers != 0 && s.Cluster.Workers != p.Size {
		return spec.Mistake("--workers", fmt.Sprint(s.Cluster.Workers),
			fmt.Sprintf("%d, the tasks that %s has started", p.Size, p.Launcher),
			"leave out --workers, or give --launcher none")
	}
	s.Launch.NoLaunch, s.Cluster.Workers = true, p.Size
	if s.Cluster.Transport == "mpi" { // MPI ends all processes when it loses one
		s.Cluster.OnFailure = "stop"
	}
	if s.Machine.Threads == 0 {
		s.Machine.Threads = p.CPUs
	}
	return nil
}

// leaveTime is how long this task's own worker may take to exit after the run.
const leaveTime = 5 * time.Second

// startOwnWorker starts the worker of rank 0. The coordinator notices how it ends, and asks it
// to stop.
func startOwnWorker(ctx context.Context, s *spec.Spec, w *worker.Spec, events event.Listener) (leave func()) {
	ctx = context.WithoutCancel(ctx)
	kill, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { supervise(ctx, kill, s, w, events) })
	return func() {
		timer := time.AfterFunc(leaveTime, stop)
		wg.Wait()
		timer.Stop()
		stop()
	}
}

// Follow is the task of any rank but 0.
func (at *Rendezvous) Follow(ctx context.Context, s *spec.Spec, events event.Listener) error {
	if err := checkFollower(s); err != nil {
		return err
	}
	token, err := spec.GivenToken(s.Launch.TokenFile)
	if err != nil {
		return err
	}
	w := worker.For(s, at.place.Rank, token)
	w.Rendezvous, w.RendezvousJob = at.text, at.place.Job
	ctx, kill := at.stopping(ctx)
	err = supervise(ctx, kill, s, w, events)
	var e *cluster.Exited
	switch {
	case kill.Err() != nil:
		return fmt.Errorf("rank %d: %w", w.Rank, context.Cause(kill))
	case !errors.As(err, &e):
		return err
	case e.Code == worker.Interrupted:
		return report.ErrInterrupted
	case e.Code == worker.Mistake:
		return spec.Mistake(fmt.Sprintf("rank %d", w.Rank), graph.Sentence(e.Error()), "", "")
	}
	return fmt.Errorf("rank %d: %w", w.Rank, err)
}

// stopping are the contexts that end when the worker of a task is asked to stop, and when it is killed. Kubernetes ends
// one pod to move it, by the signal that ends a job elsewhere: its worker leaves as one that is lost, so that the others
// wait for the pod that takes its place. The pod of rank 0 has the state, and stops all.
func (at *Rendezvous) stopping(ctx context.Context) (ask, kill context.Context) {
	ask = context.WithoutCancel(ctx)
	if at.place.Launcher != cluster.Kubernetes {
		return ctx, ask
	}
	kill, leave := context.WithCancelCause(ask)
	context.AfterFunc(ctx, func() { leave(cluster.ErrLeaves) })
	return ask, kill
}

// supervise runs a worker of this task in a process of its own, which can be killed and
// restarted; but MPI knows only the process that mpirun has started.
func supervise(ctx, kill context.Context, s *spec.Spec, w *worker.Spec, events event.Listener) error {
	if s.Cluster.Transport == "mpi" {
		ctx, cancel := worker.StopWith(ctx, kill.Done())
		defer cancel()
		return worker.Run(ctx, *w, event.Func(func(event.Event) {}))
	}
	times := 0
	if s.Cluster.OnFailure == "restart" {
		times = mostTries
	}
	return cluster.Supervise(ctx, kill, times, w.Command, func(line string) {
		events.On(event.Note{Text: fmt.Sprintf("[rank %d] %s", w.Rank, line)})
	})
}

// mostTries bounds starts without progress: a run that fails at the same epoch again and again
// does not fail by accident.
const mostTries = 3
