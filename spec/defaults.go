package spec

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Auto is a number that Complete chooses by the model and the graph. On the command line it
// is written auto.
const Auto = -1

// defaults are the settings of a run that names none. docs/defaults.md has what they were
// measured against.
type defaults struct {
	layers, hidden, heads, epochs int
	dropout, lr, weightDecay      float64
	inputDropout                  bool
	attentionDropout              float64
	norm                          string
}

// manyLabels is the number of training vertices from which on the widths of the Open Graph
// Benchmark's examples do not overfit.
const manyLabels = 20_000

// defaultsOf are the settings for the model of s on a dataset. Sparse features, as bags of words,
// are many and each is seldom seen, so that dropout among them helps.
func (s *Spec) defaultsOf(data dataset) defaults {
	d := defaults{layers: 2, hidden: 64, heads: 8, epochs: 200, dropout: 0.5, inputDropout: data.sparse, lr: 0.01,
		weightDecay: 5e-4, norm: "none"}
	switch {
	case s.LearnsPairs():
		d.layers, d.hidden, d.inputDropout, d.weightDecay = 3, 256, false, 0
	case s.Model == "gin": // its sums grow with degrees
		d.norm = "layer"
		if !data.sparse {
			d.lr = 0.002
		}
	case nn.Attends(s.Model) && data.sparse: // the GAT paper's
		d.dropout, d.attentionDropout, d.lr = 0.6, 0.6, 0.005
	case nn.Attends(s.Model):
	case data.train >= manyLabels:
		d.hidden = 256
	case s.Model == "sage" && !data.sparse: // two weights per feature
		d.hidden, d.inputDropout = 32, true
	}
	if strings.HasPrefix(s.Model, "res") { // made to be deep
		d.layers, d.norm = 3, "layer"
	}
	return d
}

// completeModel replaces what is auto. Where --dropout is, so is its place.
func (s *Spec) completeModel(data dataset) {
	d := s.defaultsOf(data)
	if s.Mode == "mini" && s.layered() && s.Fanout != "auto" {
		d.layers = strings.Count(s.Fanout, ",") + 1
	}
	if s.Dropout == Auto {
		strategy := train.Find(s.StrategyName())
		whole := s.LearnEmbeddings > 0 || strategy != nil && strategy.WholeInput
		s.InputDropout = s.InputDropout || d.inputDropout && !whole
		s.AttentionDropout = max(s.AttentionDropout, d.attentionDropout)
	}
	setAuto(&s.Layers, d.layers)
	setAuto(&s.Hidden, d.hidden)
	setAuto(&s.Epochs, d.epochs)
	setAuto(&s.Dropout, d.dropout)
	setAuto(&s.LR, d.lr)
	setAuto(&s.WeightDecay, d.weightDecay)
	setAuto(&s.Heads, dividing(d.heads, s.Hidden))
	if s.Norm == "auto" {
		s.Norm = d.norm
	}
}

// dividing is the most heads, halved from so many, that share a width evenly.
func dividing(heads, width int) int {
	for heads > 1 && width%heads != 0 {
		heads /= 2
	}
	return heads
}

func setAuto[T int | float64](x *T, value T) {
	if *x == Auto {
		*x = value
	}
}

// dataset is what defaults depend on.
type dataset struct {
	sparse bool  // its features are
	train  int64 // training vertices
}

// describe reads it. A folder that is no dataset is an error later, when it is opened.
func describe(dir string) (d dataset) {
	m, err := graph.ReadMeta(dir)
	if err != nil {
		return d
	}
	if a := m.Arrays["train.npy"]; len(a.Shape) > 0 {
		d.train = a.Shape[0]
	}
	d.sparse = isSparse(m.Features)
	return d
}

func isSparse(f *graph.FeatureMeta) bool { return f != nil && f.Kind == graph.Sparse }

// autoFlag is a number on the command line that may be auto.
type autoFlag struct{ value reflect.Value }

func (f autoFlag) whole() bool { return f.value.Kind() == reflect.Int }

func (f autoFlag) String() string {
	switch {
	case !f.value.IsValid(): // pflag compares with the zero flag
		return ""
	case f.whole() && f.value.Int() == Auto || !f.whole() && f.value.Float() == Auto:
		return "auto"
	}
	return fmt.Sprint(f.value)
}

func (f autoFlag) Type() string {
	if f.whole() {
		return "int"
	}
	return "float"
}

func (f autoFlag) Set(text string) error {
	switch {
	case text == "auto" && f.whole():
		f.value.SetInt(Auto)
	case text == "auto":
		f.value.SetFloat(Auto)
	case f.whole():
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		f.value.SetInt(int64(n))
	default:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		f.value.SetFloat(x)
	}
	return nil
}
