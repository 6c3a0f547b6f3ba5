package run

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/spec"
)

// rendezvous is where workers find a run that did not start them.
type rendezvous struct {
	cluster.Rendezvous
	text  string // of --rendezvous
	place *Place // nil: workers are started by hand
}

// newRendezvous chooses where tasks find each other. All of them must choose the same place,
// from nothing but the spec and the environment.
func newRendezvous(s *spec.Spec, p *Place) (*rendezvous, error) {
	text, err := rendezvousText(s, p)
	if err != nil {
		return nil, err
	}
	job := ""
	if p != nil {
		job = p.Job
	}
	at, err := cluster.ParseRendezvous(text, job)
	if err != nil {
		return nil, spec.Mistake("--rendezvous", graph.Sentence(err.Error()), "", "")
	}
	m := &rendezvous{at, text, p}
	if s.Launch.Listen == "" {
		s.Launch.Listen = m.listen()
	}
	return m, nil
}

// rendezvousText is --rendezvous, or what follows from the launcher.
func rendezvousText(s *spec.Spec, p *Place) (string, error) {
	secured := s.Launch.TokenFile != "" || os.Getenv(spec.TokenVariable) != "" || s.Launch.TLS != "" ||
		s.Launch.Insecure
	switch {
	case s.Launch.Rendezvous != "":
		return s.Launch.Rendezvous, nil
	case p.OneHost && p.Job != "":
		dir, err := cluster.PrivateFolder()
		return "file:" + dir, err
	case p.Master != "" && secured:
		return "tcp:" + p.Master, nil
	case p.Launcher == "kubernetes":
		return "", spec.Mistake("--rendezvous", "none", "tasks that can find each other: "+cluster.MasterVariable+
			" set to the first one's host:port and a secret as "+spec.TokenVariable,
			"see docs/launchers.md, or deploy/kubernetes.yaml")
	}
	return "file:.", nil // no secret: a folder can hold one
}

// listen is the coordinator's address: on loopback if all are on one host.
func (at *rendezvous) listen() string {
	addr, known := strings.CutPrefix(at.String(), "tcp:")
	switch {
	case known && cluster.Loopback(addr):
		return addr
	case known: // a host's name may stand for an address that others cannot reach
		_, port, _ := net.SplitHostPort(addr)
		return ":" + port
	case at.place != nil && at.place.OneHost:
		return "127.0.0.1:0"
	}
	return ":0"
}

// completeRendezvous completes a run whose workers are started elsewhere.
func (c *clusterRun) completeRendezvous() (err error) {
	s := &c.spec
	switch {
	case s.Launch.Hosts != "":
		c.slots, err = hostSlots(s)
	case c.at == nil && s.Launch.Rendezvous != "" && s.Launch.NoLaunch:
		c.at, err = newRendezvous(s, nil)
	}
	return err
}

// publish publishes the address of the run at the rendezvous, and starts the worker of this
// task.
func (c *clusterRun) publish(ctx context.Context, addr, job string, events event.Listener) (end func(), err error) {
	if c.at == nil {
		return func() {}, nil
	}
	if addr, err = c.reachable(addr); err != nil {
		return nil, err
	}
	e := cluster.Entry{Addr: addr, Job: job}
	if c.at.Secret() && c.spec.Launch.TokenFile == "" && os.Getenv(spec.TokenVariable) == "" {
		e.Token = string(c.token)
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
	w := workerFor(&c.spec, 0, c.token)
	w.Addr, w.Job = addr, job
	leave := startOwnWorker(ctx, &c.spec, w, events)
	return func() {
		leave()
		withdraw()
	}, nil
}

// reachable is the address for other hosts of a listener on all addresses of this one.
func (c *clusterRun) reachable(addr string) (string, error) {
	host, _, err := net.SplitHostPort(c.spec.Launch.Listen)
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
func (c *clusterRun) howToJoin(addr string) string {
	switch {
	case c.at == nil:
		return fmt.Sprintf("starling worker --join %s --rank R, R from 0 to %d", addr, c.spec.Cluster.Workers-1)
	case c.at.place == nil:
		return fmt.Sprintf("starling worker --rendezvous %s --rank R, R from 0 to %d", c.at, c.spec.Cluster.Workers-1)
	}
	return fmt.Sprintf("the tasks of %s, through %s", c.at.place.Launcher, c.at)
}
