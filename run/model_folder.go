package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/report"
	"starling/sample"
	"starling/serve"
	"starling/setup"
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
	ClassNames []string           `json:"class_names,omitempty"`
	Features   *graph.FeatureMeta `json:"features,omitempty"`
	// Target is the type that a typed model predicts, TypeFeatures the features of each type, nil where it has none.
	Target       string               `json:"target,omitempty"`
	TypeFeatures []*graph.FeatureMeta `json:"type_features,omitempty"`
	// Preparation is how tables became the dataset's numbers; nil: it was no table.
	Preparation *graph.Preparation `json:"preparation,omitempty"`
	// TypeIDs are the checksums of the names of the vertices of each type, "" where they have none.
	TypeIDs []string `json:"type_ids,omitempty"`
	// Temporal is how the past is drawn that each vertex is predicted from; nil: by the whole graph.
	Temporal     *sample.AsOf  `json:"temporal,omitempty"`
	Metric       string        `json:"metric"` // the name of the accuracies
	Weights      string        `json:"weights_crc32c"`
	Shards       []serve.Shard `json:"shards,omitempty"` // files of learnt rows
	BestEpoch    int           `json:"best_epoch"`       // from 0
	ValAccuracy  report.Number `json:"val_accuracy"`
	TestAccuracy report.Number `json:"test_accuracy"`
	report.Measures
	// Threshold is the probability from which on the class Positive of two, or each of several labels, is predicted.
	Threshold []float64 `json:"threshold,omitempty"`
	Positive  int       `json:"positive,omitempty"`
	Spec      spec.Spec `json:"spec"`
	CRC32C    string    `json:"crc32c,omitempty"` // of this file with these eight digits as zeros
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
	shards, err := putShards(folder.Tmp, r.LearntFiles)
	if err != nil {
		return err
	}
	names := data.ClassNames
	if s.LearnsPairs() {
		names = nil // it predicts no classes
	}
	threshold, positive := thresholdOf(r)
	temporal, err := asOf(s, data)
	if err != nil {
		return err
	}
	if err := writeModelConfig(filepath.Join(folder.Tmp, spec.ConfigFile), modelConfig{
		Threshold: threshold, Positive: positive,
		Temporal: temporal, ClassNames: names, Features: data.Features, Target: s.Target,
		TypeFeatures: typeFeatures(data.Schema),
		Preparation:  data.Preparation,
		TypeIDs:      data.Schema.IDSums(),
		Format:       "starling-run", Version: 1, Model: s.ModelConfig(data), RowNormalize: s.Training.RowNormalize,
		EdgeWeights: weighted, Dataset: data.Name, Task: s.Task, Classes: data.Classes, Weights: sum,
		Shards: shards,
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

// putShards puts the learnt rows of all workers into a folder: the files that they wrote, or what they sent.
func putShards(dir string, list []train.LearntFile) (shards []serve.Shard, err error) {
	for i, f := range list {
		s := serve.Shard{File: setup.ShardFile(i), Bytes: f.Bytes, CRC32C: f.CRC32C}
		path := filepath.Join(dir, s.File)
		if f.Path != "" {
			file := &cluster.Shard{Path: f.Path}
			file.Bytes = f.Bytes
			err = file.MoveTo(path)
		} else if err = nn.SaveSafetensors(path, f.Rows, nil); err == nil {
			s.Bytes, s.CRC32C, err = serve.FileSum(path)
		}
		if err != nil {
			return nil, err
		}
		shards = append(shards, s)
	}
	return shards, nil
}

// asOf is how a temporal run draws.
func asOf(s *spec.Spec, data *graph.Meta) (*sample.AsOf, error) {
	b, err := s.BatchSettings(data)
	if err != nil || s.Mode != "mini" || b.Temporal == "" {
		return nil, err
	}
	return &sample.AsOf{Draws: b.Temporal, Fanouts: b.Fanouts, Seed: s.Seed}, nil
}

// thresholdOf is what the run decides by, where it is not the most likely class or ½.
func thresholdOf(r *train.Result) (threshold []float64, positive int) {
	if e := r.Evaluation; e != nil && e.Threshold != nil {
		return e.Threshold, max(e.Positive, 0)
	}
	return nil, 0
}

// typeFeatures are the features of each type of a typed graph.
func typeFeatures(s *graph.Schema) (list []*graph.FeatureMeta) {
	if s == nil {
		return nil
	}
	for k := range s.Types {
		list = append(list, s.Types[k].Features)
	}
	return list
}

func writeModelConfig(path string, c modelConfig) error {
	b, err := graph.SealJSON(&c, &c.CRC32C)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// writeElsewhere is for weights that could not be written to --out: a full disk must not cost a trained model. It
// tries other places, and the error, which has the first one in it, says where they are.
func writeElsewhere(out string, failed error, write func(out string) error) error {
	home, _ := os.UserHomeDir()
	name := fmt.Sprintf("%s-of-%d", filepath.Base(filepath.Clean(out)), os.Getpid())
	for _, place := range []string{filepath.Dir(filepath.Clean(out)), home, ".", os.TempDir(), "/dev/shm"} {
		dir, err := filepath.Abs(filepath.Join(place, name))
		if err != nil || place == "" {
			continue
		}
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		if write(dir) == nil {
			return fmt.Errorf("--out %s could not be written, so the trained model is in %s: %w", out, dir, failed)
		}
	}
	return fmt.Errorf("--out %s could not be written, nor any other folder: %w", out, failed)
}

// conclude writes --out and tells that the run has ended, even if that could not be written.
func conclude(s *spec.Spec, data *graph.Meta, weighted bool, r *train.Result, start time.Time, events event.Listener,
	more ...func(dir string) error) (err error) {
	r.Evaluation.NameClasses(data.ClassNames)
	if s.Output.Dir != "" && len(r.Best) > 0 {
		write := func(out string) error { return writeModelFolder(out, s, data, weighted, r, more...) }
		if err = write(s.Output.Dir); err != nil {
			err = writeElsewhere(s.Output.Dir, err, write)
		}
	}
	if r.Reason == train.Diverged {
		err = errors.Join(divergence(s, r), err)
	}
	events.On(event.Done{Reason: r.Reason, Epochs: len(r.Loss), BestEpoch: r.BestEpoch, Val: r.ValMetric,
		Test: r.TestMetric, Seconds: time.Since(start).Seconds()})
	for _, text := range r.Evaluation.Warnings(s.Task, r.Metric) {
		events.On(event.Note{Text: "warning: " + text})
	}
	return err
}

// divergence says what is left of a run whose last weights are not finite.
func divergence(s *spec.Spec, r *train.Result) error {
	kept := "no weights were written"
	if s.Output.Dir != "" && len(r.Best) > 0 {
		kept = fmt.Sprintf("%s has the best finite weights, of epoch %d", s.Output.Dir, r.BestEpoch)
	}
	return fmt.Errorf("weights are not finite after epoch %d: training has diverged; %s; try a lower --lr (now %g)",
		len(r.Loss)-1, kept, s.Optimizer.LR)
}
