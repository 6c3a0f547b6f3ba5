package predict

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/resume"
	"starling/serve"
	"starling/setup"
	"starling/spec"
	"starling/supervise"
	"starling/tensor"
	"starling/train"
	"starling/worker"
)

// overParts predicts on one worker per part: a process each, which has its part alone.
func (o Options) overParts() (*Predicted, error) {
	start := time.Now()
	trained, err := o.open()
	if err != nil {
		return nil, err
	}
	of, err := o.infer(trained)
	if err != nil {
		return nil, err
	}
	defer of.Close()
	p := predictionsFrom(trained, of.data, o.What, of.rows())
	out := &Predicted{Run: o.Run, Dataset: of.data.Meta.Name, Model: trained.Config.Model.Model, What: o.What, Out: o.Out,
		Workers: of.workers, Target: trained.OfType()}
	if err := out.write(p, of.data); err != nil {
		return nil, err
	}
	out.Seconds, out.RSS = time.Since(start).Seconds(), tensor.PeakRSS()
	return out, nil
}

// predictionsFrom are predictions from what the model computes for all vertices.
func predictionsFrom(t *serve.Trained, d *graph.Dataset, what string, rows serve.Rows) *serve.Predictions {
	if d.Typed() {
		return t.FromTypedRows(d, what, rows.Width, rows.Values)
	}
	return t.FromRows(d, what, d.Graph.Nodes(), rows.Width, rows.Values)
}

// inferred is what workers computed for all vertices, in memory that a temporary file backs, and the dataset without
// edges and features.
type inferred struct {
	worker.Inferred
	data    *graph.Dataset
	workers int
}

// rows are what was inferred, as answers and predictions take them.
func (r *inferred) rows() serve.Rows { return serve.Rows{Width: r.Width, Values: r.Values} }

// infer has workers compute what predictions are made from, for all vertices.
func (o Options) infer(trained *serve.Trained) (*inferred, error) {
	c, err := o.inferenceOf(trained)
	if err != nil {
		return nil, err
	}
	out := &inferred{workers: c.Spec.Cluster.Workers}
	if out.data, err = labelledDataset(c.Parts, trained); err != nil {
		return nil, err
	}
	if err := trained.Suits(out.data, o.What); err != nil {
		return nil, err
	}
	remove, err := workIn(c)
	if err != nil {
		return nil, err
	}
	defer remove()
	return out, out.gather(c)
}

// workIn has workers infer into a temporary folder, which remove removes.
func workIn(c *supervise.Run) (remove func(), err error) {
	folder, remove, err := setup.TemporaryFolder()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	c.Infer.Folder = folder
	events, stop, err := c.Watched(event.All())
	if err != nil {
		return nil, err
	}
	defer stop()
	_, err = c.Work(context.Background(), events)
	return remove, err
}

// inferenceOf is the run of workers that a prediction needs.
func (o Options) inferenceOf(t *serve.Trained) (*supervise.Run, error) {
	book, err := partition.OpenBook(o.Dataset)
	if err != nil {
		return nil, err
	}
	switch {
	case o.What == serve.Scores || t.Config.Task == nn.TaskLink || t.Config.Task == nn.TaskUnsupervised:
		return nil, spec.Mistake("DIR", "a partition, for a model of pairs", "the dataset that it was cut from", "")
	case o.Workers != 0 && o.Workers != book.Parts:
		return nil, spec.Mistake("--workers", fmt.Sprint(o.Workers), fmt.Sprintf("%d, one per part", book.Parts),
			"partition the dataset into as many parts as there are workers")
	case t.Embeddings != nil:
		return nil, spec.Mistake("DIR", o.Dataset+", a partition, with a model that has embeddings of vertices",
			"the dataset that it was cut from", "give the dataset's folder")
	case book.Features == nil && book.Schema == nil && t.Config.Model.Typed == nil:
		return nil, setup.NoFeatures(o.Dataset)
	}
	dir, err := filepath.Abs(o.Dataset)
	if err != nil {
		return nil, err
	}
	s := o.onDevice()
	s.Cluster.Workers, s.Cluster.Partition, s.Cluster.Servers, s.Cluster.InProcess = book.Parts, dir, book.Servers,
		o.InProcess
	s.Strategy = train.Default().Name
	if o.Timeout > 0 { // workers are started four times before the last one that is stopped is named
		s.Cluster.Timeout, s.Cluster.Heartbeat = o.Timeout, min(s.Cluster.Heartbeat, o.Timeout/shortestTimeout)
	}
	c := &supervise.Run{Spec: s, Parts: setup.PartsOf(dir, book),
		Token: []byte(cluster.NewSecret()), Infer: &worker.Inference{Model: t.ModelConfig(),
			Temporal: t.Config.Temporal, RowNormalize: t.Config.RowNormalize, LeftOut: t.LeftOut(o.What), Rows: t.Rows(),
			TypeScales: t.TypeScales()}}
	if c.From, err = resume.WeightsOf(t, book.Schema, &s); err != nil {
		return nil, err
	}
	if t.Config.Features != nil {
		c.Infer.Scale = t.Config.Features.Scale
	}
	return c, nil
}

