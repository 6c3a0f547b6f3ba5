package nn

import (
	"fmt"
	"slices"
	"strings"

	"starling/rng"
	"starling/tensor"
)

// Config describes a model. Two models of the same Config and seed start with
// the same weights on every device and worker.
type Config struct {
	Model   string  `json:"model" yaml:"model"`
	Layers  int     `json:"layers" yaml:"layers"`
	Hidden  int     `json:"hidden" yaml:"hidden"` // total width, all heads together
	Heads   int     `json:"heads" yaml:"heads"`
	Dropout float64 `json:"dropout" yaml:"dropout"`
	// InputDropout draws dropout on the features too.
	InputDropout bool `json:"input_dropout" yaml:"input_dropout"`
	// AttentionDropout is GAT's and GATv2's on their coefficients.
	AttentionDropout float64 `json:"attention_dropout" yaml:"attention_dropout"`
	// OutHeads is the number of heads that the last layer of attention averages.
	OutHeads int `json:"out_heads" yaml:"out_heads"`
	// Norm is none, batch or layer.
	Norm string `json:"norm" yaml:"norm"`
	// Aggregator is GraphSAGE's: mean or gcn.
	Aggregator string `json:"aggregator" yaml:"aggregator"`
	// EdgeDim is the width of edges' features that GAT, GATv2 and GIN look at; 0: none.
	EdgeDim int `json:"edge_dim,omitempty" yaml:"edge_dim,omitempty"`
	// Decoupled has gcn make all its products first and all its sums after them.
	Decoupled bool `json:"decoupled,omitempty" yaml:"decoupled,omitempty"`
	// TrainEps trains GIN's ε instead of keeping it 0.
	TrainEps bool `json:"train_eps" yaml:"train_eps"`

	// Decoder scores pairs of the rows that the model computes: one of Decoders; none:
	// the rows are the result.
	Decoder string `json:"decoder,omitempty" yaml:"decoder,omitempty"`

	// Typed are the types of a typed graph, for TypedModels; nil: none.
	Typed *TypedConfig `json:"typed,omitempty" yaml:"typed,omitempty"`

	In  int `json:"in" yaml:"in"` // 0 of a typed graph, whose types have widths of their own
	Out int `json:"out" yaml:"out"`
	// StandardizeTargets: it learns standardized targets of a regression (see targetScale).
	StandardizeTargets bool `json:"standardize_targets,omitempty" yaml:"standardize_targets,omitempty"`
}

// Models are the names Config.Model may have.
var Models = []string{"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film", "resgcn+", "ressage+", "mlp"}

// TypedModels are the names of models of typed graphs.
var TypedModels = []string{"rgcn", "hsage", "rgat", "hgt", "simplehgn"}

// IsTyped reports whether a model is one of TypedModels.
func IsTyped(model string) bool { return slices.Contains(TypedModels, model) }

// Attends reports whether the model has attention, in heads.
func (c *Config) Attends() bool { return Attends(c.Model) }

// Free gives the memory of parameters and their gradients back.
func (m *Model) Free(dev tensor.Device) {
	for _, p := range m.Params {
		dev.Free(p.Value)
		dev.Free(p.Grad)
	}
}

// GraphLayers is the number of message-passing layers.
func (c *Config) GraphLayers() int {
	if c.Model == "mlp" {
		return 0
	}
	return c.Layers
}

// Attends reports whether a model has attention, by name.
func Attends(model string) bool { return model == "gat" || model == "gatv2" }

// HasHeads reports whether a model, typed or not, has attention in heads.
func HasHeads(model string) bool {
	return Attends(model) || slices.Contains([]string{"rgat", "hgt", "simplehgn"}, model)
}

// typedModels are models of graphs with vertex types and relations, as papers and libraries call them.
var typedModels = []string{"rgcn", "rgat", "hgt", "han", "compgcn", "rsage", "rgin", "magnn", "simple-hgn", "hetgnn",
	"hetero", "heteroconv"}

// Typed reports whether a name is a model of typed graphs. Models has none of them.
func Typed(name string) bool {
	name = strings.NewReplacer("-", "", "_", "").Replace(strings.TrimSuffix(strings.ToLower(name), "conv"))
	return slices.ContainsFunc(typedModels, func(m string) bool { return strings.ReplaceAll(m, "-", "") == name })
}

// UsesEdges reports whether a model can look at features of edges.
func UsesEdges(model string) bool { return Attends(model) || model == "gin" }

