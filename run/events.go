package run

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/report"
	"starling/spec"
	"starling/watch"
)

// createEvents opens the file of --events, for writing only: a pipe that is also open for
// reading never reports that its reader has gone, and blocks the run when it is full.
func createEvents(ctx context.Context, path string, events event.Listener) (*os.File, error) {
	for waits := false; ; waits = true {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o666)
		if info, e := os.Stat(path); !errors.Is(err, syscall.ENXIO) || e != nil || info.Mode()&os.ModeNamedPipe == 0 {
			return f, err
		}
		if !waits {
			events.On(event.Note{Text: "waiting for a reader of " + path + " (--events)"})
		}
		select {
		case <-ctx.Done():
			return nil, report.ErrInterrupted
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watched lets starling top watch a run of one worker, and serves its metrics if that is asked for, until stop is
// called.
func (p *prepared) watched(events event.Listener) (all event.Listener, stop func(), err error) {
	s := &p.spec
	w, r := watch.New(1, events, time.Now), watch.NewReporter(0, nil)
	if s.Output.Detailed() {
		r.Detailed()
	}
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
