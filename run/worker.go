package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/wire"
)

// WorkerSpec is what starling worker can be told.
type WorkerSpec struct {
	Join, Listen, Job string
	// Rendezvous is where to learn of the run instead of Join, with the launcher's
	// RendezvousJob.
	Rendezvous, RendezvousJob string
	Rank                      int
	PartDir                   string
	Token                     []byte
	TLS                       string
	Insecure                  bool
	Timeout                   int // seconds
	Heartbeat                 int // seconds

	id     *cluster.Identity
	at     cluster.Rendezvous
	knows  bool // it was given a token
	before bool // it was in a job already, and comes again
	byHand bool // nobody starts it again
}

// Worker joins a run and trains as one of its workers, again when another worker was
// lost, or the coordinator comes back. What it shows goes to the run's coordinator.
func Worker(ctx context.Context, w WorkerSpec, events event.Listener) error {
	defer tidyHeap()()
	w.byHand = w.Job == ""
	for addr := range strings.SplitSeq(w.Join, ",") { // any of them will do
		if _, _, err := net.SplitHostPort(addr); err != nil && w.Join != "" {
			return mistake("--join", w.Join, "host:port, as starling train shows it", "")
		}
	}
	if w.Rendezvous != "" {
		var err error
		if w.at, err = cluster.ParseRendezvous(w.Rendezvous, w.RendezvousJob); err != nil {
			return mistake("--rendezvous", err.Error(), "", "")
		}
		w.knows = len(w.Token) > 0
	}
	for {
		again, err := w.once(ctx, events)
		if again && ctx.Err() != nil { // it was lost, or lost others, while all were about to stop
			return ErrInterrupted
		}
		if !again {
			if err == nil {
				err = wire.CloseMPI(time.Duration(w.Timeout) * time.Second)
			}
			return err
		}
		w.before = true
		events.On(event.Note{Text: fmt.Sprintf("%v; joining again", err)})
	}
}

// once joins, and tells whether to do so again.
func (w *WorkerSpec) once(ctx context.Context, events event.Listener) (again bool, err error) {
	m, err := w.meet(ctx)
	if err != nil {
		return false, err
	}
	events.On(event.Note{Text: fmt.Sprintf("rank %d of %d, in job %s", m.Rank, len(m.Peers), m.Job)})
	body, blob, err := w.serve(ctx, m)
	if err != nil {
		m.Fail(err, errors.Is(err, graph.ErrInput))
	} else {
		err = m.Done(body, blob)
	}
	// The coordinator may itself be started again, with --resume; then it is another job,
	// which a worker that was started by hand joins too.
	if m.Again() || w.byHand && errors.Is(m.Err(), cluster.ErrLost) {
		w.Rank = m.Rank
		return true, err
	}
	return false, err
}

// meet finds the run and joins it. What is found may be of a run that is no more, or
// of another: then the next that is found there is tried.
func (w *WorkerSpec) meet(ctx context.Context) (*cluster.Member, error) {
	if w.at == nil {
		return w.join(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, time.Duration(w.Timeout)*time.Second)
	defer cancel()
	var last error
	for found := (cluster.Entry{}); ; {
		next, err := w.at.Find(patience, found)
		switch {
		case ctx.Err() != nil:
			return nil, ErrInterrupted
		case last != nil && err != nil:
			return nil, last
		case err != nil:
			return nil, mistake("--rendezvous", err.Error(), "", "")
		}
		m, err := w.joinUntilAnother(ctx, next)
		mistaken := errors.Is(err, graph.ErrInput) && w.RendezvousJob != "" // it was the right job
		if err == nil || mistaken || ctx.Err() != nil {
			return m, err
		}
		found, last = next, err
	}
}

// joinUntilAnother joins the run of an entry, until another takes its place.
func (w *WorkerSpec) joinUntilAnother(ctx context.Context, e cluster.Entry) (*cluster.Member, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if _, err := w.at.Find(ctx, e); err == nil {
			cancel()
		}
	}()
	one := *w
	one.Join, one.Job = e.Addr, e.Job
	if !w.knows {
		one.Token = []byte(e.Token)
	}
	m, err := one.join(ctx)
	if err == nil { // what the run's other connections need
		w.id, w.Join, w.Token = one.id, one.Join, one.Token
	}
	return m, err
}

// join meets the other workers.
func (w *WorkerSpec) join(ctx context.Context) (*cluster.Member, error) {
	if w.Join == "" {
		return nil, mistake("--join", "nothing", "the address that starling train shows", "")
	}
	var err error
	if w.id, err = identity(w.TLS); err != nil {
		return nil, err
	}
	if len(w.Token) == 0 && w.id == nil && !w.Insecure && (!cluster.Loopback(w.Join) || w.Listen != "" && !cluster.Loopback(w.Listen)) {
		return nil, mistake("--join", w.Join+", beyond 127.0.0.1", "--tls or a --token-file", "or trust whoever answers with --insecure")
	}
	m, err := w.comeIn(ctx, cluster.Invitation{Coordinator: w.Join, Rank: w.Rank, Job: w.Job, Version: Version(), Listen: w.Listen, Token: w.Token,
		Identity: w.id, Insecure: w.Insecure, Timeout: time.Duration(w.Timeout) * time.Second, Silence: time.Duration(w.Heartbeat) * time.Second})
	var refused *cluster.Refused
	switch {
	case errors.As(err, &refused):
		return nil, mistake("--join", refused.Error(), "", "")
	case err != nil && ctx.Err() != nil:
		return nil, ErrInterrupted
	}
	return m, err
}

