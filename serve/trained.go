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
	"starling/tensor"
)

// The files of a run's folder.
const (
	weightsFile = "model.safetensors"
	configFile  = "config.json"
)

// maxConfig bounds config.json, so that a wrong file is not read whole.
const maxConfig = 1 << 20

// Config is what config.json says that prediction and export need.
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
}

// Trained is a run's folder, read.
type Trained struct {
	Dir     string
	Config  Config
	Weights []nn.Tensor
}

// Open reads a run's folder and checks that its weights fit its model.
func Open(dir string) (*Trained, error) {
	path := filepath.Join(dir, configFile)
	b, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := graph.MovedAside(dir); err != nil {
			return nil, err
		}
		return nil, &graph.InputError{File: dir, Found: "no " + configFile, Want: "the folder of a trained model", Fix: "write one with starling train DIR --out RUN"}
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
		return nil, &graph.InputError{File: path, Found: err.Error(), Want: "the weights of the run", Fix: "copy the run's folder again, or train again"}
	}
	dev := tensor.NewCPU(1)
	defer dev.Close()
	_, err = t.Model(dev)
	return t, err
}

// checkWeights compares the checksum of the weights, where config.json has one. What else may
// be wrong with the file is for its reader to say.
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
	f, err := os.Open(filepath.Join(dir, weightsFile))
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%08x", sum.Sum32()), nil
}

func readBounded(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, &graph.InputError{File: path, Found: info.Mode().Type().String(), Want: "a regular file", Fix: "name the folder that starling train --out wrote"}
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
		return c, &graph.InputError{Field: field, Found: found, Want: want, Fix: "name the folder that starling train --out wrote"}
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return bad("", err.Error(), "JSON")
	}
	switch {
	case c.Format != "starling-run":
		return bad("format", fmt.Sprintf("%q", c.Format), `"starling-run"`)
	case c.Version != 1:
		return bad("version", fmt.Sprint(c.Version), "1, which this program reads")
	case c.Task != "" && !slices.Contains(nn.Tasks, c.Task):
		return bad("task", fmt.Sprintf("%q", c.Task), "one of "+strings.Join(nn.Tasks, ", "))
	}
	if err := c.Model.Validate(); err != nil {
		return bad("model", err.Error(), "")
	}
	return c, c.sane()
}

// mostWeights bounds what a config may ask for, before memory is taken for it.
const mostWeights = 1 << 32

func (c *Config) sane() error {
	m := &c.Model
	widest := max(m.Hidden, 1) * max(m.Heads, 1)
	if m.In > 1<<26 || m.Out > 1<<24 || m.Heads > 1<<12 || m.OutHeads > 1<<12 ||
		int64(m.In+m.Out*max(m.OutHeads, 1)+m.Layers*m.Hidden) > mostWeights/int64(widest) {
		return &graph.InputError{Field: "model", Found: "sizes of more than 2^32 weights", Want: "a model that fits this machine"}
	}
	return nil
}

// Model is the trained model on a device.
func (t *Trained) Model(dev tensor.Device) (*nn.Model, error) {
	m := nn.New(dev, t.Config.Model, 0)
	if err := m.Load(dev, t.Weights); err != nil {
		return nil, &graph.InputError{File: filepath.Join(t.Dir, weightsFile), Found: "weights of another model: " + err.Error(), Want: "those of " + configFile, Fix: "copy the run's folder again, or train again"}
	}
	return m, nil
}

// suits checks that the model can be asked about a dataset.
func (t *Trained) suits(d *graph.Dataset) error {
	if d.Features == nil {
		return &graph.InputError{File: d.Dir, Found: "no features", Want: fmt.Sprintf("%d a vertex", t.Config.Model.In), Fix: "import the dataset with features"}
	}
	if want := t.Config.Model.EdgeDim; want > 0 && d.Graph.EdgeDim != want {
		return &graph.InputError{File: d.Dir, Field: "edge_features", Found: fmt.Sprintf("%d numbers an edge", d.Graph.EdgeDim), Want: fmt.Sprintf("%d, which the model was trained on (dataset %q)", want, t.Config.Dataset), Fix: "name the dataset that goes with the run"}
	}
	if d.Features.Cols != t.Config.Model.In {
		return &graph.InputError{File: d.Dir, Field: "features", Found: fmt.Sprint(d.Features.Cols), Want: fmt.Sprintf("%d, which the model was trained on (dataset %q)", t.Config.Model.In, t.Config.Dataset), Fix: "name the dataset that goes with the run"}
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

// taskOr is what config.json says, or another where it says nothing.
func (t *Trained) taskOr(other string) string {
	if t.Config.Task != "" {
		return t.Config.Task
	}
	return other
}
