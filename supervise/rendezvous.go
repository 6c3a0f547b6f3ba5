package supervise

import (
	"net"
	"os"
	"strings"

	"starling/cluster"
	"starling/graph"
	"starling/spec"
)

// Rendezvous is where workers find a run that did not start them.
type Rendezvous struct {
	cluster.Rendezvous
	text  string // of --rendezvous
	place *Place // nil: workers are started by hand
}

// newRendezvous chooses where tasks find each other. All of them must choose the same place,
// from nothing but the spec and the environment.
func newRendezvous(s *spec.Spec, p *Place) (*Rendezvous, error) {
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
	m := &Rendezvous{at, text, p}
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
	case p.Launcher == cluster.Kubernetes:
		return "", spec.Mistake("--rendezvous", "none", "tasks that can find each other: "+cluster.MasterVariable+
			" set to the first one's host:port and a secret as "+spec.TokenVariable,
			"see docs/launchers.md, or deploy/kubernetes.yaml")
	}
	return "file:.", nil // no secret: a folder can hold one
}

// listen is the coordinator's address: on loopback if all are on one host.
func (at *Rendezvous) listen() string {
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

// Place is package cluster's, for the command.
type Place = cluster.Place
