package run

import (
	"context"
	"path/filepath"
	"testing"

	"starling/dataset/generate"
	"starling/spec"
)

// TestEmbeddingsOfAGraphWithoutFeatures: one worker and two learn it alike, and predict from the
// model's folder; a graph of other vertices is refused.
func TestEmbeddingsOfAGraphWithoutFeatures(t *testing.T) {
	plain := func(nodes int) string {
		return block(t, func(p *generate.Params) {
			p.Nodes, p.Edges, p.Features, p.Classes = int64(nodes), 20*int64(nodes), 0, 3
		})
	}
	s := spec.Default()
	s.Dataset, s.Model.Name, s.Mode, s.Model.Layers, s.Model.Hidden, s.Batches.Fanout, s.Batches.Size = plain(300),
		"sage", "mini", 2, 16, "5,5", 64
	s.Training.Epochs, s.Embeddings.Dim, s.Cluster.InProcess, s.Output.Dir = 15, 8, true,
		filepath.Join(t.TempDir(), "run")
	s.Cluster.Workers = 1
	one := trained(t, s, nil)
	s.Cluster.Workers, s.Output.Overwrite = 2, true
	two := trained(t, s, nil)
	if off := two.TestAccuracy - one.TestAccuracy; two.TestAccuracy < 0.5 || off > 0.05 || off < -0.05 {
		t.Errorf("accuracy %v, of one worker %v", two.TestAccuracy, one.TestAccuracy)
	}
	for dir, good := range map[string]bool{s.Dataset: true, plain(200): false} {
		_, err := Predict(context.Background(), PredictOptions{Run: s.Output.Dir, Dataset: dir, What: "labels",
			Out: filepath.Join(t.TempDir(), "out.npy"), Threads: 1})
		if good && err != nil || !good && !isMistake(err, "embeddings") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	s.Mode = "full"
	if _, err := Train(context.Background(), s, nil); !isMistake(err, "--mode mini") {
		t.Error(err)
	}
}
