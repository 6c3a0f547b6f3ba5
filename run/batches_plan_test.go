package run

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/train"
)

// What workers send for mini-batches lies within the error that the plan states, for every
// strategy; three times the deviation, as compare has it.
func TestMiniPlanStatesItsError(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 2000, 20_000, 32 })
	list := []string{"distdgl roots=random", "distdgl roots=local", "distdgl cache=s3fifo cache_budget=50KiB",
		"distdgl cache=degree cache_budget=50KiB", "distdgl pull_dtype=bf16", "hopgnn merge=1"}
	for _, d := range train.Strategies() {
		if d.Mode == train.MiniBatch {
			list = append(list, d.Name)
		}
	}
	for _, name := range list {
		s := miniSpec(dir, "neighbour")
		s.Model.Norm, s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Training.Epochs,
			s.Training.EvalEvery = "none", 3, 3, true, 2, 0
		s.Batches.Fanout, s.Seed = "4,4", 1
		words := strings.Fields(name)
		s.Strategy = words[0]
		for _, option := range words[1:] {
			key, value, _ := strings.Cut(option, "=")
			if err := s.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
		b := trained(t, s, nil).Bytes
		apart := float64(b.Total-b.Planned) / float64(b.Planned)
		what := fmt.Sprintf("%s, seed %d: %d bytes sent, %d planned, give or take %.1f%%", name, s.Seed, b.Total,
			b.Planned, 100*b.Deviation)
		switch {
		case b.Deviation > 0.2 || b.Deviation == 0 && apart != 0:
			t.Error(what, "- that says nothing")
		case b.AtMost && apart > 3*b.Deviation, !b.AtMost && math.Abs(apart) > 3*b.Deviation:
			t.Error(what)
		default:
			t.Log(what)
		}
	}
}