// Validate names the first setting that makes no sense.
func (c *Config) Validate() error {
	switch {
	case IsTyped(c.Model) && c.Typed != nil:
		return c.validateTyped()
	case IsTyped(c.Model):
		return fmt.Errorf("model %s is for typed graphs, and this one has no types: use one of %s", c.Model,
			strings.Join(Models, ", "))
	case !slices.Contains(Models, c.Model):
		return fmt.Errorf("model %q is not one of %s", c.Model, strings.Join(Models, ", "))
	case c.Decoder != "" && !slices.Contains(Decoders, c.Decoder):
		return fmt.Errorf("decoder %q is not one of %s", c.Decoder, strings.Join(Decoders, ", "))
	case c.Layers < 1 || c.Layers > 1000:
		return fmt.Errorf("layers is %d; it must be from 1 to 1000", c.Layers)
	case c.Hidden < 1 || c.Hidden > 1<<16:
		return fmt.Errorf("hidden is %d; it must be from 1 to 65536", c.Hidden)
	case c.In < 1 || c.Out < 1:
		return fmt.Errorf("a model of %d inputs and %d outputs: the dataset needs features and labels", c.In, c.Out)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("dropout is %g; it must be at least 0 and below 1", c.Dropout)
	case !(c.AttentionDropout >= 0 && c.AttentionDropout < 1):
		return fmt.Errorf("attention dropout is %g; it must be at least 0 and below 1", c.AttentionDropout)
	case !slices.Contains([]string{"none", "batch", "layer"}, c.Norm):
		return fmt.Errorf("norm %q is not one of none, batch, layer", c.Norm)
	case strings.HasPrefix(c.Model, "res") && c.Norm == "none":
		return fmt.Errorf("%s normalizes before every layer; norm must be batch or layer", c.Model)
	case c.Decoupled && c.Model != "gcn":
		return fmt.Errorf("model %s has no decoupled form; only gcn has", c.Model)
	case c.EdgeDim != 0 && !UsesEdges(c.Model) || c.EdgeDim < 0 || c.EdgeDim > 1<<16:
		return fmt.Errorf("edge dim is %d for %s; only gat, gatv2 and gin look at features of edges", c.EdgeDim, c.Model)
	case c.Model == "sage" && c.Aggregator != "mean" && c.Aggregator != "gcn":
		return fmt.Errorf("aggregator %q is not one of mean, gcn", c.Aggregator)
	case c.Attends() && (c.Heads < 1 || c.OutHeads < 1):
		return fmt.Errorf("%s needs at least one head; heads is %d, out heads %d", c.Model, c.Heads, c.OutHeads)
	case c.Attends() && c.Layers > 1 && c.Hidden%c.Heads != 0:
		return fmt.Errorf("hidden %d does not divide into %d heads; choose a multiple", c.Hidden, c.Heads)
	}
	return nil
}

// Model is a stack of modules from features to logits.
type Model struct {
	Config  Config
	Params  []*Param
	Buffers []*Buffer
	Decoder *Decoder     // nil: none
	scoring []*Param     // the decoder's
	targets *targetScale // nil: they are not standardized

	modules []Module
	names   []string // of modules, for timelines
	params  []int    // parameters of modules 0 to i-1 together
	convs   int

	dropped Input // the features after dropout
}

// New builds a model with the weights its seed gives. The Config must be valid.
func New(dev tensor.Device, c Config, seed uint64) *Model {
	m := &Model{Config: c, params: []int{0}}
	b := &builder{dev: dev, key: rng.New(seed).Fold(hash("weights"))}
	switch {
	case c.Decoupled:
		m.decoupled(b)
	case c.Model == "mlp":
		m.stack(b, "lins.", m.dense)
	case c.Model == "resgcn+" || c.Model == "ressage+":
		m.deep(b)
	case IsTyped(c.Model):
		m.typed(b)
	default:
		m.stack(b, "convs.", m.conv)
	}
	layers := len(b.params)
	m.Decoder = newDecoder(b, &c)
	if c.StandardizeTargets {
		m.targets = newTargetScale(b, c.Out)
	}
	m.Params, m.Buffers, m.scoring = b.params, b.buffers, b.params[layers:]
	return m
}

// DecoderParams are the decoder's, whose gradients are final before the backward pass.
func (m *Model) DecoderParams() []*Param { return m.scoring }

// Convs is the number of message-passing layers.
func (m *Model) Convs() int { return m.convs }

// makeLayer builds one layer of a stack.
type makeLayer func(b *builder, in, out int, last bool, o output) Module

