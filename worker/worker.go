package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/watch"
	"starling/wire"
	"starling/wire/mpi"
)

// Run joins a run and trains as one of its workers, again when another worker was lost, or the
// coordinator was restarted. Its events go to the run's coordinator.
func Run(ctx context.Context, w Spec, events event.Listener) error {
	defer setup.LimitGarbage()()
	if err := w.complete(); err != nil {
		return err
	}
	w.tell = func(text string) { events.On(event.Note{Text: text}) }
	for {
		again, err := w.once(ctx, events)
		if again && ctx.Err() != nil { // a worker was lost while all were about to stop
			return report.ErrInterrupted
		}
		if !again {
			if err == nil {
				err = mpi.Close(w.timeout())
			}
			if err == nil && w.stopped && w.startedAgain() {
				err = report.ErrInterrupted
			}
			return err
		}
		events.On(event.Note{Text: fmt.Sprintf("%v; joining again", err)})
	}
}

func (w *Spec) complete() (err error) {
	w.byHand = w.Job == ""
	for addr := range strings.SplitSeq(w.Addr, ",") { // alternatives
		if _, _, err := net.SplitHostPort(addr); err != nil && w.Addr != "" {
			return spec.Mistake("--join", w.Addr, "host:port, as starling train shows it", "")
		}
	}
	if w.Rendezvous == "" {
		return nil
	}
	if w.at, err = cluster.ParseRendezvous(w.Rendezvous, w.RendezvousJob); err != nil {
		return spec.Mistake("--rendezvous", graph.Sentence(err.Error()), "", "")
	}
	w.knows = len(w.Token) > 0
	return nil
}

// startedAgain reports whether the launcher starts the task of this worker again unless it ends well: a run that was
// stopped has not.
func (w *Spec) startedAgain() bool {
	p, err := cluster.Environment(os.Getenv, "auto")
	return err == nil && p != nil && p.Launcher == cluster.Kubernetes && w.Rendezvous != ""
}

// once joins and trains, and reports whether to join again.
func (w *Spec) once(ctx context.Context, events event.Listener) (again bool, err error) {
	m, err := w.findAndJoin(ctx)
	if err != nil {
		return false, err
	}
	events.On(event.Note{Text: fmt.Sprintf("rank %d of %d, in job %s", m.Rank, len(m.Peers), m.Job)})
	body, blob, err := w.work(ctx, m)
	if err != nil {
		m.Fail(err, errors.Is(err, graph.ErrInput))
	} else {
		err = m.Done(body, blob)
	}
	// The coordinator may be restarted, with --resume; then it is another job, which a worker
	// that was started by hand joins too.
	if m.Again() || w.byHand && errors.Is(m.Err(), cluster.ErrLost) {
		w.Rank = m.Rank
		return true, err
	}
	return false, err
}

// work trains and packs the result.
func (w *Spec) work(ctx context.Context, m *cluster.Member) (body, blob []byte, err error) {
	var t Task
	if err := json.Unmarshal(m.Task, &t); err != nil {
		m.Listener.Close()
		return nil, nil, fmt.Errorf("the job's task is invalid: %w", err)
	}
	s, err := w.train(ctx, m, &t)
	if err != nil {
		return nil, nil, err
	}
	w.stopped = s.Reason == "interrupted"
	if t.Spec.Output.Dir != "" {
		if blob, err = s.blob(m.Rank); err != nil {
			return nil, nil, err
		}
	}
	body, err = json.Marshal(s)
	return body, blob, err
}

// train opens the part, connects with the other workers and trains.
func (w *Spec) train(ctx context.Context, m *cluster.Member, t *Task) (*Share, error) {
	part, err := t.OpenPart(m.Rank, w.PartDir)
	if err != nil {
		m.Listener.Close()
		return nil, err
	}
	defer part.Close()
	from, err := resume.UnpackState(t.From, m.Blob, m.Own)
	if err != nil {
		m.Listener.Close()
		return nil, err
	}
	m.Blob, m.Own = nil, nil // they may be large
	refusals := watch.NewRefusals(fmt.Sprintf("[rank %d] ", m.Rank), m)
	defer refusals.Close()
	links := noteLinks(m)
	defer links.close()
	end, err := w.connect(ctx, m, &t.Spec, observer{refusals.RefusedPeer, links.changed})
	if err != nil {
		return nil, err
	}
	ctx, cancel := StopWith(ctx, m.Stopped())
	defer cancel()
	defer leave(ctx, end)
	var metrics *watch.MetricsServer
	if t.Watch, metrics, err = w.watched(m, t, end); err != nil {
		return nil, err
	}
	defer metrics.Close()
	defer failWithJob(m, end)()
	t.here = m.Here()
	keep := resume.SendState(m.Rank, t.Shards, m.Keep)
	share, err := setup.OrShrunk(t.Work(ctx, part, end, t.Spec.Machine.CoresOf(t.here), from, keep, t.forwarded(m)))
	if err == nil && t.Spec.Output.Detailed() {
		m.ReportNow()
	}
	return share, err
}

// failWithJob ends all waits at the first failure of any worker, until stop is called.
func failWithJob(m *cluster.Member, end wire.Endpoint) (stop func()) {
	trained := make(chan struct{})
	go func() {
		select {
		case <-m.Ended():
			end.Fail(m.Err())
		case <-trained:
		}
	}()
	return func() { close(trained) }
}

// forwarded are the events for the coordinator: spans only if there is a timeline.
func (t *Task) forwarded(m *cluster.Member) event.Listener {
	return event.Func(func(e event.Event) {
		if _, span := e.(event.Span); !span || t.Spec.Output.Trace != "" {
			m.On(e)
		}
	})
}

// StopWith is ctx, ended also by stop.
func StopWith(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// watched makes a worker report to the run, and serve its own metrics if that is asked for.
func (w *Spec) watched(m *cluster.Member, t *Task, end wire.Endpoint) (
	*watch.Reporter, *watch.MetricsServer, error) {
	r := watch.NewReporter(m.Rank, end)
	if t.Spec.Output.Detailed() {
		r.Detailed()
	}
	m.Report(r.Report)
	if t.Spec.Output.MetricsListen == "" {
		return r, nil, nil
	}
	addr, err := watch.WorkerAddr(t.Spec.Output.MetricsListen, m.Rank, m.Peers[m.Rank].Addr)
	if err != nil {
		return nil, nil, err
	}
	s, err := watch.ServeWorker(addr, w.id, w.Insecure || t.Spec.Launch.Insecure, r)
	if err == nil {
		r.Listens(s.Addr)
	}
	return r, s, err
}
