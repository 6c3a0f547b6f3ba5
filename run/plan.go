package run

import (
	"fmt"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/tensor"
	"starling/train"
)

// Plan is what a run will need, said before it starts.
type Plan struct {
	Parameters int
	// Matrices is the memory of parameters, activations and gradients.
	Matrices int64
	// Graph is the memory of further copies of the graph and the features that the
	// model needs: with self-loops, transposed, scaled.
	Graph int64
	// Mapped is the size of the dataset's files in use. The kernel may drop and reread
	// their pages, so they need not fit.
	Mapped int64
	// CacheFirst is whether the first layer's sums are kept.
	CacheFirst bool

	// Of several workers: the above is of all together, Largest the Matrices of the
	// one with most. What all of them send, once, in an epoch, and to measure.
	Workers                          int
	Largest                          int64
	SentOnce, SentEpoch, SentMeasure int64
	AtMost                           bool // or less: it depends on the numbers computed
	Unplanned                        bool // it is known only when the workers have met
	// Rows between servers in a layer, and as many if each goes to a server once.
	Between, Once int64
}

// Needed is the memory that must fit.
func (p *Plan) Needed() int64 { return p.Matrices + p.Graph }

// String is the plan as comment lines of a starling.yaml.
func (p *Plan) String() string {
	free := "unknown"
	if n := tensor.MemoryFree(); n > 0 {
		free = event.Bytes(n)
	}
	if p.Workers > 0 {
		text := fmt.Sprintf("# plan:\n#   workers %d, parameters %s\n#   memory %s: matrices %s (largest worker %s), graph %s; available %s\n#   mapped files %s\n#   bytes sent %s\n",
			p.Workers, event.Count(int64(p.Parameters)), event.Bytes(p.Needed()), event.Bytes(p.Matrices), event.Bytes(p.Largest), event.Bytes(p.Graph), free,
			event.Bytes(p.Mapped), p.sends())
		if hint := train.RelayHint(p.Between, p.Once); hint != "" {
			text += "#   " + hint + "\n"
		}
		return text
	}
	cache := map[bool]string{true: "kept", false: "not kept"}[p.CacheFirst]
	return fmt.Sprintf("# plan:\n#   parameters %s\n#   memory %s: matrices %s, graph %s; available %s\n#   mapped files %s\n#   first layer's sums %s\n#   bytes sent 0\n",
		event.Count(int64(p.Parameters)), event.Bytes(p.Needed()), event.Bytes(p.Matrices), event.Bytes(p.Graph), free, event.Bytes(p.Mapped), cache)
}

// sends is what the workers will send, as far as is known.
func (p *Plan) sends() string {
	if p.Unplanned {
		return "are planned when the workers have met, and so is what they keep of others' vertices"
	}
	text := fmt.Sprintf("once %s, an epoch %s, a measurement %s", event.Bytes(p.SentOnce), event.Bytes(p.SentEpoch), event.Bytes(p.SentMeasure))
	if p.AtMost {
		text += ", or less"
	}
	return text
}

// plan runs an epoch of s on a device that only counts.
func plan(s *Spec, data *graph.Dataset) (p *Plan, err error) {
	defer func() {
		// The device panics where even addresses are refused.
		if r := recover(); r != nil {
			err = fmt.Errorf("the plan of this run failed: %v", r)
		}
	}()
	n := data.Graph.Nodes()
	p = &Plan{CacheFirst: s.CacheFirst == "on", Mapped: mapped(data), Graph: graphBytes(s, data)}
	if s.ofPairs() {
		matrices, host := s.pairBytes(data.Graph)
		p.Graph += host
		defer func() { p.Matrices += matrices }()
	}
	if w := s.weightBytes(&data.Meta); w > tensor.MemoryTotal()/4 && tensor.MemoryTotal() > 0 {
		// Building such a model to count would itself not fit.
		p.Matrices = w + int64(n)*int64(s.Hidden)*int64(s.Layers*s.rows().Size())
		return p, nil
	}
	dev := newDry(s.rows())
	defer dev.Close()
	measureOn := &dryGraph{edgeDim: s.modelConfig(&data.Meta).EdgeDim, dev: dev, n: n, count: int(data.Graph.Edges()), cache: p.CacheFirst, sums: map[nn.Reduction]tensor.Matrix{}}
	if s.Mode == "mini" {
		p.planMini(s, data, dryInput(dev, s, data.Features), measureOn)
		return p, nil
	}
	trainOn := measureOn
	if s.Inductive {
		other := *measureOn
		other.sums = map[nn.Reduction]tensor.Matrix{}
		trainOn = &other
	}
	p.dryEpoch(s, &data.Meta, dryInput(dev, s, data.Features), trainOn, measureOn)
	return p, nil
}

