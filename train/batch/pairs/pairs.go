// Package pairs has mini-batches learn from pairs of vertices (--task link, unsupervised): in one process, and as a
// task of the pipeline on several workers.
package pairs

import (
	"context"
	"fmt"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
)

// Options say how pairs are learnt in batches.
type Options struct {
	train.LinkOptions
	Batches train.BatchSettings
	// Without leaves a batch's own pairs out of its messages.
	Without bool
}

// Run is train.Link with a step for each batch of pairs.
func Run(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, link Options,
	events event.Listener) (*train.Result, error) {
	f, err := train.NewLinks(dev, data, opt, link.LinkOptions, events)
	if err != nil {
		return nil, err
	}
	l := &links{of: f, link: link}
	if err := l.sampled(data); err != nil {
		return nil, err
	}
	defer l.steps.Stop()
	f.TrainEpoch = l.epoch
	return f.Run(ctx, data)
}

// DryRun is the memory dry run of Run, on a few batches: see train.DryRunLink.
func DryRun(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, link Options,
	ends int, events event.Listener) (*train.Needs, error) {
	link.Batches.DryEpochs, link.Unranked = opt.Epochs, true
	r, err := Run(ctx, dev, data, train.DryOptions(opt), link, events)
	if err != nil {
		return nil, err
	}
	return &train.Needs{Parameters: r.Parameters, Ranking: link.RankingBytes(ends)}, nil
}

// links is training on batches of pairs.
type links struct {
	of    *train.Links
	link  Options
	steps *batch.Steps
}

// sampled has batches of pairs sampled.
func (l *links) sampled(data *graph.Dataset) error {
	mo, g := &l.link.Batches, batch.Seen(l.link.Graph, l.of.Opt)
	switch convs := l.of.Model.Convs(); {
	case mo.Sampler != "neighbour" || mo.Replace || mo.Weighted:
		return fmt.Errorf("batches of pairs are drawn by the neighbour sampler alone, without replacement and not " +
			"by weight")
	case len(mo.Fanouts) != convs:
		return fmt.Errorf("%d fanouts for a model of %d graph layers; give one per layer", len(mo.Fanouts), convs)
	}
	method, err := (&sample.PairBatches{Graph: g, Source: l.link.Pairs, Size: mo.Size, Fanouts: mo.Fanouts,
		Negatives: l.link.Negatives, PerPair: l.link.Candidates(), Shared: l.link.Shared, Without: l.link.Without,
		Seed: l.of.Opt.Seed}).Prepare()
	if err != nil {
		return err
	}
	l.steps = batch.OnMethod(l.of.Loop, method, g, data.Features, nil, batch.Options(*mo))
	return nil
}

// epoch is a step for every batch. It returns the mean loss, each pair's at the weights of
// its step.
func (l *links) epoch(epoch int, lr float64) (float64, error) {
	sum := []float64{0, 0} // of losses, and of positives
	err := l.steps.Each(epoch, l.of.Resumed(epoch, sum), func(b *batch.Batch) error {
		if b.Empty || b.Positives == 0 && l.steps.Skips() {
			return nil
		}
		loss, err := l.trainOn(b, lr)
		if err != nil {
			return err
		}
		sum[0], sum[1] = sum[0]+loss, sum[1]+float64(b.Positives)
		return l.of.StepDone(epoch, b.Number, sum)
	})
	if err == nil {
		err = l.of.AllReduce(epoch, 0, sum)
	}
	if err != nil {
		return 0, err
	}
	if sum[1] == 0 && !l.steps.Few() {
		return 0, train.Mistake("no walk of epoch %d meets another vertex: the graph has hardly any edges", epoch)
	}
	return sum[0] / max(sum[1], 1), nil
}

// trainOn is one step. It returns the sum over positives of their losses, each with
// its share of the negatives'.
func (l *links) trainOn(b *batch.Batch, lr float64) (float64, error) {
	if l.link.Without {
		put := l.takeOut(b)
		defer put()
	}
	grad := l.objective().Grad
	loss, err := l.steps.Step(b, lr, func(p *nn.Pass, z tensor.Matrix) (dz, losses tensor.Matrix) {
		return grad(b, p, z)
	})
	if err != nil {
		return 0, err
	}
	return nn.TakeLoss(l.of.Dev, loss) / b.Scale, nil
}

// objective is learning from the pairs of a batch.
func (l *links) objective() batch.Objective {
	return batch.Objective{Count: func(b *batch.Batch) int { return b.Positives },
		Grad: func(b *batch.Batch, p *nn.Pass, z tensor.Matrix) (dz, losses tensor.Matrix) {
			return l.of.Backward(p, z, b.Left, b.Right, b.Positives, b.Scale*l.of.Scale(1))
		}}
}

// takeOut makes the degrees those in the graph without the batch's own pairs, which
// its messages do not pass over either: a mean over fewer neighbours is one of fewer.
// Else a row that is smaller than its degree says would give a positive away.
func (l *links) takeOut(b *batch.Batch) (put func()) {
	d := l.steps.Degrees
	type was struct {
		v            uint32
		all, noLoops float64
	}
	var before []was
	for i := range b.Positives {
		u, v := b.Vertices[b.Left[i]], b.Vertices[b.Right[i]]
		for _, ends := range [2][2]uint32{{u, v}, {v, u}} {
			to, weight := ends[1], l.weightOf(ends[0], ends[1])
			before = append(before, was{to, d.All[to], d.NoLoops[to]})
			d.All[to] -= weight
			d.NoLoops[to] -= weight
		}
	}
	return func() {
		for i := len(before) - 1; i >= 0; i-- {
			d.All[before[i].v], d.NoLoops[before[i].v] = before[i].all, before[i].noLoops
		}
	}
}

// weightOf sums the edges u → v. A split's graph has rows in ascending order.
func (l *links) weightOf(u, v uint32) (sum float64) {
	g := l.link.Graph
	row := g.Neighbors(v)
	i, _ := slices.BinarySearch(row, u)
	for ; i < len(row) && row[i] == u; i++ {
		w := 1.0
		if g.Weights != nil {
			w = float64(g.Weights[g.Indptr[v]+int64(i)])
		}
		sum += w
	}
	return sum
}
