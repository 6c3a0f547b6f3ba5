package run

import (
	"os"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/run/watch"
	"starling/spec"
	"starling/wire"
)

// watchToken is the secret that watchers must know: the one that was given, else that of this
// user on this host. With certificates a certificate is enough.
func (c *clusterRun) watchToken() []byte {
	s := &c.spec
	switch {
	case s.Launch.TokenFile != "" || os.Getenv(spec.TokenVariable) != "":
		return c.token
	case s.Launch.TLS != "" || s.Launch.Insecure:
		return nil
	case cluster.Exposed(s.Launch.Listen):
		return c.token
	}
	if secret, err := cluster.LocalSecret(); err == nil {
		return secret
	}
	return c.token // which no watcher knows
}

// serveMetrics serves the metrics of the run, if that is asked for.
func (c *clusterRun) serveMetrics() (*watch.MetricsServer, error) {
	if c.spec.Output.MetricsListen == "" {
		return nil, nil
	}
	return watch.ServeRun(c.spec.Output.MetricsListen, c.id, c.spec.Launch.Insecure, c.watch.Snapshot)
}

// watched makes a worker report to the run, and serve its own metrics if that is asked for.
func (w *WorkerSpec) watched(m *cluster.Member, t *task, end wire.Endpoint) (
	*watch.Reporter, *watch.MetricsServer, error) {
	r := watch.NewReporter(m.Rank, end)
	m.Report(r.Status)
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

// watched lets starling top watch a run of one worker, and serves its metrics if that is asked for, until stop is
// called.
func (p *prepared) watched(events event.Listener) (all event.Listener, stop func(), err error) {
	s := &p.spec
	w, r := watch.New(1, events, time.Now), watch.NewReporter(0, nil)
	end := func() {}
	if s.Output.MetricsListen != "" {
		server, err := serveMetrics(s, w)
		if err != nil {
			return nil, nil, err
		}
		end = server.Close
	}
	hide, stopPolling := watch.ServeLocal(w.Snapshot), w.Poll([]*watch.Reporter{r})
	return event.All(r, w, events), func() {
		stopPolling()
		hide()
		end()
	}, nil
}

// serveMetrics serves those of a run of one worker.
func serveMetrics(s *spec.Spec, w *watch.Watcher) (*watch.MetricsServer, error) {
	id, err := spec.Load("--tls", s.Launch.TLS, cluster.LoadIdentity)
	if err != nil {
		return nil, err
	}
	return watch.ServeRun(s.Output.MetricsListen, id, s.Launch.Insecure, w.Snapshot)
}
