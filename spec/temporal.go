package spec

import (
	"starling/graph"
	"starling/nn"
)

// checkTemporal refuses --temporal beside what draws batches without times, on one worker too. train/batch refuses what
// depends on the model's layers.
func (s *Spec) checkTemporal() error {
	b := &s.Batches
	if b.Temporal == "none" || s.Mode != "mini" {
		return nil
	}
	flag := "--temporal " + b.Temporal
	switch {
	case nn.IsTyped(s.Model.Name):
		return graph.Apart(flag, "--model "+s.Model.Name, "relations are drawn without times", "leave out --temporal")
	case b.Sampler != "neighbour":
		return graph.Apart(flag, "--sampler "+b.Sampler, "its batches show all seed vertices the same edges",
			"use --sampler neighbour")
	}
	return nil
}