// stack is layers with norm, activation and dropout between them.
func (m *Model) stack(b *builder, prefix string, make makeLayer) {
	in := m.Config.In
	for l := range m.Config.Layers {
		last := l == m.Config.Layers-1
		b.prefix, b.layer = fmt.Sprintf("%s%d.", prefix, l), l
		width := m.Config.Hidden
		o := output{layer: l, act: m.activation(), drop: m.Config.Dropout}
		if last {
			width, o = m.Config.Out, output{layer: l}
		}
		after := o
		if m.Config.Norm != "none" && !last {
			o = output{layer: l}
		}
		o.keepY = last
		m.append(b, make(b, in, width, last, o))
		if !last {
			b.prefix = fmt.Sprintf("norms.%d.", l)
			m.append(b, newNorm(b, m.Config.Norm, "", width, after))
		}
		in = width
	}
}

func (m *Model) activation() tensor.Act {
	if m.Config.Attends() {
		return tensor.ELU
	}
	return tensor.ReLU
}

func (m *Model) dense(b *builder, in, out int, _ bool, o output) Module {
	return newLinear(b, "", in, out, o)
}

// SendsZeros reports whether a layer sends its input as it is, and that is what a ReLU, and
// dropout, have left: about half of the numbers are zero, or with dropout more. Their gradients
// are zero behind the ReLU too, whatever they are before it.
func (c *Config) SendsZeros(layer int) bool {
	if layer < 1 || layer >= c.Layers || c.Decoupled {
		return false
	}
	switch c.Model {
	case "gcn", "sage":
		return layer < c.Layers-1 || c.Hidden <= c.Out // else rows are transformed before they are sent
	case "gin":
		return c.EdgeDim == 0
	case "resgcn+", "ressage+":
		return true
	}
	return false
}

func (m *Model) conv(b *builder, in, out int, last bool, o output) Module {
	m.convs++
	mod := m.newConv(b, in, out, last, o)
	switch c := mod.(type) {
	case *sumConv:
		c.sendsZeros = m.Config.SendsZeros(o.layer)
	case *gin:
		c.sum.sendsZeros = m.Config.SendsZeros(o.layer)
	}
	return mod
}

func (m *Model) newConv(b *builder, in, out int, last bool, o output) Module {
	c := &m.Config
	switch {
	case c.Model == "gat" && last:
		return newGAT(b, in, out, c.OutHeads, c.OutHeads == 1, c.AttentionDropout, c.EdgeDim, o)
	case c.Model == "gat":
		return newGAT(b, in, out/c.Heads, c.Heads, true, c.AttentionDropout, c.EdgeDim, o)
	case c.Model == "gatv2" && last:
		return newGATv2(b, in, out, c.OutHeads, c.OutHeads == 1, c.AttentionDropout, c.EdgeDim, o)
	case c.Model == "gatv2":
		return newGATv2(b, in, out/c.Heads, c.Heads, true, c.AttentionDropout, c.EdgeDim, o)
	case c.Model == "sage-pool":
		return newSAGEPool(b, in, out, o)
	case c.Model == "film":
		return newFiLM(b, in, out, o)
	case c.Model == "gin" && c.EdgeDim > 0:
		return newGINE(b, in, c.Hidden, out, c.EdgeDim, c.TrainEps, o)
	case c.Model == "gin":
		return newGIN(b, in, c.Hidden, out, c.TrainEps, o)
	case strings.HasSuffix(c.Model, "gcn+") || c.Model == "gcn":
		return newGCN(b, in, out, o)
	case c.Model == "sage" && c.Aggregator == "gcn":
		return newSAGEGCN(b, in, out, o)
	}
	return newSAGE(b, in, out, o)
}

// deep is ResGCN+ and ResSAGE+: an encoder, a first layer, residual blocks, and a
// last norm and linear map (Li et al. 2020, §5). Layers counts graph layers.
func (m *Model) deep(b *builder) {
	c := &m.Config
	b.prefix = "node_encoder."
	m.append(b, newLinear(b, "", c.In, c.Hidden, output{}))
	for l := range c.Layers {
		b.layer = l
		b.prefix = fmt.Sprintf("layers.%d.conv.", l)
		conv := m.conv(b, c.Hidden, c.Hidden, false, output{layer: l, keepDY: l > 0})
		if l == 0 {
			m.append(b, conv)
			continue
		}
		b.prefix = fmt.Sprintf("layers.%d.norm.", l)
		norm := newNorm(b, c.Norm, "", c.Hidden, output{layer: l, act: tensor.ReLU, drop: c.Dropout})
		b.prefix = fmt.Sprintf("layers.%d.", l)
		m.append(b, &residual{norm: norm, conv: conv})
	}
	b.prefix, b.layer = "layers.0.norm.", c.Layers
	m.append(b, newNorm(b, c.Norm, "", c.Hidden, output{layer: c.Layers, act: tensor.ReLU, drop: c.Dropout}))
	b.prefix = "lin."
	m.append(b, newLinear(b, "", c.Hidden, c.Out, output{keepY: true}))
}

