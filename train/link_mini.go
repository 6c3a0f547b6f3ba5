package train

import (
	"fmt"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
)

// inBatches makes batches of pairs ready to be sampled.
func (l *links) inBatches(data *graph.Dataset) error {
	mo, g := l.link.Mini, seen(l.link.Graph, l.opt)
	switch convs := l.model.Convs(); {
	case mo.Sampler != "neighbour" || mo.Replace || mo.Weighted:
		return fmt.Errorf("batches of pairs are drawn by the neighbour sampler alone, without replacement and not by weight")
	case len(mo.Fanouts) != convs:
		return fmt.Errorf("%d fanouts for a model of %d graph layers; give one a layer", len(mo.Fanouts), convs)
	}
	method, err := (&sample.PairBatches{Graph: g, Source: l.link.Pairs, Size: mo.Size, Fanouts: mo.Fanouts,
		Negatives: l.link.Negatives, PerPair: l.link.PerPair, Without: l.link.Without, Seed: l.opt.Seed}).Prepare()
	if err != nil {
		return err
	}
	l.mini = l.onBatches(method, g, data.Features, nil, *mo)
	return nil
}

// batches is a step for every batch. It returns the mean loss, each pair's at the
// weights of its step.
func (l *links) batches(epoch int, lr float64) (float64, error) {
	sum, positives := 0.0, 0
	l.mini.each(epoch, func(b *ready) {
		if b.Positives > 0 {
			sum += l.batch(b, lr)
			positives += b.Positives
		}
	})
	if positives == 0 {
		return 0, mistaken("no walk of epoch %d meets another vertex: the graph has hardly any edges", epoch)
	}
	return sum / float64(positives), nil
}

// batch is one step. It returns the sum over positives of their losses, each with
// its share of the negatives'.
func (l *links) batch(b *ready, lr float64) float64 {
	if l.link.Without {
		put := l.takeOut(b)
		defer put()
	}
	scale := b.Scale * l.scale(1)
	return l.mini.step(b, lr, func(p *nn.Pass, z tensor.Matrix) (tensor.Matrix, float64) {
		return l.learn(p, z, b.Left, b.Right, b.Positives, scale)
	}) / b.Scale
}

// takeOut makes the degrees those of the graph without the batch's own pairs, which
// its messages do not pass over either: a mean over fewer neighbours is one of fewer.
// Else a row that is smaller than its degree says would give a positive away.
func (l *links) takeOut(b *ready) (put func()) {
	d := l.mini.on.degrees
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

// weightOf adds up the edges u → v. A split's graph has rows in ascending order.
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