// labelledDataset is the dataset without edges and features: what predictions are compared with.
func labelledDataset(p *setup.Parts, t *serve.Trained) (*graph.Dataset, error) {
	d := &graph.Dataset{Dir: p.Dir, Meta: p.Meta,
		Graph: &graph.CSR{Indptr: make([]int64, p.Book.Nodes+1), EdgeDim: p.Book.EdgeDim}}
	if p.Book.Features != nil {
		d.Features = &graph.Features{Rows: int(p.Book.Nodes), Cols: p.Book.Features.Dim}
	}
	for k := range p.Book.Parts {
		part, err := partition.OpenPart(p.Dir, k)
		if err != nil {
			return nil, err
		}
		addLabels(d, part)
		part.Close()
	}
	return describedTypes(d, p, t)
}

// describedTypes has a typed dataset know its types, and a partition of another target no labels.
func describedTypes(d *graph.Dataset, p *setup.Parts, t *serve.Trained) (*graph.Dataset, error) {
	s := p.Meta.Schema
	if err := knowsTarget(d, t); err != nil || s == nil {
		return d, err
	}
	k := s.Type(t.Config.Target)
	if p.Book.Target != t.Config.Target {
		d.Labels, d.Splits = nil, graph.Splits{}
	}
	for _, list := range []*[]uint32{&d.Splits.Train, &d.Splits.Val, &d.Splits.Test} {
		slices.Sort(*list)
	}
	return graph.Described(p.Dir, d.Meta, k, d.Labels, d.Splits), nil
}

// addLabels adds the labels and splits of a part.
func addLabels(d *graph.Dataset, part *partition.Part) {
	from, nodes := part.Labels, int(d.Meta.Nodes)
	for to, list := range map[*[]uint32][]uint32{&d.Splits.Train: part.Splits.Train, &d.Splits.Val: part.Splits.Val,
		&d.Splits.Test: part.Splits.Test} {
		for _, v := range list {
			*to = append(*to, part.IDs[v])
		}
	}
	if from == nil {
		return
	}
	if d.Labels == nil {
		d.Labels = &graph.Labels{Classes: from.Classes, Names: from.Names}
	}
	scatter(&d.Labels.Class, from.Class, part.IDs[:part.Core()], nodes)
	scatter(&d.Labels.Multi, from.Multi, part.IDs[:part.Core()], nodes)
	scatter(&d.Labels.Values, from.Values, part.IDs[:part.Core()], nodes)
}

// scatter puts the rows of some vertices where they are in a table of all.
func scatter[T any](into *[]T, rows []T, ids []uint32, all int) {
	if len(rows) == 0 {
		return
	}
	width := len(rows) / len(ids)
	if *into == nil {
		*into = make([]T, all*width)
	}
	for i, v := range ids {
		copy((*into)[int(v)*width:], rows[i*width:(i+1)*width])
	}
}

// gather puts the rows that workers wrote where their vertices are.
func (r *inferred) gather(c *supervise.Run) error {
	for k := range r.workers {
		part, err := partition.OpenPart(c.Parts.Dir, k)
		if err != nil {
			return err
		}
		err = r.Add(c.Infer.Folder, k, part.IDs[:part.Core()], int(c.Parts.Book.Nodes))
		part.Close()
		if err != nil {
			r.Close()
			return err
		}
	}
	return nil
}
