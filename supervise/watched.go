package supervise

import (
	"os"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/spec"
	"starling/watch"
)

// watchToken is the secret that watchers must know: the one that was given, else the secret of
// this user on this host. With certificates a certificate is enough.
func (c *Run) watchToken() []byte {
	s := &c.Spec
	switch {
	case s.Launch.TokenFile != "" || os.Getenv(spec.TokenVariable) != "":
		return c.Token
	case s.Launch.TLS != "" || s.Launch.Insecure:
		return nil
	case cluster.Exposed(s.Launch.Listen):
		return c.Token
	}
	if secret, err := cluster.LocalSecret(); err == nil {
		return secret
	}
	return c.Token // which no watcher knows
}

// Watched lets starling top watch the run, and serves its metrics if that is asked for, until stop is called.
func (c *Run) Watched(events event.Listener) (all event.Listener, stop func(), err error) {
	c.watch = watch.New(c.Spec.Cluster.Workers, events, time.Now)
	all = event.All(c.watch, &c.chosen, events)
	if c.Spec.Output.MetricsListen == "" {
		return all, func() {}, nil
	}
	metrics, err := watch.ServeRun(c.Spec.Output.MetricsListen, c.id, c.Spec.Launch.Insecure, c.watch.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	return all, metrics.Close, nil
}
