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
	// Val and Test are what is measured on; nil: nothing.
	Val, Test *sample.Ranked
	// Mini, if set, is how batches of pairs are drawn. Else an epoch is one step over
	// the whole graph and all pairs.
	Mini *MiniOptions
	// Without leaves a batch's own pairs out of its messages.
	Without bool

	unranked bool // a rehearsal
}

// Link trains a model whose rows a decoder can tell pairs by, in this process. The
// metric is the area under the curve of the pairs of Val and Test against their
// negatives; ranks are measured once, at the best weights.
func Link(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, link LinkOptions, events event.Listener) (*Result, error) {
	if events == nil {
		events = event.All()
	}
	switch {
	case data.Features == nil:
		return nil, fmt.Errorf("dataset %s: training needs features", data.Dir)
	case opt.Model.Decoder == "":
		return nil, fmt.Errorf("a model without a decoder cannot score pairs")
	case opt.Inductive:
		return nil, fmt.Errorf("inductive training is of vertices; pairs are held out instead")
	}
	on := local{nn.NewLocal(nn.NewTopology(dev, link.Graph), opt.CacheFirst)}
	n := int64(link.Graph.Nodes())
	f, err := newLoop(dev, share{x: input(dev, data.Features, opt), task: pairTask{}, trainOn: on, measureOn: on, vertices: n}, alone{}, opt, events)
	if err != nil {
		return nil, err
	}
	l := &links{loop: f, link: link}
	f.train, f.measure = l.epoch, l.measureLinks
	if link.Mini != nil {
		if err := l.inBatches(data); err != nil {
			return nil, err
		}
		defer l.mini.ahead.stop()
		f.train = l.batches
	}
	events.On(event.Started{Dataset: data.Meta.Name, Model: opt.Model.Model, Strategy: "none", Workers: 1, Vertices: n, Edges: link.Graph.Edges(),
		Parameters: f.model.Size(), FirstEpoch: f.state.Epoch, Epochs: opt.Epochs, Metric: f.task.Name()})
	r, unsaved := f.run(ctx)
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

// links is a loop's training on pairs.
type links struct {
	*loop
	link  LinkOptions
	mini  *mini // nil: the whole graph at once
	drawn sample.Drawn
	all   []uint32 // 0, 1, 2, ...
}

// epoch is one step over the whole graph and all pairs.
func (l *links) epoch(epoch int, lr float64) (float64, error) {
	l.drawn.Draw(l.link.Pairs, l.link.Negatives, l.link.PerPair, epoch, 0, l.upTo(l.link.Pairs.Len()))
	if l.drawn.Positives == 0 {
		return 0, mistaken("no walk of epoch %d meets another vertex: the graph has hardly any edges", epoch)
	}
	p := l.pass(l.trainOn, true, epoch)
	l.model.ZeroGrad(l.dev)
	end := l.spans("step")("forward")
	z := l.model.Forward(p, l.x)
	end()
	dz, loss := l.learn(p, z, l.drawn.Left, l.drawn.Right, l.drawn.Positives, l.scale(l.drawn.Positives))
	l.dev.Free(z)
	p.Span = l.spans("backward")
	end = l.spans("step")("backward")
	l.model.Backward(p, dz)
	end()
	end = l.spans("step")("update")
	l.optim.Step(lr)
	end()
	return loss, nil
}

// scale is what a pair's loss counts among so many positives.
func (l *links) scale(positives int) float64 {
	if l.link.PerPositive {
		return 1 / float64(positives)
	}
	return 1 / float64(positives*(1+l.link.PerPair))
}

// upTo is 0, 1, ..., n-1.
func (l *links) upTo(n int) []uint32 {
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

// learn returns the gradient of the rows z, of their type, and adds to those of the
// decoder. The first pairs are positives.
func (l *links) learn(p *nn.Pass, z tensor.Matrix, left, right []uint32, positives int, scale float64) (dz tensor.Matrix, loss float64) {
	end := l.spans("step")("pairs")
	defer end()
	own, made := l.own(z)
	dz = l.dev.New(own.Type(), own.Rows, own.Cols)
	for lo := 0; lo < len(left); lo += piece(z.Cols) {
		hi := min(lo+piece(z.Cols), len(left))
		target := make([]float64, hi-lo)
		for i := range min(hi, positives) - min(lo, positives) {
			target[i] = 1
		}
		targets := l.dev.Scratch(l.dev.Type(), hi-lo, 1)
		l.dev.Upload(targets, target)
		scores := l.model.Decoder.Score(p, own, l.dev.Indices(left[lo:hi]), l.dev.Indices(right[lo:hi]))
		loss += l.dev.BCE(scores, scores, targets, l.dev.Indices(l.upTo(hi-lo)), scale)
		l.model.Decoder.Backward(p, dz, scores)
		l.dev.Free(scores)
		l.dev.Free(targets)
	}
	if made {
		l.dev.Free(own)
		half := l.dev.Scratch(z.Type(), z.Rows, z.Cols)
		l.dev.Copy(half, dz)
		l.dev.Free(dz)
		dz = half
	}
	return dz, loss
}

// own is rows in the device's own type, which may have to be made.
func (l *links) own(z tensor.Matrix) (own tensor.Matrix, made bool) {
	if z.Type() == l.dev.Type() {
		return z, false
	}
	own = l.dev.Scratch(l.dev.Type(), z.Rows, z.Cols)
	l.dev.Copy(own, z)
	return own, true
}

// measureLinks takes the area under the curve of both sets.
func (l *links) measureLinks(e *event.Epoch) error {
	end := l.spans("step")("evaluate")
	defer end()
	z := l.rows(e.Epoch)
	defer l.dev.Free(z)
	e.Measured, e.Train, e.Val, e.Test = true, math.NaN(), l.area(z, l.link.Val), l.area(z, l.link.Test)
	l.remember(e)
	return nil
}

// rows are those of all vertices at the weights of now, which the caller frees.
func (l *links) rows(epoch int) tensor.Matrix {
	z := l.model.Forward(l.pass(l.measureOn, false, epoch), l.x)
	own, made := l.own(z)
	if made {
		l.dev.Free(z)
	}
	return own
}

func (l *links) area(z tensor.Matrix, on *sample.Ranked) float64 {
	if on == nil {
		return math.NaN()
	}
	return areaUnderCurve(l.scores(z, on.U, on.V), l.scores(z, on.Against.U, on.Against.V))
}

// scores are those of pairs.
func (l *links) scores(z tensor.Matrix, left, right []uint32) []float64 {
	out := make([]float64, len(left))
	for lo := 0; lo < len(left); lo += piece(z.Cols) {
		hi := min(lo+piece(z.Cols), len(left))
		s := l.model.Decoder.Score(&nn.Pass{Dev: l.dev}, z, l.dev.Indices(left[lo:hi]), l.dev.Indices(right[lo:hi]))
		l.dev.Download(out[lo:hi], s)
		l.dev.Free(s)
	}
	return out
}

// rank adds all that is measured of the test pairs, or of the validation pairs where
// there are no others, at the best weights.
func (l *links) rank(r *Result) error {
	on := l.link.ranked()
	if on == nil || l.link.unranked {
		return nil
	}
	if err := l.model.Load(l.dev, r.Best); err != nil {
		return err
	}
	z := l.rows(r.BestEpoch)
	defer l.dev.Free(z)
	r.Measures = map[string]float64{"auc": l.area(z, on)}
	maps.Copy(r.Measures, rankMeasures(l.scores(z, on.Kept, on.Other), l.scoresOfEnds(z, on), on.K))
	return nil
}

// ranked are the pairs that are; nil: none.
func (o *LinkOptions) ranked() *sample.Ranked {
	if o.Test != nil {
		return o.Test
	}
	return o.Val
}

// scoresOfEnds are those of every kept end with each of its negatives.
func (l *links) scoresOfEnds(z tensor.Matrix, on *sample.Ranked) []float64 {
	out := make([]float64, 0, len(on.Ends))
	step := max(1, piece(z.Cols)/max(1, on.K))
	var kept []uint32
	for lo := 0; lo < on.Len(); lo += step {
		hi := min(lo+step, on.Len())
		kept = kept[:0]
		for _, u := range on.Kept[lo:hi] {
			for range on.K {
				kept = append(kept, u)
			}
		}
		out = append(out, l.scores(z, kept, on.Ends[lo*on.K:hi*on.K])...)
	}
	return out
}
