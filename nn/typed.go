package nn

import (
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/tensor"
)

// TypedConfig is what a model of a typed graph knows of its types.
type TypedConfig struct {
	Types     []TypeConfig     `json:"types" yaml:"types"`
	Relations []RelationConfig `json:"relations" yaml:"relations"`
	// Bases or Blocks make rgcn's weights of fewer numbers: Bases matrices are added up, or Blocks blocks are on a diagonal.
	Bases  int `json:"bases,omitempty" yaml:"bases,omitempty"`
	Blocks int `json:"blocks,omitempty" yaml:"blocks,omitempty"`
	// Outputs are the types whose rows are read of the last layer; none: all. Rows that these do not need are zero.
	Outputs []int `json:"outputs,omitempty" yaml:"outputs,omitempty"`
	// Scored are the relations whose edges a decoder scores.
	Scored []int `json:"scored,omitempty" yaml:"scored,omitempty"`
}

// TypeConfig is one type of vertices.
type TypeConfig struct {
	Name string `json:"name" yaml:"name"`
	In   int    `json:"in" yaml:"in"` // width of its features; 0: none, its rows are learnt
}

// RelationConfig is one relation; Source and Target are numbers of types.
type RelationConfig struct {
	Source int    `json:"source" yaml:"source"`
	Name   string `json:"name" yaml:"name"`
	Target int    `json:"target" yaml:"target"`
}

// TypedOf describes the types of a schema.
func TypedOf(s *graph.Schema) *TypedConfig {
	c := &TypedConfig{}
	for i := range s.Types {
		t := &s.Types[i]
		in := 0
		if t.Features != nil {
			in = t.Features.Dim
		}
		c.Types = append(c.Types, TypeConfig{t.Name, in})
	}
	for i := range s.Relations {
		r := &s.Relations[i]
		c.Relations = append(c.Relations, RelationConfig{r.Source, r.Name, r.Target})
	}
	return c
}

// key is the name of a relation in PyG's HeteroConv.
func (c *TypedConfig) key(r int) string {
	rel := &c.Relations[r]
	return fmt.Sprintf("<%s___%s___%s>", c.Types[rel.Source].Name, rel.Name, c.Types[rel.Target].Name)
}

// into lists the relations that lead to a type, from those that start at it.
func (c *TypedConfig) into(t int) (list []int) {
	for r := range c.Relations {
		if c.Relations[r].Target == t {
			list = append(list, r)
		}
	}
	return list
}

func (c *TypedConfig) from(t int) (list []int) {
	for r := range c.Relations {
		if c.Relations[r].Source == t {
			list = append(list, r)
		}
	}
	return list
}

// needed are, by layer over relations and type, the rows that the outputs need: of the last layer their own, of one
// before also those that relations bring to them.
func (c *TypedConfig) needed(layers int) [][]bool {
	need := make([][]bool, layers)
	for l := layers - 1; l >= 0; l-- {
		need[l] = make([]bool, len(c.Types))
		for t := range c.Types {
			need[l][t] = len(c.Outputs) == 0 || l < layers-1 && need[l+1][t]
		}
		if l == layers-1 {
			for _, t := range c.Outputs {
				need[l][t] = true
			}
			continue
		}
		for _, r := range c.Relations {
			if need[l+1][r.Target] {
				need[l][r.Source] = true
			}
		}
	}
	return need
}

