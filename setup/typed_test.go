package setup_test

import (
	"context"
	"path/filepath"
	"testing"

	"starling/event"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/spec"
)

// TestTypedGraphsAreBalancedByType: every part has its share of every type, and of the target's training vertices, also
// where nothing is asked for.
func TestTypedGraphsAreBalancedByType(t *testing.T) {
	dir := setuptest.Typed(t)
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out, cut.Verify = 3, filepath.Join(t.TempDir(), "parts"), true
	r, err := setup.Cut(context.Background(), dir, cut, event.All())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"type paper", "type author", "type field", "train"} {
		if x := r.Balance[name]; x < 1 || x > 1.1 {
			t.Errorf("%s: %v of %v", name, x, r.Balance)
		}
	}
	if list := r.Constraints(); len(list) != len(r.Balance) || r.Target != "paper" {
		t.Errorf("%v for %v, target %q", list, r.Balance, r.Target)
	}
	s := setuptest.QuickTyped(cut.Out, "rgcn")
	if p, err := setup.OpenParts(cut.Out, &s); err != nil || p.Meta.Schema == nil || p.Book.Target != "paper" {
		t.Error(p, err)
	}
	for field, change := range map[string]func(*spec.Spec){
		"partition the dataset again with --target author": func(s *spec.Spec) { s.Target = "author" },
		"use --model rgcn, hsage, rgat, hgt or simplehgn":  func(s *spec.Spec) { s.Model.Name = "gcn" },
	} {
		s := setuptest.QuickTyped(cut.Out, "rgcn")
		change(&s)
		if _, err := setup.OpenParts(cut.Out, &s); !setuptest.IsMistake(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	cut.Out, cut.Verify, cut.Balance = "", false, "types:0.3,edges:0.5"
	if r, err := setup.Cut(context.Background(), dir, cut, event.All()); err != nil || r.Balance["type field"] > 1.3 {
		t.Error(r, err)
	}
	for field, change := range map[string]func(*spec.Partition){
		"--target": func(s *spec.Partition) { s.Target = "field" },
		"--model":  func(s *spec.Partition) { s.Model = "sage" },
	} {
		cut := cut
		change(&cut)
		if _, err := setup.Cut(context.Background(), dir, cut, event.All()); !setuptest.IsMistake(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	cut.Model = "rgcn"
	if _, err := setup.Cut(context.Background(), setuptest.Block(t, nil), cut, event.All()); !setuptest.IsMistake(err, "types") {
		t.Error(err)
	}
}
