package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/run/watch"
	"starling/spec"
	"starling/wire"
)

// WorkerSpec is everything a user can say to starling worker.
type WorkerSpec struct {
	Addr, Listen, Job string // of --join, --listen and --job
	// Rendezvous is where to find the run instead of Addr, with the launcher's RendezvousJob.
	Rendezvous, RendezvousJob string
	Rank                      int
	PartDir                   string
	Token                     []byte
	TLS                       string
	Insecure                  bool
	Timeout                   int // seconds
	Heartbeat                 int // seconds
	// Paths is that of a benchmark's worker; a run's are in its spec.
	Paths string

	id     *cluster.Identity
	at     cluster.Rendezvous
	knows  bool // it was given a token
	byHand bool // it is not restarted by the run
}

// workerFor is a worker of this run; how it joins is not set yet.
func workerFor(s *spec.Spec, rank int, token []byte) *WorkerSpec {
	return &WorkerSpec{Rank: rank, Token: token, TLS: s.Launch.TLS, Insecure: s.Launch.Insecure,
		Timeout: s.Cluster.Timeout, Heartbeat: s.Cluster.Heartbeat}
}

// command runs the worker on this host.
func (w *WorkerSpec) command() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, w.args()...)
	cmd.Env = append(os.Environ(), spec.TokenVariable+"="+string(w.Token))
	return cmd, nil
}

// args are w on a command line, without the token, which must stay secret.
func (w *WorkerSpec) args() []string {
	args := []string{"worker", "--rank", fmt.Sprint(w.Rank), "--timeout", fmt.Sprint(w.Timeout),
		"--heartbeat", fmt.Sprint(w.Heartbeat), "--quiet"}
	for _, f := range []struct{ flag, value string }{
		{"--join", w.Addr}, {"--job", w.Job}, {"--rendezvous", w.Rendezvous}, {"--rendezvous-job", w.RendezvousJob},
		{"--part-dir", w.PartDir}, {"--tls", w.TLS},
	} {
		if f.value != "" {
			args = append(args, f.flag, f.value)
		}
	}
	if w.Insecure {
		args = append(args, "--insecure")
	}
	return args
}

// Work joins a run and trains as one of its workers, again when another worker was lost, or the
// coordinator was restarted. Its events go to the run's coordinator.
func Work(ctx context.Context, w WorkerSpec, events event.Listener) error {
	defer limitGarbage()()
	if err := w.complete(); err != nil {
		return err
	}
	for {
		again, err := w.once(ctx, events)
		if again && ctx.Err() != nil { // a worker was lost while all were about to stop
			return report.ErrInterrupted
		}
		if !again {
			if err == nil {
				err = wire.CloseMPI(w.timeout())
			}
			return err
		}
		events.On(event.Note{Text: fmt.Sprintf("%v; joining again", err)})
	}
}

func (w *WorkerSpec) complete() (err error) {
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

func (w *WorkerSpec) timeout() time.Duration { return time.Duration(w.Timeout) * time.Second }

// once joins and trains, and reports whether to join again.
func (w *WorkerSpec) once(ctx context.Context, events event.Listener) (again bool, err error) {
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
func (w *WorkerSpec) work(ctx context.Context, m *cluster.Member) (body, blob []byte, err error) {
	var t task
	if err := json.Unmarshal(m.Task, &t); err != nil {
		m.Listener.Close()
		return nil, nil, fmt.Errorf("the job's task is invalid: %w", err)
	}
	s, err := w.train(ctx, m, &t)
	if err != nil {
		return nil, nil, err
	}
	if m.Rank == 0 && t.Spec.Output.Dir != "" {
		best, err := packTensors(s.best, nil)
		if err != nil {
			return nil, nil, err
		}
		if blob, err = best.Bytes(); err != nil {
			return nil, nil, err
		}
	}
	body, err = json.Marshal(s)
	return body, blob, err
}

// train opens the part, connects with the other workers and trains.
func (w *WorkerSpec) train(ctx context.Context, m *cluster.Member, t *task) (*share, error) {
	part, err := t.openPart(m.Rank, w.PartDir)
	if err != nil {
		m.Listener.Close()
		return nil, err
	}
	defer part.Close()
	from, err := unpackState(t.From, m.Blob, m.Own)
	if err != nil {
		m.Listener.Close()
		return nil, err
	}
	m.Blob, m.Own = nil, nil // they may be large
	refusals := watch.NewRefusals(fmt.Sprintf("[rank %d] ", m.Rank), m)
	defer refusals.Close()
	end, err := w.connect(ctx, m, &t.Spec, refusals.RefusedPeer)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	var metrics *watch.MetricsServer
	if t.watch, metrics, err = w.watched(m, t, end); err != nil {
		return nil, err
	}
	defer metrics.Close()
	defer failWithJob(m, end)()
	ctx, cancel := stopWith(ctx, m.Stopped())
	defer cancel()
	t.here = m.Here()
	return orShrunk(t.work(ctx, part, end, t.Spec.Machine.CoresOf(t.here), from, sendState(m.Rank, m.Keep),
		t.forwarded(m)))(m)
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
func (t *task) forwarded(m *cluster.Member) event.Listener {
	return event.Func(func(e event.Event) {
		if _, span := e.(event.Span); !span || t.Spec.Output.Trace != "" {
			m.On(e)
		}
	})
}

// stopWith is ctx, ended also by stop.
func stopWith(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
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