// typed is an encoder for every type, then layers over relations. rgat ends in a linear map, as MLPerf's does, and so does
// hgt, as the authors' does; simplehgn ends in rows of length 1.
func (m *Model) typed(b *builder) {
	c := &m.Config
	need := c.Typed.needed(c.Layers)
	b.prefix = "node_encoder."
	m.append(b, newEncoder(b, c.Typed, c.Hidden))
	for l := range c.Layers {
		last := l == c.Layers-1
		b.prefix, b.layer = fmt.Sprintf("convs.%d.", l), l
		out, o := c.Hidden, output{layer: l, act: m.activation(), drop: c.Dropout}
		if last {
			out, o = c.typedOut(), output{layer: l, keepY: !c.EndsLinear() && c.Model != "simplehgn"}
		}
		m.convs++
		m.append(b, m.typedConv(b, out, o, need[l]))
	}
	switch {
	case c.EndsLinear():
		b.prefix, b.layer = "lin.", c.Layers
		m.append(b, newLinear(b, "", c.Hidden, c.Out, output{keepY: true}))
	case c.Model == "simplehgn":
		b.prefix, b.layer = "unit.", c.Layers
		m.append(b, newUnitRows(b, c.Out, output{layer: c.Layers, keepY: true}))
	}
}

// EndsLinear reports whether a linear map follows the last layer over relations.
func (c *Config) EndsLinear() bool { return c.Model == "rgat" || c.Model == "hgt" }

// typedOut is the width of the last layer over relations.
func (c *Config) typedOut() int {
	if c.EndsLinear() {
		return c.Hidden
	}
	return c.Out
}

func (m *Model) typedConv(b *builder, out int, o output, need []bool) Module {
	c := &m.Config
	switch c.Model {
	case "rgat":
		return newRGAT(b, c.Typed, c.Hidden, out, c.Heads, c.AttentionDropout, o, need)
	case "hgt":
		o.act = tensor.NoAct // the layer has one inside
		return newHGT(b, c.Typed, c.Hidden, out, c.Heads, c.AttentionDropout, o, need)
	case "simplehgn":
		heads := 1 // of the last layer
		if o.layer < c.Layers-1 {
			heads, o.act = c.Heads, tensor.ELU
		}
		return newSimpleHGN(b, c.Typed, c.Hidden, out, heads, RelationWidth, c.AttentionDropout, o, need)
	case "hsage":
		return newRelational(c.Typed, c.Hidden, out, o, need, newHSAGE(b, c.Typed, c.Hidden, out))
	}
	return newRelational(c.Typed, c.Hidden, out, o, need, newRGCN(b, c.Typed, c.Hidden, out))
}

// validateTyped names the first setting of a typed model that makes no sense.
func (c *Config) validateTyped() error {
	t := c.Typed
	switch {
	case len(t.Types) == 0 || len(t.Relations) == 0:
		return fmt.Errorf("a model of %d types and %d relations: the graph needs some of both", len(t.Types), len(t.Relations))
	case c.Layers < 1 || c.Layers > 1000:
		return fmt.Errorf("layers is %d; it must be from 1 to 1000", c.Layers)
	case c.Hidden < 1 || c.Hidden > 1<<16:
		return fmt.Errorf("hidden is %d; it must be from 1 to 65536", c.Hidden)
	case c.Out < 1:
		return fmt.Errorf("a model of %d outputs: the dataset needs labels", c.Out)
	case c.Decoder != "" && !slices.Contains(RelationDecoders, c.Decoder):
		return fmt.Errorf("decoder %q is not one of %s", c.Decoder, strings.Join(RelationDecoders, ", "))
	case (c.Decoder != "") != (len(t.Scored) > 0):
		return fmt.Errorf("decoder %q of %d relations: a decoder scores the edges of some", c.Decoder, len(t.Scored))
	case slices.ContainsFunc(t.Scored, func(r int) bool { return r < 0 || r >= len(t.Relations) }):
		return fmt.Errorf("relations %v are scored, and there are %d", t.Scored, len(t.Relations))
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("dropout is %g; it must be at least 0 and below 1", c.Dropout)
	case !(c.AttentionDropout >= 0 && c.AttentionDropout < 1):
		return fmt.Errorf("attention dropout is %g; it must be at least 0 and below 1", c.AttentionDropout)
	case HasHeads(c.Model) && (c.Heads < 1 || c.Hidden%c.Heads != 0):
		return fmt.Errorf("hidden %d does not divide into %d heads; choose a multiple", c.Hidden, c.Heads)
	case c.Model == "rgcn" && t.Bases > 0 && t.Blocks > 0:
		return fmt.Errorf("rgcn has bases or blocks, not both")
	case t.Blocks > 0 && (c.Hidden%t.Blocks != 0 || c.Out%t.Blocks != 0):
		return fmt.Errorf("%d blocks do not divide hidden %d and %d outputs", t.Blocks, c.Hidden, c.Out)
	}
	return nil
}

