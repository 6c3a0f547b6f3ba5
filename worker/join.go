package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"starling/cluster"
	"starling/coflow"
	"starling/graph"
	"starling/internal/version"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/wire"
	"starling/wire/mpi"
	"starling/wire/paths"
	"starling/wire/tcp"
)

// findAndJoin finds the run and joins it. The entry at the rendezvous may be of a run that has
// ended, or of another: then the next entry is tried.
func (w *Spec) findAndJoin(ctx context.Context) (*cluster.Member, error) {
	if w.at == nil {
		return w.Join(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, w.timeout())
	defer cancel()
	var last error
	for found := (cluster.Entry{}); ; {
		next, err := w.at.Find(patience, found)
		switch {
		case ctx.Err() != nil:
			return nil, report.ErrInterrupted
		case last != nil && err != nil:
			return nil, last
		case err != nil:
			return nil, spec.Mistake("--rendezvous", graph.Sentence(err.Error()), "", "")
		}
		m, err := w.joinUntilAnother(ctx, next)
		refused, no := errors.AsType[*cluster.Refused](err)
		final := (errors.Is(err, graph.ErrInput) || no && refused.Over()) && w.RendezvousJob != "" // it was the right job
		if err == nil || final || ctx.Err() != nil {
			return m, err
		}
		found, last = next, err
	}
}

// joinUntilAnother joins the run of an entry, until another entry replaces it.
func (w *Spec) joinUntilAnother(ctx context.Context, e cluster.Entry) (*cluster.Member, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if _, err := w.at.Find(ctx, e); err == nil {
			cancel()
		}
	}()
	one := *w
	one.Addr, one.Job = e.Addr, e.Job
	if !w.knows {
		one.Token = []byte(e.Token)
	}
	m, err := one.Join(ctx)
	if err == nil { // what the run's other connections need
		w.id, w.Addr, w.Token = one.id, one.Addr, one.Token
	}
	return m, err
}

// Join joins the run at w.Addr.
func (w *Spec) Join(ctx context.Context) (*cluster.Member, error) {
	if w.Addr == "" {
		return nil, spec.Mistake("--join", "nothing", "the address that starling train shows", "")
	}
	var err error
	if w.id, err = spec.Load("--tls", w.TLS, cluster.LoadIdentity); err != nil {
		return nil, err
	}
	if len(w.Token) == 0 && w.id == nil && !w.Insecure {
		if !cluster.Loopback(w.Addr) || w.Listen != "" && !cluster.Loopback(w.Listen) {
			return nil, spec.Mistake("--join", w.Addr+", beyond 127.0.0.1", "--tls or a --token-file",
				"or trust anyone who answers with --insecure")
		}
		if w.Token, err = setup.LocalSecret(); err != nil {
			return nil, err
		}
	}
	m, err := w.joinWithRetries(ctx, cluster.JoinRequest{Coordinator: w.Addr, Rank: w.Rank, Job: w.Job,
		Version: version.Name(),
		Listen:  w.Listen, Token: w.Token, Identity: w.id, Insecure: w.Insecure, Timeout: w.timeout(), Trying: w.tell,
		Silence: time.Duration(w.Heartbeat) * time.Second})
	var refused *cluster.Refused
	switch {
	case errors.As(err, &refused) && refused.Joined() && w.Rank >= 0:
		return nil, spec.Mistake("--rank", graph.Sentence(refused.Error()), "a rank that no other worker has",
			"end the other worker first, or leave --rank out: the coordinator gives this one a free rank")
	case errors.As(err, &refused) && refused.Over(): // which is no mistake of this worker's user
	case errors.As(err, &refused):
		return nil, spec.Mistake("--join", graph.Sentence(refused.Error()), "", "")
	case err != nil && ctx.Err() != nil:
		return nil, report.ErrInterrupted
	}
	return m, err
}

// joinWithRetries joins, again while that may help, less and less often.
func (w *Spec) joinWithRetries(ctx context.Context, in cluster.JoinRequest) (*cluster.Member, error) {
	start := time.Now()
	for tries := 0; ; tries++ {
		m, err := cluster.Join(ctx, in)
		if err == nil || time.Since(start) > w.retryFor(err, in) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause(err, tries)):
		}
	}
}

