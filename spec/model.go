package spec

import (
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Model is the network that is trained.
type Model struct {
	Name             string  `json:"model"`
	Layers           int     `json:"layers" range:"1,1000" auto:"true"`
	Hidden           int     `json:"hidden" range:"1,65536" auto:"true"`
	Heads            int     `json:"heads" range:"1,65536" auto:"true"`
	OutHeads         int     `json:"out_heads" range:"1,65536"`
	Bases            int     `json:"bases" range:"0,65536"`
	Blocks           int     `json:"blocks" range:"0,65536"`
	Dropout          float64 `json:"dropout" range:"[0,1)" auto:"true"`
	InputDropout     Toggle  `json:"input_dropout" auto:"zero"`
	AttentionDropout float64 `json:"attention_dropout" range:"[0,1)" auto:"true"`
	Norm             string  `json:"norm" values:"auto,none,batch,layer"`
	Aggregator       string  `json:"aggregator" values:"mean,gcn"`
	TrainEps         bool    `json:"train_eps"`
	EdgeFeatures     bool    `json:"edge_features"`
}

func defaultModel() Model {
	return Model{Name: "gcn", Layers: Auto, Hidden: Auto, Heads: Auto, OutHeads: 1, Dropout: Auto,
		AttentionDropout: Auto, Norm: "auto", Aggregator: "mean"}
}

func (m *Model) Validate() error {
	err := checkFields(m)
	if err == nil && nn.HasHeads(m.Name) && m.Layers > 1 && m.Hidden%m.Heads != 0 {
		return Mistake("--hidden", fmt.Sprint(m.Hidden), fmt.Sprintf("a multiple of the %s",
			event.Tally(m.Heads, "head")),
			"hidden is the width of all heads together")
	}
	if err == nil {
		err = m.checkRelationWeights()
	}
	return err
}

// checkModelName refuses a model that there is not. Those of typed graphs resemble others that do something else.
func checkModelName(flag, name string) error {
	switch {
	case slices.Contains(listOf("model"), name):
		return nil
	case nn.Typed(name):
		return Mistake(flag, fmt.Sprintf("%q", name), "one of "+strings.Join(nn.TypedModels, ", ")+" for a typed graph",
			"there is no such model here")
	}
	return NotOneOf(flag, name, listOf("model"))
}

// modelEffects are the settings that only some models have.
func (s *Spec) modelEffects() []effect {
	d, m, attends, unset := defaultModel(), &s.Model, nn.Attends(s.Model.Name), *s
	unset.Model.Heads, unset.Model.Dropout = Auto, 0
	unset.completeModel(dataset{})
	b := &s.Batches
	weighted := !strings.HasPrefix(b.Sampler, "cluster") && (b.Sampler != "neighbour" || b.Weighted)
	heads := nn.HasHeads(m.Name)
	typed := s.typedEffects()
	return append(typed, []effect{
		{"--heads", m.Heads != unset.Model.Heads, heads, "only --model gat, gatv2, rgat, hgt and simplehgn have heads"},
		{"--out-heads", m.OutHeads != d.OutHeads, attends, "only --model gat and gatv2 average heads"},
		{"--attention-dropout", m.AttentionDropout != 0, heads,
			"only --model gat, gatv2, rgat, hgt and simplehgn have attention"},
		{"--aggregator", m.Aggregator != d.Aggregator, m.Name == "sage",
			"only --model sage has a choice of aggregators"},
		{"--edge-features", m.EdgeFeatures, nn.UsesEdges(m.Name), "only --model gat, gatv2 and gin use edge features"},
		{"--edge-features", m.EdgeFeatures, s.Mode == "full" || m.Name != "gin" || !weighted,
			"--sampler " + b.Sampler + " weights each edge, and gin with edge features has no edge weights: " +
				"use --sampler neighbour without --weighted, or cluster, or --model gat"},
		{"--train-eps", m.TrainEps, m.Name == "gin", "only --model gin has an epsilon"},
		{"--norm", m.Norm == "none", !strings.HasPrefix(m.Name, "res"),
			m.Name + " normalizes before every layer: use batch or layer"},
		{"--input-dropout", m.InputDropout == On, m.Dropout > 0, "it needs a --dropout above 0"},
	}...)
}

// ModelConfig is the model for a dataset.
func (s *Spec) ModelConfig(data *graph.Meta) nn.Config {
	m, edges := &s.Model, 0
	if m.EdgeFeatures {
		edges = data.EdgeDim
	}
	in := s.Embeddings.Dim
	typed := s.typedConfig(data)
	if data.Features != nil && typed == nil {
		in += data.Features.Dim
	}
	c := nn.Config{EdgeDim: edges, Model: m.Name, Layers: m.Layers, Hidden: m.Hidden, Heads: m.Heads,
		OutHeads: m.OutHeads, Dropout: m.Dropout, InputDropout: m.InputDropout == On,
		AttentionDropout: m.AttentionDropout, Norm: m.Norm, Aggregator: m.Aggregator, TrainEps: m.TrainEps,
		Decoder: s.decoder(), Typed: typed, In: in, Out: s.outputs(data),
		StandardizeTargets: s.Objective.StandardizeTargets == On}
	if choice, err := s.Choice(); err == nil {
		if o, ok := choice.Options.(train.Reshaping); ok {
			o.Reshape(&c)
		}
	}
	return c
}

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
	switch name := s.Model.Name; {
	case nn.IsTyped(name): // every type has an encoder of its own instead of dropout among features
		d.heads, d.inputDropout = 4, false
		if s.LearnsPairs() {
			d.weightDecay = 0
		}
	case s.LearnsPairs():
		d.layers, d.hidden, d.inputDropout, d.weightDecay = 3, 256, false, 0
	case name == "gin": // its sums grow with degrees
		d.norm = "layer"
		if !data.sparse {
			d.lr = 0.002
		}
	case nn.Attends(name) && data.sparse: // the GAT paper's
		d.dropout, d.attentionDropout, d.lr = 0.6, 0.6, 0.005
	case nn.Attends(name):
	case data.train >= manyLabels:
		d.hidden = 256
	case name == "sage" && !data.sparse: // two weights per feature
		d.hidden, d.inputDropout = 32, true
	}
	if strings.HasPrefix(s.Model.Name, "res") { // made to be deep
		d.layers, d.norm = 3, "layer"
	}
	return d
}