// relationWeights are the weights of a layer over relations, as the layer uses them. They are made of parameters in every
// pass, and their gradients go back to these.
type relationWeights interface {
	// weights returns the weights of all relations, one below the other: [relations·in, out].
	weights(p *Pass) tensor.Matrix
	// learn adds the gradient of weights to the parameters'.
	learn(p *Pass, dw tensor.Matrix)
	// root is the weight of a vertex's own row, and bias what is added, by type; either may be none.
	root(p *Pass, t int) tensor.Matrix
	bias(p *Pass, t int) tensor.Matrix
	learnRoot(p *Pass, t int, x, dy tensor.Matrix, zeros float32)
	learnBias(p *Pass, t int, dy tensor.Matrix)
	// release frees what the pass made of parameters.
	release(p *Pass)
}

// relational is the layer behind R-GCN and GraphSAGE by relation:
//
//	y_i = dropout(act( Σr (mean over j in N_r(i) of x_j)·W_r + x_i·R_t + b_t ))
//
// with r over the relations that lead to t, the type of i. x [n, in], W_r and R_t [in, out], y [n, out].
//
// Forwards rows are summed by relation and then meet all weights at once. Backwards, with g the gradient before the
// activation, sources collect g by relation, s_r = A_rᵀ·g, and then dx = Σr s_r·W_rᵀ and dW_r = xᵀ·s_r. Both go
// through a few rows at a time, so that nothing of relations times vertices times width is kept. Where y is much wider
// than x, edges carry rows as wide as x backwards too: see wideGrads. Only rows of needed types are computed.
type relational struct {
	output
	untransformed
	of    relationWeights
	types *TypedConfig
	wide  int    // of y
	need  []bool // by type

	w tensor.Matrix
}

func newRelational(c *TypedConfig, in, out int, o output, need []bool, w relationWeights) *relational {
	return &relational{output: o, untransformed: untransformed{in: in}, of: w, types: c, wide: out, need: need}
}

// steps is how many rows are summed by relation at a time; each has this number of numbers.
func (l *relational) steps(numbers int) int { return max(1, l.p.Dev.Chunk()/numbers) }

func (l *relational) Forward(p *Pass, x Input) tensor.Matrix {
	return forward(l, p, x, l.sourceRows(p))
}

func (l *relational) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

func (l *relational) begin(p *Pass, x Input) tensor.Matrix {
	dst := l.take(p, l.layer, x)
	l.w = l.of.weights(p)
	l.y = p.Dev.Scratch(p.rowType(), dst, l.wide)
	return l.y
}

func (l *relational) gather(p *Pass) { p.Agg.Edgewise(l) }

// EdgeForward makes rows of y of sums by relation.
func (l *relational) EdgeForward(e *Edges, lo, hi int) {
	for i := range e.Related.Targets {
		run := &e.Related.Targets[i]
		from, to, ok := run.clip(lo, hi)
		k := len(run.Relations)
		if !ok || k == 0 || !l.need[run.Type] {
			continue
		}
		step := l.steps(k * l.in)
		for ; from < to; from += step {
			hi := min(from+step, to)
			s := l.sums(e.Related, run, from, hi)
			l.p.Dev.MatMul(l.y.Slice(from, hi), s, l.weightsOf(run, l.w), tensor.MatMul{})
			l.p.Dev.Free(s)
		}
	}
}

// weightsOf are the rows of a matrix of all relations' weights that are of those of a run, which follow each other.
func (l *relational) weightsOf(run *RelatedRun, w tensor.Matrix) tensor.Matrix {
	first := run.Relations[0] * l.in
	return w.Slice(first, first+len(run.Relations)*l.in)
}

