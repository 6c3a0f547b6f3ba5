package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/tensor/cpu"
)

// The files of a run's folder.
const (
	weightsFile = "model.safetensors"
	configFile  = "config.json"
)

// maxConfig bounds config.json, so that a wrong file is not read completely.
const maxConfig = 64 << 20

// Config is config.json. Prediction and export need only the first part; the second is there so
// that an unknown key is found.
type Config struct {
	Format       string    `json:"format"`
	Version      int       `json:"version"`
	Model        nn.Config `json:"model"`
	RowNormalize bool      `json:"row_normalize"`
	EdgeWeights  bool      `json:"edge_weights"` // the graph it was trained on has some
	Dataset      string    `json:"dataset"`
	// Task is one of nn.Tasks; empty: as the dataset has it.
	Task string `json:"task"`
	// WeightsCRC32C is the checksum of model.safetensors; empty: it is not checked.
	WeightsCRC32C string `json:"weights_crc32c"`
	// Shards are the files of learnt rows, each written by a worker; none: there are none, or model.safetensors has them.
	Shards []Shard `json:"shards,omitempty"`
	// ClassNames are what the classes are called; none: their numbers.
	ClassNames []string `json:"class_names,omitempty"`
	// Features describes the features it was trained on: their columns, and what they were standardized by.
	Features *graph.FeatureMeta `json:"features,omitempty"`
	// Target is the type that a typed model predicts, TypeFeatures the features of each type, nil where it has none.
	Target       string               `json:"target,omitempty"`
	TypeFeatures []*graph.FeatureMeta `json:"type_features,omitempty"`
	// TypeIDs are the checksums of the names of the vertices of each type; none: the run is of a version without.
	TypeIDs []string `json:"type_ids,omitempty"`

	// Preparation is how tables became the dataset it was trained on; nil: it was no table.
	Preparation *graph.Preparation `json:"preparation,omitempty"`
	// Temporal: each vertex is predicted from what is from before its own time; nil: from the whole graph.
	Temporal *sample.AsOf `json:"temporal,omitempty"`
	// Threshold is the probability from which on the class Positive of two, or each of several labels, is predicted;
	// none: the most likely class, or ½.
	Threshold []float64 `json:"threshold,omitempty"`
	Positive  int       `json:"positive,omitempty"`

	Classes      int             `json:"classes"`
	Metric       string          `json:"metric"`
	BestEpoch    int             `json:"best_epoch"`
	ValAccuracy  json.RawMessage `json:"val_accuracy"`
	TestAccuracy json.RawMessage `json:"test_accuracy"`
	MicroF1      json.RawMessage `json:"micro_f1,omitempty"`
	R2           json.RawMessage `json:"r2,omitempty"`
	MSE          json.RawMessage `json:"mse,omitempty"`
	AUC          json.RawMessage `json:"auc,omitempty"`
	MRR          json.RawMessage `json:"mrr,omitempty"`
	Hits         json.RawMessage `json:"hits,omitempty"`
	Relations    json.RawMessage `json:"relations,omitempty"`
	Spec         json.RawMessage `json:"spec"`
	// CRC32C is the checksum of this file with these eight digits as zeros; empty: it is not checked.
	CRC32C string `json:"crc32c,omitempty"`
}

// scale is what the model's features were standardized by; nil: they were not.
func (c *Config) scale() *graph.Scale {
	if c.Features == nil {
		return nil
	}
	return c.Features.Scale
}

// Trained is the contents of a run's folder.
type Trained struct {
	Dir     string
	Config  Config
	Weights []nn.Tensor
	// Embeddings are the learnt rows of the vertices it was trained on, [vertices, width]; nil: none.
	Embeddings *nn.Tensor
	// Learnt are the learnt rows of types without features, by the names of types.
	Learnt map[string]*nn.Tensor

	of string // the type that embeddings are asked of, if it is not the target
}

// embeddingTable is the name of learnt rows of vertices among the weights.
const embeddingTable = "embeddings.weight"

// takeEmbeddings puts learnt rows of vertices apart from the weights of layers.
func (t *Trained) takeEmbeddings() {
	at := slices.IndexFunc(t.Weights, func(w nn.Tensor) bool { return w.Name == embeddingTable && len(w.Shape) == 2 })
	if at >= 0 {
		table := t.Weights[at]
		t.Embeddings, t.Weights = &table, slices.Delete(slices.Clone(t.Weights), at, at+1)
	}
}

// learnt is the width of learnt rows.
func (t *Trained) learnt() int {
	if t.Embeddings == nil {
		return 0
	}
	return t.Embeddings.Shape[1]
}

