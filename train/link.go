package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
)

// LinkOptions say which pairs of vertices a model learns to tell from others.
//
// The loss is binary cross-entropy with logits: of the scores of pairs against 1, and
// of those of negatives against 0,
//
//	-log σ(s(u,v)) - Σ over negatives w of log σ(-s(u,w))
//
// in the mean over all of them, or, with PerPositive, over positives: the latter is
// the loss of unsupervised GraphSAGE (Hamilton, Ying and Leskovec 2017, eq. 1).
type LinkOptions struct {
	// Graph is what messages pass over, in training and in measuring.
	Graph *graph.CSR
	// Pairs are learnt from, with PerPair negatives against each.
	Pairs       sample.PairSource
	Negatives   *sample.Negatives
	PerPair     int
	PerPositive bool
	NegativeOptions
	// Val and Test are what is measured on; nil: nothing.
	Val, Test *sample.Ranked
	// Unranked leaves out the ranks at the end: of a memory dry run.
	Unranked bool
}

// PairOptions say which pairs several workers learn from, before they know their graph: the
// edges that are not held out, or with Walks pairs that meet on walks, as sample.Walks has them.
type PairOptions struct {
	ValEdges, TestEdges float64 // shares of edges that are held out
	Walks, WalkLength   int     // per vertex and epoch; 0 walks: edges
	// Negatives: how many there are of a pair, by degree to a power (0: uniform), whether they
	// avoid training edges, and whether a worker draws them among its own vertices only.
	PerPair int
	Power   float64
	Avoid   bool
	Local   bool
	NegativeOptions
	// RankNegatives is how many a pair is ranked among.
	RankNegatives int
	// Lists are the pairs that are measured on, instead of edges that are held out; nil: none are given.
	Lists *sample.Lists
	// Relations, of a typed graph, are those whose edges are pairs: see relation.go. nil: pairs are of vertices without
	// types.
	Relations []int
}

// Sets are the edges that are held out of a graph without types.
func (o *PairOptions) Sets(seed uint64) sample.EdgeSets {
	switch {
	case o.Walks > 0:
		return sample.NewEdgeSets(0, 0, seed)
	case o.Lists != nil:
		return sample.ListedEdges(o.Lists)
	}
	return sample.NewEdgeSets(o.ValEdges, o.TestEdges, seed)
}

// Has reports whether there are pairs of a set to measure on.
func (o *PairOptions) Has(set int) bool {
	switch {
	case o.Lists != nil:
		return o.Lists.Of(set) != nil
	case set == sample.ValEdges:
		return o.ValEdges > 0
	}
	return o.TestEdges > 0
}

// Link trains a model whose rows a decoder can tell pairs by, in this process: an epoch
// is one step over the whole graph and all pairs. The metric is the area under the curve
// of the pairs of Val and Test against their negatives; ranks are measured once, at the
// best weights.
func Link(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, link LinkOptions,
	events event.Listener) (*Result, error) {
	l, err := NewLinks(dev, data, opt, link, events)
	if err != nil {
		return nil, err
	}
	return l.Run(ctx, data)
}

// Links is a loop's training on pairs.
type Links struct {
	*Loop
	link  LinkOptions
	drawn sample.Drawn
	all   []uint32 // 0, 1, 2, ...
}

// NewLinks puts the graph and the features on the device.
func NewLinks(dev tensor.Device, data *graph.Dataset, opt Options, link LinkOptions, events event.Listener) (*Links,
	error) {
	switch {
	case data.Features == nil:
		return nil, fmt.Errorf("dataset %s: training needs features", data.Dir)
	case opt.Model.Decoder == "":
		return nil, fmt.Errorf("a model without a decoder cannot score pairs")
	case opt.Inductive:
		return nil, fmt.Errorf("inductive training is of vertices; pairs are held out instead")
	}
	if err := link.Graph.CheckLocal(); err != nil {
		return nil, err
	}
	if events == nil {
		events = event.All()
	}
	on := local{nn.NewLocal(nn.NewTopology(dev, link.Graph), opt.CacheFirst)}
	f, err := NewLoop(dev, Share{X: Input(dev, data.Features, opt), Task: pairTask{}, TrainOn: on, MeasureOn: on,
		Vertices: int64(link.Graph.Nodes())}, Alone{}, opt, events)
	if err != nil {
		return nil, err
	}
	l := &Links{Loop: f, link: link}
	f.TrainEpoch, f.Measure = l.epoch, l.measureLinks
	return l, nil
}

// LinksOn is a loop's training on pairs, which the caller draws: of link only the negatives per
// pair and what a loss is a mean over are used.
func LinksOn(f *Loop, link LinkOptions) *Links { return &Links{Loop: f, link: link} }

