package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/report"
	"starling/serve"
	"starling/spec"
	"starling/train"
)

// modelConfig is config.json: what prediction and export need beside the weights.
type modelConfig struct {
	Format       string    `json:"format"`
	Version      int       `json:"version"`
	Model        nn.Config `json:"model"`
	RowNormalize bool      `json:"row_normalize"`
	EdgeWeights  bool      `json:"edge_weights"` // the graph has them
	Dataset      string    `json:"dataset"`
	Task         string    `json:"task"`
	Classes      int       `json:"classes"`
	// ClassNames and Features are the dataset's: what classes and columns are called, and the scale of the features.
	ClassNames   []string           `json:"class_names,omitempty"`
	Features     *graph.FeatureMeta `json:"features,omitempty"`
	Metric       string             `json:"metric"` // the name of the accuracies
	Weights      string             `json:"weights_crc32c"`
	BestEpoch    int                `json:"best_epoch"` // from 0
	ValAccuracy  report.Number      `json:"val_accuracy"`
	TestAccuracy report.Number      `json:"test_accuracy"`
	report.Measures
	Spec   spec.Spec `json:"spec"`
	CRC32C string    `json:"crc32c,omitempty"` // of this file with these eight digits as zeros
}

// checkModelFolder refuses to replace anything but a model folder, and that without --overwrite, unless the run
// that wrote it is resumed.
func checkModelFolder(s *spec.Spec) error {
	dir := s.Output.Dir
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return spec.CheckFile("--out", filepath.Clean(dir))
	}
	if err != nil {
		return spec.Mistake("--out", graph.Sentence(err.Error()), "a folder", "choose another name")
	}
	for _, e := range entries {
		if e.Name() != spec.WeightsFile && e.Name() != spec.ConfigFile && !slices.Contains(heldOutFiles, e.Name()) {
			return spec.Mistake("--out", dir+", which holds "+e.Name(), "a new folder, or one of an earlier run",
				"choose another name")
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return overwriteable(dir, "this model", s.Output.Overwrite || s.Checkpoints.Resume || s.Checkpoints.ResumeIfAny)
}

// writeModelFolder writes the best weights, config.json and what more writes to a folder that
// appears whole or not at all.
func writeModelFolder(out string, s *spec.Spec, data *graph.Meta, weighted bool, r *train.Result,
	more ...func(dir string) error) error {
	folder, err := graph.NewFolder(out)
	if err != nil {
		return err
	}
	defer folder.Abort()
	meta := map[string]string{"format": "pt", "model": s.Model.Name, "dataset": data.Name}
	if err := nn.SaveSafetensors(filepath.Join(folder.Tmp, spec.WeightsFile), r.Best, meta); err != nil {
		return err
	}
	sum, err := serve.WeightsSum(folder.Tmp)
	if err != nil {
		return err
	}
	names := data.ClassNames
	if s.LearnsPairs() {
		names = nil // it predicts no classes
	}
	if err := writeModelConfig(filepath.Join(folder.Tmp, spec.ConfigFile), modelConfig{
		ClassNames: names, Features: data.Features,
		Format: "starling-run", Version: 1, Model: s.ModelConfig(data), RowNormalize: s.Training.RowNormalize,
		EdgeWeights: weighted, Dataset: data.Name, Task: s.Task, Classes: data.Classes, Weights: sum,
		Metric: r.Metric, Measures: report.MeasuresOf(r.Measures), BestEpoch: r.BestEpoch,
		ValAccuracy: report.Number(r.ValMetric), TestAccuracy: report.Number(r.TestMetric), Spec: *s,
	}); err != nil {
		return err
	}
	for _, write := range more {
		if err := write(folder.Tmp); err != nil {
			return err
		}
	}
	return folder.Commit()
}

func writeModelConfig(path string, c modelConfig) error {
	b, err := graph.SealJSON(&c, &c.CRC32C)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