// sums are the means by relation for rows lo to hi: [hi-lo, k·in].
func (l *relational) sums(r *Related, run *RelatedRun, lo, hi int) tensor.Matrix {
	first, end := run.rows(lo, hi)
	s := l.p.Dev.Scratch(l.p.rowType(), end-first, l.in)
	l.p.Dev.Aggregate(s, r.in.Slice(first, end), l.msg, tensor.Aggregate{RowScale: r.mean.Slice(first, end)})
	return s.Reshape(hi-lo, len(run.Relations)*l.in)
}

// eachType calls f with the rows of each type among lo to hi.
func eachType(p *Pass, lo, hi int, f func(t, lo, hi int)) {
	for _, run := range p.Types {
		if from, to := max(lo, run.Lo), min(hi, run.Hi); from < to {
			f(run.Type, from, to)
		}
	}
}

func (l *relational) finish(p *Pass, lo, hi int) {
	eachType(p, lo, hi, func(t, lo, hi int) {
		if !l.need[t] {
			p.Dev.Zero(l.y.Slice(lo, hi))
			return
		}
		y, after := l.y.Slice(lo, hi), l.after(p, lo, hi)
		after.Bias = l.of.bias(p, t)
		summed := len(l.types.into(t)) > 0
		root := l.of.root(p, t)
		switch {
		case !root.IsZero():
			l.x.times(p.Dev, y, root, lo, hi, summed, after)
		case summed:
			p.Dev.Activate(y, y, after)
		default:
			p.Dev.Zero(y)
			p.Dev.Activate(y, y, after)
		}
	})
}

func (l *relational) end(p *Pass) {
	if !p.Train {
		l.freePass(p)
	}
}

func (l *relational) freePass(p *Pass) {
	l.freeMessages(p)
	l.w = tensor.Matrix{}
	l.of.release(p)
}

func (l *relational) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.in) }

func (l *relational) makeSentGrads(p *Pass) {
	l.dmsg = p.Dev.Scratch(p.rowType(), l.msg.Rows, l.in)
}

func (l *relational) finishGrad(p *Pass, lo, hi int) { l.grad(p, lo, hi) }

func (l *relational) finishWeightGrad(p *Pass, lo, hi int) {
	eachType(p, lo, hi, func(t, lo, hi int) {
		if !l.need[t] {
			return
		}
		dy := l.dy.Slice(lo, hi)
		l.of.learnBias(p, t, dy)
		l.of.learnRoot(p, t, l.x.Slice(lo, hi), dy, l.zeros(p))
	})
}

func (l *relational) gatherGrad(p *Pass) { p.Agg.EdgewiseGrad(l) }

// EdgeBackward makes the gradients of all that was sent, and those of weights.
func (l *relational) EdgeBackward(e *Edges) {
	dev := l.p.Dev
	dw := dev.New(dev.Type(), l.w.Rows, l.w.Cols)
	if l.wide > 2*l.in {
		l.wideGrads(e.Related, dw)
	} else {
		l.narrowGrads(e.Related, dw)
	}
	l.of.learn(l.p, dw)
	dev.Free(dw)
}

// wideGrads has targets make what goes back along each relation, d_r = g·W_rᵀ, which is as wide as x, and sources sum
// it, dx = Σr A_rᵀ·d_r. The means of the forward pass are made again for dW_r = s_rᵀ·g. Edges are gone through twice for
// rows of x's width, instead of once for rows of y's.
func (l *relational) wideGrads(r *Related, dw tensor.Matrix) {
	dev := l.p.Dev
	back := dev.Scratch(l.p.rowType(), r.in.Rows, l.in)
	for i := range r.Targets {
		run := &r.Targets[i]
		if len(run.Relations) > 0 {
			l.targetGrads(r, run, back, dw)
		}
	}
	dev.Aggregate(l.dmsg, r.backRows(), back, tensor.Aggregate{})
	dev.Free(back)
}