// pause is the time until the next try: twice as long after each, up to a bound. A rank that is
// taken may stay so; a job that is about to start again, or a listener under a flood of
// connections, is worth trying more often.
func pause(err error, tries int) time.Duration {
	longest := 400 * time.Millisecond
	if r, ok := errors.AsType[*cluster.Refused](err); ok && r.Joined() {
		longest = 2 * time.Second
	}
	return min(100*time.Millisecond<<min(tries, 10), longest)
}

// retryFor is how long to retry after an error. While the worker's rank is taken, the end of
// the worker before it may not have been noticed yet. A job that closes the connection is
// between two starts, or its coordinator dies and may be restarted, or it closes this one among
// a flood of others.
func (w *Spec) retryFor(err error, in cluster.JoinRequest) time.Duration {
	var refused *cluster.Refused
	lost := errors.Is(err, cluster.ErrLost)
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case errors.Is(err, cluster.ErrAgain), lost && w.byHand, closed && !lost:
		return in.Timeout
	case errors.As(err, &refused) && refused.Taken(), lost:
		return 2 * in.Silence
	}
	return -1
}

// Connect connects with the other workers of a job over a transport.
func (w *Spec) Connect(ctx context.Context, m *cluster.Member, transport string, timeout time.Duration) (
	wire.Endpoint, error) {
	s := spec.Spec{Cluster: spec.Cluster{Timeout: int(timeout / time.Second), Transport: transport, Paths: w.Paths}}
	return w.connect(ctx, m, &s, observer{})
}

// observer is called with what happens to a worker's connections. A field may be nil.
type observer struct {
	refused func(net.Addr, error) // an unauthenticated peer
	changed func(paths.Change)    // a path was lost, or is back
}

// connect connects with the other workers of a job.
func (w *Spec) connect(ctx context.Context, m *cluster.Member, s *spec.Spec, o observer) (wire.Endpoint, error) {
	if s.Cluster.Transport != "mpi" { // which was not measured with it
		limitProcessors(m, s.Machine.CoresOf(m.Here()))
	}
	cfg, err := w.wireConfig(m, s, o)
	if err != nil {
		m.Listener.Close()
		return nil, err
	}
	joining, cancel := context.WithCancelCause(ctx)
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
	join := tcp.Join
	if s.Cluster.Transport == "mpi" {
		join = mpi.Join
	}
	return joinUnlessTold(ctx, func() (wire.Endpoint, error) { return join(joining, cfg) })
}

// WireConfig is how a member of a job connects with its peers.
func (w *Spec) WireConfig(m *cluster.Member, s *spec.Spec) (wire.Config, error) {
	return w.wireConfig(m, s, observer{})
}

func (w *Spec) wireConfig(m *cluster.Member, s *spec.Spec, o observer) (wire.Config, error) {
	if w.id == nil {
		var err error
		if w.id, err = spec.Load("--tls", w.TLS, cluster.LoadIdentity); err != nil {
			return wire.Config{}, err
		}
	}
	opt := wire.DefaultOptions()
	opt.Timeout, opt.Order = setup.Timeout(s), coflow.OrderNamed(s.Cluster.SendOrder)
	cfg := wire.Config{Options: opt, Rank: m.Rank, Size: len(m.Peers), Job: m.Job, Listener: w.id.Listen(m.Listener),
		Dial: w.id.Dial, Refused: o.refused, Token: w.Token, Insecure: w.Insecure || w.id != nil,
		NoSharedMemory: s.Cluster.Transport == "tcp", DSCP: s.Cluster.DSCP}
	if s.Cluster.Paths != "" {
		if err := w.severalPaths(&cfg, m.Listener, s.Cluster.Paths, o.changed); err != nil {
			return cfg, err
		}
	}
	me := m.Peers[m.Rank]
	for _, p := range m.Peers {
		cfg.Addrs, cfg.HostIDs = append(cfg.Addrs, p.Addr), append(cfg.HostIDs, p.Host)
		cfg.ServerOf = append(cfg.ServerOf, p.Server)
		if s.Cluster.Transport == "shm" && p.Host != me.Host {
			return cfg, spec.Mistake("--transport",
				fmt.Sprintf("shm, with rank %d on %s and rank %d on %s", m.Rank, me.Name, p.Rank, p.Name),
				"workers that share a host", "use --transport auto")
		}
	}
	return cfg, nil
}
