// Package setuptest is for tests only: a small dataset and a spec that trains on it quickly.
package setuptest

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/graph"
	"starling/spec"
)

// Block writes a small block model and returns its folder.
func Block(t *testing.T, change func(*generate.Params)) string {
	t.Helper()
	p := generate.DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes = 300, 2400, 12, 4
	if change != nil {
		change(&p)
	}
	dir := filepath.Join(t.TempDir(), "block")
	if _, err := generate.Dataset("sbm", p, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Typed writes a small typed graph of papers, which have features and classes, authors and fields, and returns its
// folder.
func Typed(t *testing.T) string {
	t.Helper()
	p, err := generate.LikeTyped("small", 0.1)
	if err != nil {
		t.Fatal(err)
	}
	p.Features = 16
	dir := filepath.Join(t.TempDir(), "typed")
	if _, err := generate.Dataset("typed", p, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// QuickTyped is Quick for a typed graph.
func QuickTyped(dir, model string) spec.Spec {
	s := Quick(dir)
	s.Model.Name = model
	return s
}

// Quick is a spec small enough for tests.
func Quick(dir string) spec.Spec {
	s := spec.Default()
	s.Dataset, s.Model.Layers, s.Model.Hidden, s.Training.Epochs = dir, 2, 16, 12
	return s
}

// IsMistake reports whether an error is a user's mistake that names a field.
func IsMistake(err error, field string) bool {
	return errors.Is(err, graph.ErrInput) && strings.Contains(err.Error(), field)
}