// knows refuses a dataset that has other vertices than those with embeddings.
func (t *Trained) knows(d *graph.Dataset) error {
	if t.Embeddings == nil || t.Embeddings.Shape[0] == d.Graph.Nodes() {
		return nil
	}
	return &graph.InputError{File: d.Dir, Field: "nodes", Found: fmt.Sprint(d.Graph.Nodes()),
		Want: fmt.Sprintf("the %d vertices that the model has embeddings of (--learn-embeddings, dataset %q)",
			t.Embeddings.Shape[0], t.Config.Dataset),
		Fix: "name the dataset of the run; a model with embeddings knows nothing of new vertices"}
}

// Open reads a run's folder and checks that its weights fit its model.
func Open(dir string) (*Trained, error) {
	path := filepath.Join(dir, configFile)
	b, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := graph.MovedAside(dir); err != nil {
			return nil, err
		}
		return nil, &graph.InputError{File: dir, Found: "no " + configFile, Want: "the folder of a trained model",
			Fix: "write one with starling train DIR --out RUN"}
	}
	if err != nil {
		return nil, err
	}
	t := &Trained{Dir: dir}
	if t.Config, err = parseConfig(b); err != nil {
		return nil, graph.InFile(path, err)
	}
	path = filepath.Join(dir, weightsFile)
	if err := t.checkWeights(path); err != nil {
		return nil, err
	}
	if t.Weights, _, err = nn.LoadSafetensors(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("no such file")
		}
		return nil, &graph.InputError{File: path, Found: graph.Sentence(err.Error()), Want: "the weights of the run",
			Fix: "copy the run's folder again, or train again"}
	}
	if err := t.readShards(); err != nil {
		return nil, err
	}
	t.takeEmbeddings()
	t.takeLearnt()
	dev := cpu.New(1)
	defer dev.Close()
	_, err = t.Model(dev)
	return t, err
}

// ReadPreparation reads that of a run; nil: it has none.
func ReadPreparation(dir string) (*graph.Preparation, error) {
	t, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return t.Config.Preparation, nil
}

// checkWeights compares the checksum of the weights, if config.json has one. Other damage
// is found when the file is parsed.
func (t *Trained) checkWeights(path string) error {
	want := t.Config.WeightsCRC32C
	if want == "" {
		return nil
	}
	if got, err := WeightsSum(t.Dir); err == nil && got != want {
		return &graph.InputError{File: path, Field: "checksum", Found: got, Want: want,
			Fix: "the file is damaged: copy the run's folder again; if you changed it yourself, remove weights_crc32c from " + configFile}
	}
	return nil
}

// WeightsSum is the CRC-32C of the weights in a run's folder.
func WeightsSum(dir string) (string, error) {
	_, sum, err := FileSum(filepath.Join(dir, weightsFile))
	return sum, err
}

// FileSum is the size of a file, and its CRC-32C.
func FileSum(path string) (bytes int64, crc32c string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	bytes, err = io.Copy(sum, f)
	return bytes, fmt.Sprintf("%08x", sum.Sum32()), err
}

