package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/serve"
	"starling/train"
)

// tensors is what groups of arrays in a checkpoint are made of.
type tensors = nn.Tensor

// The files of a run's folder.
const (
	weightsFile = "model.safetensors"
	configFile  = "config.json"
)

// runConfig is config.json: what prediction and export need beside the weights.
type runConfig struct {
	Format       string    `json:"format"`
	Version      int       `json:"version"`
	Model        nn.Config `json:"model"`
	RowNormalize bool      `json:"row_normalize"`
	EdgeWeights  bool      `json:"edge_weights"` // the graph has some
	Dataset      string    `json:"dataset"`
	Task         string    `json:"task"`
	Classes      int       `json:"classes"`
	Metric       string    `json:"metric"` // what the accuracies are
	Weights      string    `json:"weights_crc32c"`
	BestEpoch    int       `json:"best_epoch"` // from 0
	ValAccuracy  Number    `json:"val_accuracy"`
	TestAccuracy Number    `json:"test_accuracy"`
	Measures
	Spec Spec `json:"spec"`
}

// checkRunFolder refuses to replace anything but an earlier run.
func checkRunFolder(dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return CheckFile("--out", filepath.Clean(dir))
	}
	if err != nil {
		return mistake("--out", err.Error(), "a folder", "choose another name")
	}
	for _, e := range entries {
		if e.Name() != weightsFile && e.Name() != configFile && !slices.Contains(heldOutFiles, e.Name()) {
			return mistake("--out", dir+", which holds "+e.Name(), "a new folder, or one of an earlier run", "choose another name")
		}
	}
	return nil
}

// writeRunFolder writes the best weights, config.json and whatever more there is to
// a folder that appears whole or not at all.
func writeRunFolder(s *Spec, data *graph.Meta, weighted bool, r *train.Result, more ...func(dir string) error) error {
	folder, err := graph.NewFolder(s.Out)
	if err != nil {
		return err
	}
	defer folder.Abort()
	meta := map[string]string{"format": "pt", "model": s.Model, "dataset": data.Name}
	if err := nn.SaveSafetensors(filepath.Join(folder.Tmp, weightsFile), r.Best, meta); err != nil {
		return err
	}
	sum, err := serve.WeightsSum(folder.Tmp)
	if err != nil {
		return err
	}
	c := runConfig{Format: "starling-run", Version: 1, Model: s.modelConfig(data), RowNormalize: s.RowNormalize, EdgeWeights: weighted, Dataset: data.Name,
		Task: s.Task, Classes: data.Classes, Weights: sum, Metric: r.Metric, Measures: measuresOf(r.Measures), BestEpoch: r.BestEpoch, ValAccuracy: Number(r.ValMetric), TestAccuracy: Number(r.TestMetric), Spec: *s}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder.Tmp, configFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	for _, write := range more {
		if err := write(folder.Tmp); err != nil {
			return err
		}
	}
	return folder.Commit()
}
