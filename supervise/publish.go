package supervise

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/watch"
	"starling/worker"
)

// publish publishes the address of the run at the rendezvous, and starts the worker of this
// task.
func (c *Run) publish(ctx context.Context, addr, job string, events event.Listener) (end func(), err error) {
	if c.at == nil {
		return func() {}, nil
	}
	if addr, err = c.reachable(addr); err != nil {
		return nil, err
	}
	e := cluster.Entry{Addr: addr, Job: job}
	if c.at.Secret() && c.Spec.Launch.TokenFile == "" && os.Getenv(spec.TokenVariable) == "" {
		e.Token = string(c.Token)
	}
	withdraw, err := c.at.Publish(ctx, e, func(err error) {
		events.On(event.Note{Text: "warning: rendezvous: " + err.Error()})
	})
	if err != nil {
		return nil, spec.Mistake("--rendezvous", graph.Sentence(err.Error()), "", "")
	}
	if c.at.place == nil {
		return withdraw, nil
	}
	w := worker.For(&c.Spec, 0, c.Token)
	w.Addr, w.Job = addr, job
	leave := startOwnWorker(ctx, &c.Spec, w, events)
	return func() {
		leave()
		withdraw()
	}, nil
}

// reachable is the address for other hosts of a listener on all addresses of this one.
func (c *Run) reachable(addr string) (string, error) {
	host, _, err := net.SplitHostPort(c.Spec.Launch.Listen)
	if err != nil || host != "" && !net.ParseIP(host).IsUnspecified() {
		return addr, nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	return cluster.Reach(port), nil
}

// howToJoin tells users how to start the workers.
func (c *Run) howToJoin(addr string) string {
	where := "--join " + addr
	switch {
	case c.at != nil && c.at.place != nil:
		return fmt.Sprintf("the tasks of %s, through %s", c.at.place.Launcher, c.at)
	case c.at != nil:
		where = fmt.Sprintf("--rendezvous %s", c.at)
	}
	which := "0"
	if last := c.Spec.Cluster.Workers - 1; last > 0 {
		which = fmt.Sprintf("R, R from 0 to %d", last)
	}
	l := &c.Spec.Launch
	return fmt.Sprintf("starling worker %s%s --rank %s", where, cluster.ProofFlags(l.TokenFile, l.TLS, l.Insecure), which)
}

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