func readBounded(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would block
		return nil, &graph.InputError{File: path, Found: info.Mode().Type().String(), Want: "a regular file",
			Fix: "name the folder that starling train --out wrote"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(b) > maxConfig {
		err = &graph.InputError{File: path, Found: "a larger file", Want: fmt.Sprintf("at most %d bytes", maxConfig)}
	}
	return b, err
}

// parseConfig reads config.json.
func parseConfig(b []byte) (Config, error) {
	var c Config
	bad := func(field, found, want string) (Config, error) {
		return c, &graph.InputError{Field: field, Found: found, Want: want,
			Fix: "name the folder that starling train --out wrote"}
	}
	var kind struct{ Format string }
	if json.Unmarshal(b, &kind) == nil && kind.Format != "starling-run" {
		return bad("format", fmt.Sprintf("%q", kind.Format), `"starling-run"`)
	}
	if err := graph.UnsealJSON(b, &c, &c.CRC32C); err != nil {
		return c, damagedConfig(err)
	}
	switch {
	case c.Format != "starling-run":
		return bad("format", fmt.Sprintf("%q", c.Format), `"starling-run"`)
	case c.Version != 1:
		return bad("version", fmt.Sprint(c.Version), "1, which this program reads")
	case len(c.ClassNames) > 0 && len(c.ClassNames) != c.Model.Out:
		return bad("class_names", fmt.Sprint(len(c.ClassNames)), fmt.Sprintf("%d, the outputs of the model", c.Model.Out))
	case c.scale() != nil && c.scale().Validate(c.Model.In) != nil:
		return bad("features.scale", graph.Sentence(c.scale().Validate(c.Model.In).Error()), "")
	case c.Task != "" && !slices.Contains(nn.Tasks, c.Task):
		return bad("task", fmt.Sprintf("%q", c.Task), "one of "+strings.Join(nn.Tasks, ", "))
	}
	if err := c.Model.Validate(); err != nil {
		return bad("model", graph.Sentence(err.Error()), "")
	}
	if err := c.Preparation.Validate(); err != nil {
		return bad("preparation", graph.Sentence(err.Error()), "")
	}
	if !c.validThreshold() {
		return bad("threshold", fmt.Sprint(c.Threshold), "a probability of one of two classes, or of each of several labels")
	}
	if err := c.checkTypes(); err != nil {
		return c, err
	}
	return c, c.sane()
}

// damagedConfig says what can be done about config.json that was damaged or changed.
func damagedConfig(err error) error {
	var in *graph.InputError
	if errors.As(err, &in) {
		named := *in
		named.File = ""
		named.Fix = "copy the run's folder again; if you changed the file yourself, remove its last field, crc32c"
		return &named
	}
	return err
}

// mostWeights bounds the model of a config before memory is allocated for it.
const mostWeights = 1 << 32

func (c *Config) sane() error {
	m := &c.Model
	widest := max(m.Hidden, 1) * max(m.Heads, 1)
	if m.In > 1<<26 || m.Out > 1<<24 || m.Heads > 1<<12 || m.OutHeads > 1<<12 ||
		int64(m.In+m.Out*max(m.OutHeads, 1)+m.Layers*m.Hidden) > mostWeights/int64(widest) {
		return &graph.InputError{Field: "model", Found: "sizes of more than 2^32 weights",
			Want: "a model that fits this machine"}
	}
	return nil
}

// Model is the trained model on a device.
func (t *Trained) Model(dev tensor.Device) (*nn.Model, error) {
	m := nn.New(dev, t.ModelConfig(), 0)
	if err := m.Load(dev, t.Weights); err != nil {
		return nil, &graph.InputError{File: filepath.Join(t.Dir, weightsFile), Found: "weights of another model: " +
			err.Error(), Want: "those of " + configFile, Fix: "copy the run's folder again, or train again"}
	}
	return m, nil
}

// suits checks that the model fits a dataset.
func (t *Trained) suits(d *graph.Dataset) error {
	if err := t.suitsTypes(d); err != nil || d.Typed() {
		return err
	}
	if err := t.knows(d); err != nil {
		return err
	}
	in, cols := t.Config.Model.In-t.learnt(), 0
	if d.Features != nil {
		cols = d.Features.Cols
	}
	if d.Features == nil && in > 0 {
		return &graph.InputError{File: d.Dir, Found: "no features",
			Want: fmt.Sprintf("%d per vertex", in), Fix: "import the dataset with features"}
	}
	if want := t.Config.Model.EdgeDim; want > 0 && d.Graph.EdgeDim != want {
		return &graph.InputError{File: d.Dir, Field: "edge_features",
			Found: fmt.Sprintf("%d numbers per edge", d.Graph.EdgeDim),
			Want:  fmt.Sprintf("%d, which the model was trained on (dataset %q)", want, t.Config.Dataset),
			Fix:   "name the dataset that goes with the run"}
	}
	if err := t.sameColumns(d); err != nil {
		return err
	}
	if cols != in {
		return &graph.InputError{File: d.Dir, Field: "features", Found: fmt.Sprint(cols),
			Want: fmt.Sprintf("%d, which the model was trained on (dataset %q)", in, t.Config.Dataset),
			Fix:  "name the dataset that goes with the run"}
	}
	return nil
}

// sameColumns refuses features that have other names than those of the training data: words
// that were not the same in both give other columns.
func (t *Trained) sameColumns(d *graph.Dataset) error {
	if t.Config.Features == nil || d.Meta.Features == nil {
		return nil
	}
	want, have := t.Config.Features.Columns, d.Meta.Features.Columns
	for c := range min(len(want), len(have)) {
		if want[c] != have[c] {
			return &graph.InputError{File: d.Dir, Field: fmt.Sprintf("column %d of the features", c),
				Found: fmt.Sprintf("%.60q", have[c]),
				Want:  fmt.Sprintf("%.60q, as in the data that the model was trained on (%q)", want[c], t.Config.Dataset),
				Fix:   "give both datasets the same columns, in the same order, and the same words of --one-hot"}
		}
	}
	return nil
}

// task is one of nn.Tasks.
func (t *Trained) task(d *graph.Dataset) string {
	if of := nn.TaskOf(d.Meta.Task); of != "" {
		return t.taskOr(of)
	}
	return t.taskOr(nn.TaskClassify)
}

// taskOr is the task in config.json, or another if it has none.
func (t *Trained) taskOr(other string) string {
	if t.Config.Task != "" {
		return t.Config.Task
	}
	return other
}