// append adds a module under the builder's prefix; a nil one (no norm) is left out.
func (m *Model) append(b *builder, mod Module) {
	if mod == nil {
		return
	}
	m.modules = append(m.modules, mod)
	m.params = append(m.params, len(b.params))
	m.names = append(m.names, strings.TrimSuffix(b.prefix, "."))
}

// Forward computes the logits [rows, Out], which the caller frees. Standardized targets are undone in passes that do not
// train.
func (m *Model) Forward(p *Pass, x Input) tensor.Matrix {
	h := m.dropInput(p, x)
	for i := 0; i < len(m.modules); i++ {
		mod, end := m.modules[i], p.span(m.names[i])
		var y tensor.Matrix
		if n := m.chained(p, i); n > 0 {
			y = m.forwardChain(p, i, n, h)
			i += n - 1
		} else {
			y = mod.Forward(p, h)
		}
		end()
		if !p.Train && i > 0 {
			p.Dev.Free(h.Matrix)
		}
		h = madeBy(mod, p, y)
	}
	if m.targets != nil && !p.Train {
		return m.targets.undo(p.Dev, h.Matrix)
	}
	return h.Matrix
}

// Backward adds the gradients for dlogits to every parameter's, and frees what
// Forward kept, and dlogits, which may be where the logits were.
func (m *Model) Backward(p *Pass, dlogits tensor.Matrix) { m.backward(p, dlogits, false) }

// BackwardInput is Backward, and returns the gradient of the input's rows, which the caller frees.
// The input is dense and not constant, and there is no dropout of it. Columns before p.InputFrom may be left out.
func (m *Model) BackwardInput(p *Pass, dlogits tensor.Matrix) tensor.Matrix {
	return m.backward(p, dlogits, true)
}

func (m *Model) backward(p *Pass, dlogits tensor.Matrix, input bool) tensor.Matrix {
	dy := dlogits
	clear(p.announced)
	for i := len(m.modules) - 1; i >= 0; i-- {
		end := p.span(m.names[i])
		if c, ok := m.modules[i].(*sumConv); ok {
			c.from = 0
			if i == 0 && input && c.eps == nil {
				c.from = p.InputFrom
			}
		}
		if m.chained(p, i) > 0 {
			i, dy = m.backwardChain(p, i, dy)
		} else {
			dy = m.modules[i].Backward(p, dy, i > 0 || input)
		}
		end()
		p.ready(m.Params[m.params[i]:m.params[i+1]]...)
	}
	m.freeInput(p)
	return dy
}

// dropInput applies dropout to the features, if asked for.
func (m *Model) dropInput(p *Pass, x Input) Input {
	d := p.dropout(0, drawInput, m.Config.Dropout)
	if !m.dropsInput() || d.P == 0 || x.Split != nil { // a split input is after dropout
		return x
	}
	if x.Sparse == nil {
		m.dropped = rows(p.Dev.Scratch(p.rowType(), x.Rows, x.Cols))
		p.Dev.Activate(m.dropped.Matrix, x.Matrix, tensor.Epilogue{Dropout: d})
		if x.Constant {
			m.dropped.Drawn = &Drawn{x.Matrix, d}
		}
		return m.dropped
	}
	n := int(x.Sparse.Entries())
	there := p.Dev.Scratch(p.Dev.Type(), n, 1)
	back := p.Dev.Scratch(p.Dev.Type(), n, 1)
	p.Dev.DropoutValues(there, x.Sparse, d, false)
	p.Dev.DropoutValues(back, x.SparseT, d, true)
	m.dropped = Input{Sparse: x.Sparse.WithValues(there), SparseT: x.SparseT.WithValues(back)}
	return m.dropped
}

func (m *Model) freeInput(p *Pass) {
	switch {
	case m.dropped.Sparse != nil:
		p.Dev.Free(m.dropped.Sparse.Values())
		p.Dev.Free(m.dropped.SparseT.Values())
	case !m.dropped.IsZero():
		p.Dev.Free(m.dropped.Matrix)
	}
	m.dropped = Input{}
}

// ZeroGrad clears all gradients.
func (m *Model) ZeroGrad(dev tensor.Device) {
	for _, p := range m.Params {
		dev.Zero(p.Grad)
	}
}

// Size is the number of trained numbers.
func (m *Model) Size() (n int) {
	for _, p := range m.Params {
		n += p.Value.Rows * p.Value.Cols
	}
	return n
}
