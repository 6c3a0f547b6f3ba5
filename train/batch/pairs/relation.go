package pairs

import (
	"context"
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
)

// RunRelations is train.LinkRelations with a step for each batch of pairs: see sample.RelationBatches. Of link only the
// settings of batches and Without are used; opt.Pairs has the rest.
func RunRelations(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, link Options,
	events event.Listener) (*train.Result, error) {
	l, err := newRelationSteps(dev, data, opt, link, events)
	if err != nil {
		return nil, err
	}
	defer l.steps.Stop()
	return l.of.Run(ctx, data)
}

// DryRunRelations is the memory dry run of RunRelations, on a few batches.
func DryRunRelations(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, link Options,
	events event.Listener) (*train.Needs, error) {
	link.Batches.DryEpochs = opt.Epochs
	l, err := newRelationSteps(dev, data, train.DryOptions(opt), link, events)
	if err != nil {
		return nil, err
	}
	defer l.steps.Stop()
	return l.of.DryRun(ctx, data)
}

// relationSteps is training on batches of pairs of relations.
type relationSteps struct {
	of    *train.RelationLinks
	steps *batch.Steps
}

func newRelationSteps(dev tensor.Device, data *graph.Dataset, opt train.Options, link Options,
	events event.Listener) (*relationSteps, error) {
	f, err := train.NewRelationLinks(dev, data, opt, events)
	if err != nil {
		return nil, err
	}
	mo, schema := &link.Batches, data.Meta.Schema
	switch convs := f.Model.Convs(); {
	case mo.Sampler != "neighbour" || mo.Replace || mo.Weighted:
		return nil, fmt.Errorf("batches of pairs are drawn by the neighbour sampler alone, without replacement and " +
			"not by weight")
	case len(mo.Fanouts) != convs:
		return nil, fmt.Errorf("%d fanouts for a model of %d graph layers; give one per layer", len(mo.Fanouts), convs)
	}
	method, err := (&sample.RelationBatches{Graph: f.Graph, Sources: f.Sources(), Size: mo.Size, Fanouts: mo.Fanouts,
		Types:   &sample.Types{Schema: schema, Fanouts: mo.RelationFanouts, TypeOf: schema.TypeOf},
		PerPair: opt.Pairs.Candidates(), Shared: opt.Pairs.Shared, Without: link.Without, Seed: opt.Seed}).Prepare()
	if err != nil {
		return nil, err
	}
	steps, err := batch.OnTypes(f.Loop, method, f.Graph, nil, batch.Options(*mo))
	if err != nil {
		return nil, err
	}
	l := &relationSteps{f, steps}
	f.TrainEpoch = l.epoch
	return l, nil
}

// epoch is a step for every batch. It returns the mean loss, each pair's at the weights of its step.
func (l *relationSteps) epoch(epoch int, lr float64) (float64, error) {
	sum := []float64{0, 0} // of losses, and of positives
	grad := l.objective().Grad
	err := l.steps.Each(epoch, l.of.Resumed(epoch, sum), func(b *batch.Batch) error {
		if b.Empty {
			return nil
		}
		loss, err := l.steps.Step(b, lr, func(p *nn.Pass, z tensor.Matrix) (dz, losses tensor.Matrix) {
			return grad(b, p, z)
		})
		if err != nil {
			return err
		}
		sum[0], sum[1] = sum[0]+nn.TakeLoss(l.of.Dev, loss)/b.Scale, sum[1]+float64(b.Positives)
		return l.of.StepDone(epoch, b.Number, sum)
	})
	if err == nil {
		err = l.of.AllReduce(epoch, 0, sum)
	}
	return sum[0] / max(sum[1], 1), err
}

// objective is learning from the pairs of a batch.
func (l *relationSteps) objective() batch.Objective {
	return batch.Objective{Count: func(b *batch.Batch) int { return b.Positives },
		Grad: func(b *batch.Batch, p *nn.Pass, z tensor.Matrix) (dz, losses tensor.Matrix) {
			return l.of.Backward(p, z, &b.Batch, b.Scale*l.of.Scale(1))
		}}
}