// completeModel replaces what is auto. --dropout auto also decides where dropout is applied.
func (s *Spec) completeModel(data dataset) {
	d, m := s.defaultsOf(data), &s.Model
	if numbers := s.Batches.Fanout.numbers(); s.Mode == "mini" && s.Batches.layered() && numbers != "auto" {
		d.layers = strings.Count(numbers, ",") + 1
	}
	if m.Dropout != Auto {
		d.inputDropout, d.attentionDropout = false, 0
	}
	if m.InputDropout == ToggleAuto {
		m.InputDropout = toggled(d.inputDropout && s.Embeddings.Dim == 0) // learnt rows are not dropped
	}
	setAuto(&m.AttentionDropout, d.attentionDropout)
	setAuto(&m.Layers, d.layers)
	setAuto(&m.Hidden, d.hidden)
	setAuto(&s.Training.Epochs, d.epochs)
	setAuto(&m.Dropout, d.dropout)
	setAuto(&s.Optimizer.LR, d.lr)
	setAuto(&s.Optimizer.WeightDecay, d.weightDecay)
	setAuto(&m.Heads, dividing(d.heads, m.Hidden))
	if m.Norm == "auto" {
		m.Norm = d.norm
	}
}

// dividing halves a number of heads until they share a width evenly.
func dividing(heads, width int) int {
	for heads > 1 && width%heads != 0 {
		heads /= 2
	}
	return heads
}

// dataset is what defaults depend on.
type dataset struct {
	sparse bool  // its features are
	train  int64 // training vertices
	// schema is a typed graph's, targets the types that have labels and training vertices.
	schema  *graph.Schema
	targets []string
}

// describe reads a dataset's description. A folder that is no dataset is an error later, when it is opened.
func describe(dir string) (d dataset) {
	m, err := graph.ReadMeta(dir)
	if err != nil {
		return d
	}
	if a := m.Arrays["train.npy"]; len(a.Shape) > 0 {
		d.train = a.Shape[0]
	}
	d.schema, d.targets = m.Schema, TargetsOf(m)
	d.sparse = isSparse(m.Features)
	return d
}

func isSparse(f *graph.FeatureMeta) bool { return f != nil && f.Kind == graph.Sparse }
