package setup

import (
	"starling/cluster"
	"starling/graph"
	"starling/spec"
)

// LocalSecret is the secret of this user on this host.
func LocalSecret() ([]byte, error) {
	b, err := cluster.LocalSecret()
	if err != nil {
		return nil, spec.Mistake("--token-file", graph.Sentence("none is given, and "+err.Error()), "a file with a secret",
			"or let every user of this host join with --insecure")
	}
	return b, nil
}
