package run

import (
	"os"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/spec"
	"starling/watch"
)

// watchToken is the secret that watchers must know: the one that was given, else that of this
// user on this host. With certificates a certificate is enough.
func (c *clusterRun) watchToken() []byte {
	s := &c.spec
	switch {
	case s.TokenFile != "" || os.Getenv(spec.TokenVariable) != "":
		return c.token
	case s.TLS != "" || s.Insecure:
		return nil
	case spec.Exposed(s.Listen):
		return c.token
	}
	if secret, err := cluster.LocalSecret(); err == nil {
		return secret
	}
	return c.token // which no watcher knows
}

// watched lets starling top watch the run, and serves its metrics if that is asked for, until stop is called.
func (c *clusterRun) watched(events event.Listener) (all event.Listener, stop func(), err error) {
	c.watch = watch.New(c.spec.Workers, events, time.Now)
	all = event.All(c.watch, &c.chosen, events)
	if c.spec.MetricsListen == "" {
		return all, func() {}, nil
	}
	metrics, err := watch.ServeRun(c.spec.MetricsListen, c.id, c.spec.Insecure, c.watch.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	return all, metrics.Close, nil
}
