package bench

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/spec"
	_ "starling/train/full" // registers the strategies
)

// TestTimeSamples: as many batches are drawn as asked for, with neighbours.
func TestTimeSamples(t *testing.T) {
	p := generate.DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes = 300, 1800, 8, 3
	s := spec.Default()
	s.Dataset = filepath.Join(t.TempDir(), "graph")
	if _, err := generate.Dataset("sbm", p, s.Dataset); err != nil {
		t.Fatal(err)
	}
	s.Batches.Size, s.Model.Layers, s.Batches.Fanout, s.Machine.Threads = 40, 2, "5,5", 2
	b, err := TimeSamples(context.Background(), s, 10)
	if err != nil || b.Batches != 10 || !(b.BatchesPerSecond > 0) || b.EdgesPerBatch < 40 || b.VerticesPerBatch < 40 {
		t.Fatal(b, err)
	}
	s.Batches.Sampler = "neighbuor"
	if _, err := TimeSamples(context.Background(), s, 10); err == nil ||
		!strings.Contains(err.Error(), "did you mean neighbour") {
		t.Error(err)
	}
}
