package run

import (
	"context"
	"net"

	"starling/graph"
	"starling/spec"
	"starling/wire"
	"starling/wire/paths"
)

// severalPaths makes the connections with peers use every path of --paths.
func (w *WorkerSpec) severalPaths(cfg *wire.Config, base net.Listener, from string) error {
	plan, err := planOf(from)
	if err != nil {
		return err
	}
	if exposed := plan.File.Exposed(); len(cfg.Token) == 0 && !cfg.Insecure && exposed != "" {
		return spec.Mistake("--paths", exposed+", which others can reach, without a token", "--tls or a --token-file", "")
	}
	host, err := paths.NewHost(plan, base, wire.Real)
	if err != nil {
		return spec.Mistake("--paths", graph.Sentence(err.Error()), "", "")
	}
	if !cfg.DSCP {
		cfg.Connections = 1 // it has all paths; two would end at different times, and an exchange with the later one
	}
	cfg.Listener = w.id.Listen(host)
	cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := host.Dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return w.id.Client(ctx, conn)
	}
	return nil
}

// planOf is the plan of --paths: of a file, or of what this host has.
func planOf(from string) (*paths.Plan, error) {
	if from != "auto" {
		return ReadPathsFile("--paths", from)
	}
	f, err := paths.Auto()
	if err != nil {
		return nil, spec.Mistake("--paths", graph.Sentence(err.Error()), "a network that this host is in", "")
	}
	return paths.NewPlan(f), nil
}

// checkPaths refuses a file of --paths before workers start.
func checkPaths(s *spec.Spec) error {
	if s.Cluster.Paths == "" {
		return nil
	}
	_, err := planOf(s.Cluster.Paths)
	return err
}
