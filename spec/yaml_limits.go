package spec

import (
	"starling/graph"
	"starling/internal/yamltext"
)

// checkLimits refuses text that is too much for a spec, before the YAML decoder sees it.
func checkLimits(b []byte) error {
	found, want := yamltext.Excess(b)
	if found == "" {
		return nil
	}
	return &graph.InputError{Found: found, Want: want,
		Fix: "give settings as starling train DIR --dry-run prints them, one per line"}
}
