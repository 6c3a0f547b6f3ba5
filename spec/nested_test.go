package spec

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"starling/graph"
)

// TestNested: settings by group are those at the top, in YAML and JSON.
func TestNested(t *testing.T) {
	const flat = "model: sage\nlayers: 3\nlr: 0.5\noptimizer: sgd\nmode: mini\nbatch_size: 7\n" +
		"checkpoint_every: 500steps\ncheckpoint_dir: x\nlearn_embeddings: 4\nworkers: 2\nhosts: file\n"
	want, err := Parse([]byte(flat))
	if err != nil || want.Model.Name != "sage" || want.Batches.Size != 7 || want.Launch.Hosts != "file" {
		t.Fatalf("%v\n%+v", err, want)
	}
	for _, text := range []string{
		"mode: mini\nmodel: {name: sage, layers: 3}\noptimizer:\n  name: sgd\n  lr: 0.5\nbatches: {batch_size: 7}\n" +
			"checkpoints:\n  checkpoint_dir: x\n  checkpoint_every: 500steps\nembeddings: {learn_embeddings: 4}\n" +
			"cluster:\n  workers: 2\nlaunch:\n  hosts: file\n",
		"optimizer: sgd\nlr: 0.5\nmode: mini\nbatch_size: 7\n" +
			"checkpoints: {checkpoint_dir: x, checkpoint_every: 500steps}\n" +
			"model:\n  name: sage # a comment\nlayers: 3\nlearn_embeddings: 4\nworkers: 2\nhosts: file\n",
		`{"mode": "mini", "model": {"name": "sage", "layers": 3}, "optimizer": {"name": "sgd", "lr": 0.5},
"batches": {"batch_size": 7}, "checkpoints": {"checkpoint_dir": "x", "checkpoint_every": "500steps"},
"embeddings": {"learn_embeddings": 4}, "cluster": {"workers": 2}, "launch": {"hosts": "file"}}`,
	} {
		got, err := Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%+v", text, err, got)
		}
		if read := Default(); strings.HasPrefix(text, "{") {
			if err := json.Unmarshal([]byte(text), &read); err != nil || !reflect.DeepEqual(read, want) {
				t.Errorf("%s: %v\n%+v", text, err, read)
			}
		}
	}
	got, err := Parse([]byte("model:\n  layers: 5"))
	if err != nil || got.Model.Layers != 5 || got.Model.Name != "gcn" {
		t.Errorf("%v\n%+v", err, got)
	}
}

// TestNestedMistakes: what is no setting of a group, or given twice, is refused as at the top.
func TestNestedMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"optimizer:\n  weight-decay: 1":  `unknown field "weight-decay" in optimizer`,
		"model: {epochs: 3}":             `unknown field "epochs"`,
		"model: {layres: 3}":             "did you mean layers?",
		"models: {layers: 3}":            `unknown field "models"`,
		"model: {layers: 1.5}":           "layers: found 1.5, want a whole number",
		"model: {layers: many}":          `layers: found "many", want a whole number`,
		"layers: 2\nmodel: {layers: 3}":  "layers: found it by itself and in model, want each setting once",
		"model: {layers: 3, layers: 4}":  "layers",
		"model: [3]":                     "cannot unmarshal",
		"training: 3":                    `unknown field "training"`,
		"model: {layers: 3}\n---\nlr: 1": "more settings after ---",
	} {
		_, err := Parse([]byte(text))
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
	s := Default()
	if err := json.Unmarshal([]byte(`{"lr": 1, "optimizer": {"lr": 2}}`), &s); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
}