// dryEpoch trains and measures on paper.
func (p *Plan) dryEpoch(s *Spec, data *graph.Meta, x nn.Input, trainOn, measureOn *dryGraph) {
	dev := trainOn.dev
	model := nn.New(dev, s.modelConfig(data), s.Seed)
	optim := nn.NewOptimiser(dev, model.Params, s.optimConfig())
	p.Parameters = model.Size()
	pass := func(on *dryGraph, train bool) *nn.Pass {
		return &nn.Pass{Dev: dev, Agg: on, Train: train, Vertices: data.Nodes, Rows: s.rows(), Key: rng.New(s.Seed)}
	}
	// Measuring may keep what training then has beside it, so training comes twice.
	for range 2 {
		training := pass(trainOn, true)
		logits := model.Forward(training, x)
		model.Backward(training, logits)
		dev.Free(logits)
		optim.Step(s.LR)
		dev.Free(model.Forward(pass(measureOn, false), x))
	}
	p.Matrices = dev.footprint()
}

// weightBytes is about what weights, gradients and the optimiser's state take.
func (s *Spec) weightBytes(data *graph.Meta) int64 {
	h := int64(s.Hidden)
	return 16 * h * (int64(data.Features.Dim) + h*int64(s.Layers-1) + int64(s.outputs(data)))
}

// dryInput takes the memory that features take on the device.
func dryInput(dev *dry, s *Spec, f *graph.Features) nn.Input {
	if f.Kind() == graph.Sparse {
		sparse := dev.SparseMatrix(f.Rows, f.Cols, f.Indptr, f.Indices, f.Values)
		// The transpose has as many entries; which row they are in does not matter here.
		ptr := make([]int64, f.Cols+1)
		ptr[f.Cols] = int64(len(f.Indices))
		return nn.Input{Sparse: sparse, SparseT: dev.SparseTranspose(sparse, ptr, f.Indices, nil), Constant: true}
	}
	own := tensor.F32
	if f.Kind() == graph.BFloat16 {
		own = tensor.BF16
	}
	if t := dev.RowType(s.rows()); t != own {
		return nn.Input{Matrix: dev.Scratch(t, f.Rows, f.Cols), Constant: true}
	}
	if own == tensor.BF16 {
		return nn.Input{Matrix: dev.FromHostBF16(f.Rows, f.Cols, f.BF16), Constant: true}
	}
	return nn.Input{Matrix: dev.FromHost(f.Rows, f.Cols, f.F32), Constant: true}
}

// mapped is the size of the arrays that training reads.
func mapped(d *graph.Dataset) (n int64) {
	f := d.Features
	n = 8*int64(len(d.Graph.Indptr)) + 4*int64(len(d.Graph.Indices)) + 4*int64(len(d.Graph.Weights))
	if l := d.Labels; l != nil {
		n += 4*int64(len(l.Class)) + int64(len(l.Multi)) + 4*int64(len(l.Values))
	}
	return n + 4*int64(len(f.F32)) + 2*int64(len(f.BF16)) + 8*int64(len(f.Indptr)) + 4*int64(len(f.Indices)) + 4*int64(len(f.Values))
}

// graphBytes is what nn.Topology, input and labels make beside the mapped arrays.
func graphBytes(s *Spec, d *graph.Dataset) int64 {
	n, e := int64(d.Graph.Nodes()), d.Graph.Edges()
	var perGraph int64
	switch {
	case s.Model == "mlp":
	case nn.Attends(s.Model): // with loops, forwards, backwards and the places of edges
		perGraph = 2*8*n + 3*4*(e+n)
	case d.Graph.Weights != nil:
		perGraph = 8*n + 3*4*e
	case !d.Meta.Symmetric: // backwards; the list of places is dropped but was there
		perGraph = 8*n + 2*4*e
	}
	if dim := int64(d.Graph.EdgeDim); s.EdgeFeatures && s.Model == "gin" { // backwards, and the places of edges
		perGraph += 8*n + 2*4*e
	} else if s.EdgeFeatures { // with those of loops
		perGraph += 4 * dim * (e + n)
	}
	directions := int64(2)
	if d.Meta.Symmetric {
		directions = 1
	}
	perGraph += 4*n + s.scaleBytes(directions*e, d.Graph.Weights != nil) // scales
	total := perGraph
	if s.Inductive {
		share := float64(len(d.Splits.Train)) / float64(max(n, 1))
		total += int64(share*share*float64(perGraph+4*e)) + 8*n
	}
	f, entries := d.Features, int64(len(d.Features.Values))
	if f.Kind() == graph.Sparse {
		total += (4+4+4)*entries + 8*int64(f.Cols)
	}
	if s.RowNormalize {
		total += 4*entries + 4*int64(len(f.F32)) + 2*int64(len(f.BF16))
	}
	return total + labelBytes(s, d.Labels, n)
}

