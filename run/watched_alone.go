package run

import (
	"time"

	"starling/cluster"
	"starling/event"
	"starling/spec"
	"starling/watch"
)

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

// serveMetrics serves the metrics of a run of one worker.
func serveMetrics(s *spec.Spec, w *watch.Watcher) (*watch.MetricsServer, error) {
	id, err := spec.Load("--tls", s.Launch.TLS, cluster.LoadIdentity)
	if err != nil {
		return nil, err
	}
	return watch.ServeRun(s.Output.MetricsListen, id, s.Launch.Insecure, w.Snapshot)
}
