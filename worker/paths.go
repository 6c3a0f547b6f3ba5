package worker

import (
	"errors"
	"net"

	"starling/graph"
	"starling/internal/yamltext"
	"starling/spec"
	"starling/wire"
	"starling/wire/paths"
)

// severalPaths makes the connections with peers use every path of --paths. changed, if set, is notified of those that
// are lost, and come back.
func (w *Spec) severalPaths(cfg *wire.Config, base net.Listener, from string, changed func(paths.Change)) error {
	plan, err := PlanPaths(from)
	if err != nil {
		return err
	}
	if exposed := plan.File.Exposed(); len(cfg.Token) == 0 && !cfg.Insecure && exposed != "" {
		return spec.Mistake("--paths", exposed+", which others can reach, without a token", "--tls or a --token-file", "")
	}
	access := paths.Access{Token: cfg.Token, Refused: cfg.Refused}
	if w.id != nil {
		access.Listen, access.Client = w.id.Listen, w.id.Client
	}
	host, err := paths.NewHost(plan, base, access, wire.Real)
	if err != nil {
		return spec.Mistake("--paths", graph.Sentence(err.Error()), "", "")
	}
	if changed != nil {
		host.OnChange(changed)
	}
	if !cfg.DSCP {
		cfg.Connections = 1 // it has all paths; two would end at different times, and an exchange with the later one
	}
	cfg.Listener, cfg.Dial = host, host.Dial
	return nil
}

// PlanPaths is the plan of --paths: of a file, or of what this host has.
func PlanPaths(from string) (*paths.Plan, error) {
	if from != "auto" {
		return ReadPathsFile("--paths", from)
	}
	f, err := paths.Auto()
	if err != nil {
		return nil, spec.Mistake("--paths", graph.Sentence(err.Error()), "a network that this host is in", "")
	}
	return paths.NewPlan(f), nil
}

// CheckPaths refuses a file of --paths before workers start.
func CheckPaths(s *spec.Spec) error {
	if s.Cluster.Paths == "" {
		return nil
	}
	_, err := PlanPaths(s.Cluster.Paths)
	return err
}

// ReadPathsFile reads a description of paths that a flag names.
func ReadPathsFile(flag, path string) (*paths.Plan, error) {
	text, err := spec.ReadFile(flag, path, yamltext.MaxBytes+1, "a description of paths",
		"starling paths probe writes one")
	if err != nil {
		return nil, err
	}
	f, err := paths.Parse(text)
	if err != nil {
		return nil, PathsMistake(path, err)
	}
	return paths.NewPlan(f), nil
}

// PathsMistake makes an error in a file a mistake of the user.
func PathsMistake(path string, err error) error {
	var e *paths.Error
	if !errors.As(err, &e) {
		return err
	}
	return &graph.InputError{File: path, Field: e.Place(), Found: e.Found, Want: e.Want, Fix: e.Fix}
}