// comeIn joins, again while that may help.
func (w *WorkerSpec) comeIn(ctx context.Context, in cluster.Invitation) (*cluster.Member, error) {
	for start := time.Now(); ; {
		m, err := cluster.Join(ctx, in)
		if err == nil || time.Since(start) > w.patience(err, in) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// patience is how long to try again after an error. While the worker's place is taken,
// the end of the one before it may not have been noticed yet. A job that hangs up is
// between two starts, or its coordinator dies and may be started again.
func (w *WorkerSpec) patience(err error, in cluster.Invitation) time.Duration {
	var refused *cluster.Refused
	lost := errors.Is(err, cluster.ErrLost)
	hungUp := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case errors.Is(err, cluster.ErrAgain), lost && w.byHand, hungUp && w.before && w.byHand:
		return in.Timeout
	case errors.As(err, &refused) && refused.Taken(), lost, hungUp && (in.Job != "" || w.before):
		return 2 * in.Silence
	case hungUp: // or it is no coordinator at all
		return in.Silence
	}
	return -1
}

// serve trains and packs what came of it.
func (w *WorkerSpec) serve(ctx context.Context, m *cluster.Member) (body, blob []byte, err error) {
	var t task
	if err := json.Unmarshal(m.Task, &t); err != nil {
		m.Listener.Close()
		return nil, nil, fmt.Errorf("the job makes no sense: %w", err)
	}
	s, err := w.train(ctx, m, &t)
	if err != nil {
		return nil, nil, err
	}
	if m.Rank == 0 && t.Spec.Out != "" {
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
	strangers := newRefusals(fmt.Sprintf("[rank %d] ", m.Rank), m)
	defer strangers.close()
	end, err := w.connect(ctx, m, t, strangers.atDoor)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	var show *metricsServer
	if t.watch, show, err = w.watched(m, t, end); err != nil {
		return nil, err
	}
	defer show.close()
	// The first failure anywhere ends the wait for anybody.
	trained := make(chan struct{})
	defer close(trained)
	go func() {
		select {
		case <-m.Ended():
			end.Fail(m.Err())
		case <-trained:
		}
	}()
	ctx, cancel := stopWith(ctx, m.Stopped())
	defer cancel()
	return t.work(ctx, part, end, t.Spec.threadsOf(m.Here()), from, keepWith(m.Rank, m.Keep), t.told(m))
}

// connect joins the wire of the job. refused, if set, is told of strangers.
func (w *WorkerSpec) connect(ctx context.Context, m *cluster.Member, t *task, refused func(net.Addr, error)) (wire.Endpoint, error) {
	if t.Spec.Transport != "mpi" { // which was not measured so
		keepToShare(m, t.Spec.threadsOf(m.Here()))
	}
	opt := wire.DefaultOptions()
	opt.Timeout = t.Spec.timeout()
	cfg := wire.Config{Options: opt, Rank: m.Rank, Size: len(m.Peers), Job: m.Job, Listener: w.id.Listen(m.Listener), Dial: w.id.Dial, Token: w.Token, Insecure: w.Insecure || w.id != nil,
		NoSharedMemory: t.Spec.Transport == "tcp", Refused: refused}
	for _, p := range m.Peers {
		cfg.Addrs, cfg.HostIDs, cfg.ServerOf = append(cfg.Addrs, p.Addr), append(cfg.HostIDs, p.Host), append(cfg.ServerOf, p.Server)
		if t.Spec.Transport == "shm" && p.Host != m.Peers[m.Rank].Host {
			m.Listener.Close()
			return nil, mistake("--transport", fmt.Sprintf("shm, with rank %d on %s and rank %d on %s", m.Rank, m.Peers[m.Rank].Name, p.Rank, p.Name), "workers that share a host", "use --transport auto")
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	joined := make(chan struct{})
	defer close(joined)
	go func() {
		select {
		case <-m.Ended():
			cancel(m.Err())
		case <-joined:
		}
	}()
	if t.Spec.Transport == "mpi" {
		return wire.JoinMPI(ctx, cfg)
	}
	return wire.Join(ctx, cfg)
}

// told sends the coordinator what it wants to hear: spans only for a timeline.
func (t *task) told(m *cluster.Member) event.Listener {
	return event.Func(func(e event.Event) {
		if _, span := e.(event.Span); !span || t.Spec.Trace != "" {
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