func (l *relational) targetGrads(r *Related, run *RelatedRun, back, dw tensor.Matrix) {
	dev, k := l.p.Dev, len(run.Relations)
	if !l.need[run.Type] {
		dev.Zero(back.Slice(run.rows(run.Lo, run.Hi)))
		return
	}
	w, dw := l.weightsOf(run, l.w), l.weightsOf(run, dw)
	step := l.steps(k * l.in)
	for lo := run.Lo; lo < run.Hi; lo += step {
		hi := min(lo+step, run.Hi)
		dy := l.dy.Slice(lo, hi)
		s := l.sums(r, run, lo, hi)
		dev.MatMul(dw, s, dy, tensor.MatMul{TransA: true, Add: true, ZerosB: l.zeros(l.p)})
		dev.Free(s)
		d := back.Slice(run.rows(lo, hi)).Reshape(hi-lo, k*l.in)
		dev.MatMul(d, dy, w, tensor.MatMul{TransB: true, ZerosA: l.zeros(l.p)})
	}
}

// narrowGrads has sources collect the gradients of targets.
func (l *relational) narrowGrads(r *Related, dw tensor.Matrix) {
	for i := range r.Sources {
		run := &r.Sources[i]
		if len(run.Relations) == 0 {
			l.p.Dev.Zero(l.dmsg.Slice(run.Lo, run.Hi))
			continue
		}
		l.sourceGrads(r, run, dw)
	}
}

// sourceGrads goes through the rows of a run. Weights of its relations are side by side for it: [in, k·out].
func (l *relational) sourceGrads(r *Related, run *RelatedRun, dw tensor.Matrix) {
	dev, k := l.p.Dev, len(run.Relations)
	w := dev.Scratch(dev.Type(), l.in, k*l.wide)
	dside := dev.New(dev.Type(), l.in, k*l.wide)
	for i, rel := range run.Relations {
		dev.Copy(w.Columns(i*l.wide, (i+1)*l.wide), l.w.Slice(rel*l.in, (rel+1)*l.in))
	}
	step := l.steps(k * l.wide)
	for lo := run.Lo; lo < run.Hi; lo += step {
		hi := min(lo+step, run.Hi)
		first, end := run.rows(lo, hi)
		s := dev.Scratch(l.p.rowType(), end-first, l.wide)
		dev.Aggregate(s, r.outMean.Slice(first, end), l.dy, tensor.Aggregate{})
		s = s.Reshape(hi-lo, k*l.wide)
		dev.MatMul(l.dmsg.Slice(lo, hi), s, w, tensor.MatMul{TransB: true})
		dev.MatMul(dside, l.msg.Slice(lo, hi), s, tensor.MatMul{TransA: true, Add: true})
		dev.Free(s)
	}
	for i, rel := range run.Relations {
		d := dw.Slice(rel*l.in, (rel+1)*l.in)
		dev.Combine(d, 1, d, 1, dside.Columns(i*l.wide, (i+1)*l.wide))
	}
	dev.Free(w)
	dev.Free(dside)
}

func (l *relational) rootGrad(*Pass, int, int) {}

func (l *relational) sendGrad(p *Pass, lo, hi int) {
	dx := l.makeDX(p)
	if dx.IsZero() {
		return
	}
	p.Dev.Copy(dx.Slice(lo, hi), l.dmsg.Slice(lo, hi))
	eachType(p, lo, min(hi, l.dy.Rows), func(t, lo, hi int) {
		if root := l.of.root(p, t); l.need[t] && !root.IsZero() {
			p.Dev.MatMul(dx.Slice(lo, hi), l.dy.Slice(lo, hi), root, tensor.MatMul{TransB: true, Add: true, ZerosA: l.zeros(p)})
		}
	})
}

func (l *relational) sendWeightGrad(*Pass, int, int) {}

func (l *relational) endGrad(p *Pass) {
	l.freePass(p)
	l.forget(p)
}