// Run trains, and ranks at the best weights.
func (l *Links) Run(ctx context.Context, data *graph.Dataset) (*Result, error) {
	l.Events.On(event.Started{Dataset: data.Meta.Name, Model: l.Opt.Model.Model, Strategy: "none", Workers: 1,
		Vertices: l.Vertices, Edges: l.link.Graph.Edges(), Parameters: l.Model.Size(),
		FirstEpoch: l.State.Epoch, Epochs: l.Opt.Epochs, Metric: l.metric.Name})
	r, unsaved := l.Loop.Run(ctx)
	if r == nil {
		return nil, unsaved
	}
	if err := l.rank(r); err != nil {
		return nil, errors.Join(err, unsaved)
	}
	return r, unsaved
}

// pairTask names the metric. Its losses and counts are not sums over rows, so they
// are computed here and not by a task.
type pairTask struct{ nn.Task }

func (pairTask) Name() string { return "auc" }

// Width is of counts that workers sum; there are none.
func (pairTask) Width() int { return 0 }

// epoch is one step over the whole graph and all pairs.
func (l *Links) epoch(epoch int, lr float64) (float64, error) {
	l.drawn.Draw(l.link.Pairs, l.link.Negatives, l.link.Candidates(), epoch, 0, l.upTo(l.link.Pairs.Len()))
	if l.drawn.Positives == 0 {
		return 0, Mistake("no walk of epoch %d meets another vertex: the graph has hardly any edges", epoch)
	}
	p := l.Pass(l.TrainOn, true, epoch)
	l.Model.ZeroGrad(l.Dev)
	end := l.Span("step")("forward")
	z := l.Model.Forward(p, l.X)
	end()
	dz, losses := l.Backward(p, z, l.drawn.Left, l.drawn.Right, l.drawn.Positives, l.Scale(l.drawn.Positives))
	l.Dev.Free(z)
	p.Span = l.Span("backward")
	end = l.Span("step")("backward")
	l.Model.Backward(p, dz)
	end()
	end = l.Span("step")("update")
	l.Optim.Step(lr)
	end()
	return nn.TakeLoss(l.Dev, losses), nil
}

// Scale is what a pair's loss counts among some positives.
func (l *Links) Scale(positives int) float64 {
	if l.link.PerPositive {
		return 1 / float64(positives)
	}
	return 1 / float64(positives*(1+l.link.PerPair))
}

// upTo is 0, 1, ..., n-1.
func (l *Links) upTo(n int) []uint32 {
	for i := len(l.all); i < n; i++ {
		l.all = append(l.all, uint32(i))
	}
	return l.all[:n]
}

// pairBytes bounds the rows gathered for pairs at a time. Losses of pairs add up, so
// that pieces give what the whole would.
const pairBytes = 8 << 20

// piece is how many pairs of rows are scored at a time.
func piece(cols int) int { return max(64, pairBytes/(4*max(1, cols))) }

// Backward returns the gradient of the rows z, of their type, and the losses (nn.TakeLoss),
// and adds to the gradients of the decoder. The first pairs are positives.
func (l *Links) Backward(p *nn.Pass, z tensor.Matrix, left, right []uint32, positives int,
	scale float64) (dz, losses tensor.Matrix) {
	end := l.Span("step")("pairs")
	defer end()
	own, made := l.own(z)
	dz = l.Dev.New(own.Type(), own.Rows, own.Cols)
	left, right = l.hardest(own, left, right, positives)
	losses = l.losses(len(left), z.Cols)
	l.learn(p, own, dz, losses, left, right, positives, scale)
	if made {
		l.Dev.Free(own)
		dz = l.stored(dz, z)
	}
	return dz, losses
}

// stored is a gradient in the type of rows z, of which it takes the place.
func (l *Links) stored(dz, z tensor.Matrix) tensor.Matrix {
	half := l.Dev.Scratch(z.Type(), z.Rows, z.Cols)
	l.Dev.Copy(half, dz)
	l.Dev.Free(dz)
	return half
}

// losses have a row for every piece of pairs.
func (l *Links) losses(pairs, cols int) tensor.Matrix {
	return l.Dev.New(tensor.F64, max(1, pieces(pairs, cols)), 2)
}

// pieces is how many pieces pairs are scored in.
func pieces(pairs, cols int) int { return (pairs + piece(cols) - 1) / piece(cols) }

// learn adds the gradients of pairs of rows z to dz and to the decoder's, and writes losses.
func (l *Links) learn(p *nn.Pass, z, dz, losses tensor.Matrix, left, right []uint32, positives int, scale float64) {
	for lo := 0; lo < len(left); lo += piece(z.Cols) {
		hi := min(lo+piece(z.Cols), len(left))
		target := make([]float64, hi-lo)
		for i := range min(hi, positives) - min(lo, positives) {
			target[i] = 1
		}
		targets := l.Dev.Scratch(l.Dev.Type(), hi-lo, 1)
		l.Dev.Upload(targets, target)
		scores := l.Model.Decoder.Score(p, z, tensor.Indices(l.Dev, left[lo:hi]), tensor.Indices(l.Dev, right[lo:hi]))
		k := lo / piece(z.Cols)
		l.Dev.Loss(losses.Slice(k, k+1), scores, scores, tensor.Loss{Kind: tensor.BCE, Targets: targets,
			Rows: tensor.Indices(l.Dev, l.upTo(hi-lo)), Scale: scale})
		l.Model.Decoder.Backward(p, dz, scores)
		l.Dev.Free(scores)
		l.Dev.Free(targets)
	}
}

