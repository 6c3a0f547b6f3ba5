package mini

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
)

// LinkOptions are those of training on pairs, in batches.
type LinkOptions struct {
	train.LinkOptions
	Batches Options
	// Without leaves a batch's own pairs out of its messages.
	Without bool
}

// Link is train.Link with a step for each batch of pairs.
func Link(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, link LinkOptions,
	events event.Listener) (*train.Result, error) {
	f, err := train.NewLinks(dev, data, opt, link.LinkOptions, events)
	if err != nil {
		return nil, err
	}
	l := &links{Links: f, link: link}
	if err := l.sampled(data); err != nil {
		return nil, err
	}
	defer l.batches.prefetch.stop()
	f.TrainEpoch = l.epoch
	return f.Run(ctx, data)
}

// DryRunLink is the memory dry run of Link, on a few batches: see train.DryRunLink.
func DryRunLink(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, link LinkOptions,
	ends int, events event.Listener) (*train.Needs, error) {
	link.Batches.dry, link.Unranked = opt.Epochs, true
	r, err := Link(ctx, dev, data, train.DryOptions(opt), link, events)
	if err != nil {
		return nil, err
	}
	return &train.Needs{Parameters: r.Parameters, Ranking: link.RankingBytes(ends)}, nil
}

// links is training on batches of pairs.
type links struct {
	*train.Links
	link    LinkOptions
	batches *batches
}

// sampled has batches of pairs sampled.
func (l *links) sampled(data *graph.Dataset) error {
	mo, g := &l.link.Batches, seen(l.link.Graph, l.Opt)
	switch convs := l.Model.Convs(); {
	case mo.Sampler != "neighbour" || mo.Replace || mo.Weighted:
		return fmt.Errorf("batches of pairs are drawn by the neighbour sampler alone, without replacement and not " +
			"by weight")
	case len(mo.Fanouts) != convs:
		return fmt.Errorf("%d fanouts for a model of %d graph layers; give one per layer", len(mo.Fanouts), convs)
	}
	method, err := (&sample.PairBatches{Graph: g, Source: l.link.Pairs, Size: mo.Size, Fanouts: mo.Fanouts,
		Negatives: l.link.Negatives, PerPair: l.link.PerPair, Without: l.link.Without, Seed: l.Opt.Seed}).Prepare()
	if err != nil {
		return err
	}
	l.batches = onMethod(l.Loop, method, g, data.Features, nil, *mo)
	return nil
}

// epoch is a step for every batch. It returns the mean loss, each pair's at the weights of
// its step.
func (l *links) epoch(epoch int, lr float64) (float64, error) {
	sum := []float64{0, 0} // losses, and of how many positives
	err := l.batches.each(epoch, l.Resumed(epoch, sum), func(b *batch) error {
		if b.Positives == 0 && !l.batches.joined {
			return nil
		}
		loss, err := l.trainOn(b, lr)
		if err != nil {
			return err
		}
		sum[0], sum[1] = sum[0]+loss, sum[1]+float64(b.Positives)
		return l.StepDone(epoch, b.Number, sum)
	})
	if err == nil {
		err = l.Peers.AllReduce(epoch, 0, sum)
	}
	if err != nil {
		return 0, err
	}
	if sum[1] == 0 && !l.batches.few {
		return 0, train.Mistake("no walk of epoch %d meets another vertex: the graph has hardly any edges", epoch)
	}
	return sum[0] / max(sum[1], 1), nil
}

// trainOn is one step. It returns the sum over positives of their losses, each with
// its share of the negatives'.
func (l *links) trainOn(b *batch, lr float64) (float64, error) {
	if l.link.Without {
		put := l.takeOut(b)
		defer put()
	}
	scale := b.Scale * l.Scale(1)
	loss, err := l.batches.step(b, lr, func(p *nn.Pass, z tensor.Matrix) (dz, losses tensor.Matrix) {
		return l.Backward(p, z, b.Left, b.Right, b.Positives, scale)
	})
	if err != nil {
		return 0, err
	}
	return nn.TakeLoss(l.Dev, loss) / b.Scale, nil
}

// takeOut makes the degrees those of the graph without the batch's own pairs, which
// its messages do not pass over either: a mean over fewer neighbours is one of fewer.
// Else a row that is smaller than its degree says would give a positive away.
func (l *links) takeOut(b *batch) (put func()) {
	d := l.batches.on.degrees
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
