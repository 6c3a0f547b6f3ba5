package spec

import (
	"math"
	"testing"
)

func TestValidate(t *testing.T) {
	for flag, change := range map[string]func(*Spec){
		"--model":             func(s *Spec) { s.Model = "gnc" },
		"did you mean gcn":    func(s *Spec) { s.Model = "gnc" },
		"--mode":              func(s *Spec) { s.Mode = "mni" },
		"use --mode full":     func(s *Spec) { s.Mode, s.Workers, s.Strategy = "mini", 2, "halo" },
		"use --mode mini":     func(s *Spec) { s.Workers, s.Strategy = 2, "distdgl" },
		"leave out --workers": func(s *Spec) { s.Task, s.Workers = "link", 2 },
		"no strategy":         func(s *Spec) { s.Task, s.Strategy = "link", "halo" },
		"a single task":       func(s *Spec) { s.Task, s.Workers, s.NoLaunch = "link", 2, true },
		"--task":              func(s *Spec) { s.Task, s.Workers = "link", 2 },
		"not from pairs":      func(s *Spec) { s.Task, s.Mode, s.Workers, s.Strategy = "link", "mini", 2, "hopgnn" },
		"--negatives-from":    func(s *Spec) { s.Task, s.NegativesFrom = "link", "local" },
		"--batch-size":        func(s *Spec) { s.BatchSize = 64 },
		"1 to 1073741824":     func(s *Spec) { s.Mode, s.BatchSize = "mini", 0 },
		"--sampler":           func(s *Spec) { s.Mode, s.Sampler = "mini", "neighbor" },
		"--fanout":            func(s *Spec) { s.Mode, s.Fanout = "mini", "15,x,5" },
		"one for each of":     func(s *Spec) { s.Mode, s.Fanout, s.Layers = "mini", "15,10", 3 },
		"whole numbers":       func(s *Spec) { s.Mode, s.Sampler, s.Fanout = "mini", "ladies", "all,all,all" },
		"--replace":           func(s *Spec) { s.Mode, s.Sampler, s.Replace = "mini", "cluster", true },
		"--clusters":          func(s *Spec) { s.Mode, s.Clusters = "mini", 10 },
		"--walk-length":       func(s *Spec) { s.Mode, s.WalkLength = "mini", 10 },
		"halo for several":    func(s *Spec) { s.Workers, s.Strategy = 4, "none" },
		"--strategy":          func(s *Spec) { s.Strategy = "sancsu" },
		"--staleness": func(s *Spec) {
			s.Workers, s.Strategy = 2,
				"sancus:epoch:3"
			set(s, "staleness=adaptive:2")
		},
		"--g3-pipeline":       func(s *Spec) { s.Workers, s.Strategy = 2, "g3:inter"; set(s, "g3_pipeline=intra") },
		"--layers":            func(s *Spec) { s.Layers = 0 },
		"--dropout":           func(s *Spec) { s.Dropout = math.NaN() },
		"--attention-dropout": func(s *Spec) { s.AttentionDropout = 0.5 },
		"--heads":             func(s *Spec) { s.Heads = 2 },
		"--momentum":          func(s *Spec) { s.Momentum = 0.9 },
		"--resume":            func(s *Spec) { s.Resume = true },
		"--patience":          func(s *Spec) { s.Patience, s.EvalEvery = 3, 0 },
		"--norm":              func(s *Spec) { s.Model, s.Norm = "resgcn+", "none" },
		"--hidden":            func(s *Spec) { s.Model, s.Hidden, s.Heads = "gat", 30, 4 },
		"--schedule":          func(s *Spec) { s.Schedule = "steps" },
		"--trace":             func(s *Spec) { s.JSON, s.Trace = "a", "a" },
		"--simd":              func(s *Spec) { s.SIMD = "neon" },
		"--lr":                func(s *Spec) { s.LR = 0 },
	} {
		s := Default()
		change(&s)
		s.complete(dataset{})
		if err := s.Validate(); !isMistake(err, flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	s := Default()
	if s.complete(dataset{}); s.Validate() != nil || s.Norm != "none" {
		t.Error(s.Validate())
	}
}