// own is rows in the device's own type, which may have to be made.
func (l *Links) own(z tensor.Matrix) (own tensor.Matrix, made bool) {
	if z.Type() == l.Dev.Type() {
		return z, false
	}
	own = l.Dev.Scratch(l.Dev.Type(), z.Rows, z.Cols)
	l.Dev.Copy(own, z)
	return own, true
}

// measureLinks takes the metric of both sets.
func (l *Links) measureLinks(e *event.Epoch) error {
	end := l.Span("step")("evaluate")
	defer end()
	z := l.AllRows(e.Epoch)
	defer l.Dev.Free(z)
	e.Measured, e.Train, e.Val, e.Test = true, math.NaN(), l.value(z, l.link.Val), l.value(z, l.link.Test)
	l.Remember(e)
	return nil
}

// AllRows are the rows of all vertices of this worker at the present weights, which the caller frees.
func (l *Links) AllRows(epoch int) tensor.Matrix {
	z := l.Model.Forward(l.Pass(l.MeasureOn, false, epoch), l.measured())
	own, made := l.own(z)
	if made {
		l.Dev.Free(z)
	}
	return own
}

// value is what the run is judged by, of a set.
func (l *Links) value(z tensor.Matrix, on *sample.Ranked) float64 {
	switch {
	case on == nil:
		return math.NaN()
	case OfRanks(l.metric.Name):
		return l.ranks(z, on)[l.metric.Name]
	}
	return l.pairs(z, on, l.metric.Name)
}

// pairs is a metric of the scores of a set's pairs and of as many others, ranks has the metrics of ranks.
func (l *Links) pairs(z tensor.Matrix, on *sample.Ranked, metric string) float64 {
	return PairsMetric(metric, l.Scores(z, on.U, on.V), l.Scores(z, on.Against.U, on.Against.V))
}

func (l *Links) ranks(z tensor.Matrix, on *sample.Ranked) map[string]float64 {
	if on.K == 0 {
		_, m := SharedRanks(l.Scores(z, on.Kept, on.Other), l.Scores(z, on.Shared.U, on.Shared.V))
		return m
	}
	return RankMeasures(Ranks(l.Scores(z, on.Kept, on.Other), l.ScoresOfEnds(z, on.Kept, on.Ends, on.K), on.K), on.K)
}

// Scores are the scores of pairs of rows.
func (l *Links) Scores(z tensor.Matrix, left, right []uint32) []float64 {
	out := make([]float64, len(left))
	for lo := 0; lo < len(left); lo += piece(z.Cols) {
		hi := min(lo+piece(z.Cols), len(left))
		s := l.Model.Decoder.Score(&nn.Pass{Dev: l.Dev}, z, tensor.Indices(l.Dev, left[lo:hi]),
			tensor.Indices(l.Dev, right[lo:hi]))
		l.Dev.Download(out[lo:hi], s)
		l.Dev.Free(s)
	}
	return out
}

// rank adds all that is measured of the test pairs, or of the validation pairs where
// there are no others, at the best weights.
func (l *Links) rank(r *Result) error {
	on := l.link.ranked()
	if on == nil || l.link.Unranked || r.Best == nil {
		return nil
	}
	if err := l.Model.Load(l.Dev, r.Best); err != nil {
		return err
	}
	z := l.AllRows(r.BestEpoch)
	defer l.Dev.Free(z)
	r.Measures = map[string]float64{"auc": l.pairs(z, on, "auc")}
	maps.Copy(r.Measures, l.ranks(z, on))
	return nil
}

// ranked are the pairs that are; nil: none.
func (o *LinkOptions) ranked() *sample.Ranked {
	if o.Test != nil {
		return o.Test
	}
	return o.Val
}

// ScoresOfEnds are the scores of every kept end with each of its k negatives.
func (l *Links) ScoresOfEnds(z tensor.Matrix, keptEnds, ends []uint32, k int) []float64 {
	out := make([]float64, 0, len(ends))
	step := max(1, piece(z.Cols)/max(1, k))
	var kept []uint32
	for lo := 0; lo < len(keptEnds); lo += step {
		hi := min(lo+step, len(keptEnds))
		kept = kept[:0]
		for _, u := range keptEnds[lo:hi] {
			for range k {
				kept = append(kept, u)
			}
		}
		out = append(out, l.Scores(z, kept, ends[lo*k:hi*k])...)
	}
	return out
}
