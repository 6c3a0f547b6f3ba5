package spec

import (
	"math"
	"testing"
)

func TestValidate(t *testing.T) {
	for flag, change := range map[string]func(*Spec){
		"--model":             func(s *Spec) { s.Model.Name = "gnc" },
		"did you mean gcn":    func(s *Spec) { s.Model.Name = "gnc" },
		"--mode":              func(s *Spec) { s.Mode = "mni" },
		"use --mode full":     func(s *Spec) { s.Mode, s.Cluster.Workers, s.Strategy = "mini", 2, "halo" },
		"use --mode mini":     func(s *Spec) { s.Cluster.Workers, s.Strategy = 2, "distdgl" },
		"leave out --workers": func(s *Spec) { s.Task, s.Cluster.Workers = "link", 2 },
		"no strategy":         func(s *Spec) { s.Task, s.Strategy = "link", "halo" },
		"a single task":       func(s *Spec) { s.Task, s.Cluster.Workers, s.Launch.NoLaunch = "link", 2, true },
		"--task":              func(s *Spec) { s.Task, s.Cluster.Workers = "link", 2 },
		"not from pairs": func(s *Spec) {
			s.Task, s.Mode, s.Cluster.Workers, s.Strategy = "link", "mini", 2,
				"naive-hop"
		}, "--negatives-from": func(s *Spec) { s.Task, s.Pairs.NegativesFrom = "link", "local" },
		"--batch-size":    func(s *Spec) { s.Batches.Size = 64 },
		"1 to 1073741824": func(s *Spec) { s.Mode, s.Batches.Size = "mini", 0 },
		"--sampler":       func(s *Spec) { s.Mode, s.Batches.Sampler = "mini", "neighbor" },
		"--fanout":        func(s *Spec) { s.Mode, s.Batches.Fanout = "mini", "15,x,5" },
		"one for each of": func(s *Spec) { s.Mode, s.Batches.Fanout, s.Model.Layers = "mini", "15,10", 3 },
		"whole numbers": func(s *Spec) {
			s.Mode, s.Batches.Sampler, s.Batches.Fanout = "mini", "ladies",
				"all,all,all"
		}, "--replace": func(s *Spec) {
			s.Mode, s.Batches.Sampler,
				s.Batches.Replace = "mini", "cluster", true
		}, "--clusters": func(s *Spec) {
			s.Mode,
				s.Batches.Clusters = "mini", 10
		}, "--walk-length": func(s *Spec) {
			s.Mode,
				s.Batches.WalkLength = "mini", 10
		}, "halo for several": func(s *Spec) {
			s.Cluster.Workers,
				s.Strategy = 4, "none"
		}, "--strategy": func(s *Spec) { s.Strategy = "sancsu" },
		"--staleness": func(s *Spec) {
			s.Cluster.Workers, s.Strategy = 2,
				"sancus:epoch:3"
			set(s, "staleness=adaptive:2")
		},
		"--g3-pipeline": func(s *Spec) {
			s.Cluster.Workers, s.Strategy = 2,
				"g3:inter"
			set(s, "g3_pipeline=intra")
		}, "--layers": func(s *Spec) { s.Model.Layers = 0 },
		"--dropout":           func(s *Spec) { s.Model.Dropout = math.NaN() },
		"--attention-dropout": func(s *Spec) { s.Model.AttentionDropout = 0.5 },
		"--heads":             func(s *Spec) { s.Model.Heads = 2 },
		"--momentum":          func(s *Spec) { s.Optimizer.Momentum = 0.9 },
		"--resume":            func(s *Spec) { s.Checkpoints.Resume = true },
		"--patience":          func(s *Spec) { s.Training.Patience, s.Training.EvalEvery = 3, 0 },
		"--norm":              func(s *Spec) { s.Model.Name, s.Model.Norm = "resgcn+", "none" },
		"--hidden":            func(s *Spec) { s.Model.Name, s.Model.Hidden, s.Model.Heads = "gat", 30, 4 },
		"--schedule":          func(s *Spec) { s.Optimizer.Schedule = "steps" },
		"--trace":             func(s *Spec) { s.Output.JSON, s.Output.Trace = "a", "a" },
		"--simd":              func(s *Spec) { s.Machine.SIMD = "neon" },
		"--lr":                func(s *Spec) { s.Optimizer.LR = 0 },
	} {
		s := Default()
		change(&s)
		s.complete(dataset{})
		if err := s.Validate(); !isMistake(err, flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	s := Default()
	if s.complete(dataset{}); s.Validate() != nil || s.Model.Norm != "none" {
		t.Error(s.Validate())
	}
}