// scaleBytes is what so many edges keep of their columns' scales, which those of
// gcn without weights have with them.
func (s *Spec) scaleBytes(edges int64, weighted bool) int64 {
	if weighted || s.Mode == "mini" || s.Model != "gcn" && s.Model != "resgcn+" {
		return 0
	}
	return edges * map[bool]int64{true: 8, false: 4}[s.DType == "f64"]
}

// labelBytes is what labels of n vertices take on the device beside the mapped ones.
func labelBytes(s *Spec, l *graph.Labels, n int64) int64 {
	switch {
	case l == nil:
		return 0
	case l.Multi != nil && s.DType == "f64" || l.Values != nil && s.DType == "f64":
		return 8 * n * int64(l.Classes)
	case l.Multi != nil: // marks as bfloat16
		return 2 * n * int64(l.Classes)
	case l.Values != nil:
		return 0
	}
	return 4 * n
}

// resolve settles what auto means for this dataset on this machine. It looks at
// the machine's memory, not at what is free now, so that the same run gives the
// same numbers tomorrow.
func (s *Spec) resolve(data *graph.Meta, level string) {
	if s.SIMD == "auto" {
		s.SIMD = level
	}
	if s.CacheFirst != "auto" {
		return
	}
	s.CacheFirst = "off"
	f := data.Features
	more := data.Nodes * int64(f.Dim) * int64(s.rows().Size())
	if total := tensor.MemoryTotal(); f.Kind != graph.Sparse && (total == 0 || more < total/4) {
		s.CacheFirst = "on"
	}
}

// fits refuses a run that needs more than the free memory (0: unknown), and says
// what would fit.
func (s *Spec) fits(p *Plan, data *graph.Dataset, free int64) error {
	if !s.MemoryCheck || free == 0 || p.Needed() <= free {
		return nil
	}
	err := &graph.InputError{Field: "memory", Found: fmt.Sprintf("a run that needs %s (matrices %s, graph %s)", event.Bytes(p.Needed()), event.Bytes(p.Matrices), event.Bytes(p.Graph)),
		Want: fmt.Sprintf("at most the %s available", event.Bytes(free)), Fix: "nothing smaller of this model fits: use a machine with more memory (or try anyway with --memory-check=false)"}
	var fitting []string
	for _, other := range s.smaller() {
		if len(fitting) == 3 {
			break
		}
		if q, e := plan(&other.spec, data); e == nil && q.Needed() <= free {
			fitting = append(fitting, fmt.Sprintf("%s (%s)", other.flags, event.Bytes(q.Needed())))
		}
	}
	if len(fitting) > 0 {
		err.Fix = "these would fit: " + strings.Join(fitting, ", ") + "; --memory-check=false tries anyway"
	}
	return err
}

type variant struct {
	flags string
	spec  Spec
}

// smaller lists ways to need less memory, least painful first.
func (s *Spec) smaller() (list []variant) {
	now, flags := *s, ""
	step := func(flag string, change func(*Spec)) {
		change(&now)
		flags = strings.TrimSpace(flags + " " + flag)
		list = append(list, variant{flags, now})
	}
	if now.CacheFirst == "on" {
		step("--cache-first off", func(s *Spec) { s.CacheFirst = "off" })
	}
	if now.DType == "f32" || now.DType == "f64" {
		step("--dtype bf16", func(s *Spec) { s.DType = "bf16" })
	}
	base := flags
	for h := s.Hidden / 2; h >= 16 && (!nn.Attends(s.Model) || h%s.Heads == 0); h /= 2 {
		flags = base
		step(fmt.Sprintf("--hidden %d", h), func(s *Spec) { s.Hidden = h })
	}
	return list
}
