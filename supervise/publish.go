package supervise

import (
	"context"
	"fmt"
	"net"
	"os"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/spec"
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
	switch {
	case c.at == nil:
		return fmt.Sprintf("starling worker --join %s --rank R, R from 0 to %d", addr, c.Spec.Cluster.Workers-1)
	case c.at.place == nil:
		return fmt.Sprintf("starling worker --rendezvous %s --rank R, R from 0 to %d", c.at, c.Spec.Cluster.Workers-1)
	}
	return fmt.Sprintf("the tasks of %s, through %s", c.at.place.Launcher, c.at)
}
