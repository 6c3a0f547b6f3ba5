package run

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"starling/cluster"
	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/run/watch"
	"starling/serve"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// inference is a prediction over parts, as every worker is told. A worker computes the rows of its own
// vertices layer by layer and writes them, in the order of its part, to a file of the folder.
type inference struct {
	Model        nn.Config    `json:"model"`
	RowNormalize bool         `json:"row_normalize"`
	Scale        *graph.Scale `json:"scale,omitempty"` // of the features that the model was trained on
	LeftOut      int          `json:"left_out"`        // stages at the end
	Folder       string       `json:"folder"`
}

// overParts predicts on one worker per part: a process each, which has its part alone.
func (o PredictOptions) overParts() (*Predicted, error) {
	start := time.Now()
	trained, err := serve.Open(o.Run)
	if err != nil {
		return nil, err
	}
	p, d, workers, err := o.infer(trained)
	if err != nil {
		return nil, err
	}
	out := &Predicted{Run: o.Run, Dataset: d.Meta.Name, Model: trained.Config.Model.Model, What: o.What, Out: o.Out,
		Workers: workers}
	if err := out.write(p, d); err != nil {
		return nil, err
	}
	out.Seconds, out.RSS = time.Since(start).Seconds(), tensor.PeakRSS()
	return out, nil
}

// infer has workers compute what is predicted. It returns the dataset too, without edges and
// features.
func (o PredictOptions) infer(trained *serve.Trained) (p *serve.Predictions, d *graph.Dataset,
	workers int, err error) {
	c, err := o.inferenceOf(trained)
	if err != nil {
		return nil, nil, 0, err
	}
	if d, err = c.parts.labelled(); err != nil {
		return nil, nil, 0, err
	}
	if err := trained.Suits(d, o.What); err != nil {
		return nil, nil, 0, err
	}
	folder, remove, err := partsFolder()
	if err != nil {
		return nil, nil, 0, err
	}
	defer remove()
	c.infer.Folder = folder
	run := c.runProcesses
	if c.spec.Goroutines() {
		run = c.runGoroutines
	}
	if _, err := run(context.Background(), event.All()); err != nil {
		return nil, nil, 0, err
	}
	width, data, err := c.gather()
	if err != nil {
		return nil, nil, 0, err
	}
	return trained.FromRows(d, o.What, d.Graph.Nodes(), width, data), d, c.spec.Cluster.Workers, nil
}

// inferenceOf is the run of workers that a prediction needs.
func (o PredictOptions) inferenceOf(t *serve.Trained) (*clusterRun, error) {
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
	case book.Features == nil:
		return nil, noFeatures(o.Dataset)
	}
	dir, err := filepath.Abs(o.Dataset)
	if err != nil {
		return nil, err
	}
	s := o.onDevice()
	s.Cluster.Workers, s.Cluster.Partition, s.Cluster.Servers, s.Cluster.InProcess = book.Parts, dir, book.Servers,
		o.InProcess
	s.Strategy = train.Default().Name
	c := &clusterRun{spec: s, parts: partsOf(dir, book), from: &start{State: &train.State{Model: t.Weights}},
		token: []byte(cluster.NewSecret()), infer: &inference{Model: t.Config.Model,
			RowNormalize: t.Config.RowNormalize, LeftOut: t.LeftOut(o.What)}}
	if t.Config.Features != nil {
		c.infer.Scale = t.Config.Features.Scale
	}
	c.watch = watch.New(s.Cluster.Workers, event.All(), time.Now)
	return c, nil
}

// labelled is the dataset without edges and features: what predictions are compared with.
func (p *parts) labelled() (*graph.Dataset, error) {
	d := &graph.Dataset{Dir: p.dir, Meta: p.meta,
		Graph:    &graph.CSR{Indptr: make([]int64, p.book.Nodes+1), EdgeDim: p.book.EdgeDim},
		Features: &graph.Features{Rows: int(p.book.Nodes), Cols: p.book.Features.Dim}}
	for k := range p.book.Parts {
		part, err := partition.OpenPart(p.dir, k)
		if err != nil {
			return nil, err
		}
		addLabels(d, part)
		part.Close()
	}
	return d, nil
}

// addLabels adds those of a part, and its splits.
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

// gather reads the rows that workers wrote.
func (c *clusterRun) gather() (width int, all []float32, err error) {
	for k := range c.spec.Cluster.Workers {
		part, err := partition.OpenPart(c.parts.dir, k)
		if err != nil {
			return 0, nil, err
		}
		rows, err := readRows(inferred(c.infer.Folder, k))
		if err == nil && len(rows) > 0 {
			width = len(rows) / part.Core()
			scatter(&all, rows, part.IDs[:part.Core()], int(c.parts.book.Nodes))
		}
		part.Close()
		if err != nil {
			return 0, nil, err
		}
	}
	return width, all, nil
}

// inferred is the file of a worker's rows.
func inferred(folder string, rank int) string {
	return filepath.Join(folder, fmt.Sprintf("rows-%d", rank))
}

func readRows(path string) ([]float32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	rows := make([]float32, info.Size()/4)
	return rows, binary.Read(bufio.NewReaderSize(f, 1<<20), binary.LittleEndian, rows)
}

// infer is a worker's share of a prediction.
func (t *task) infer(ctx context.Context, part *partition.Part, end wire.Endpoint, threads int, from *train.State) (
	*share, error) {
	s := t.Spec
	s.Machine.Threads = threads
	own, err := part.Features.Rescaled(part.Book.Features.Scale, t.Infer.Scale)
	if err != nil {
		return nil, graph.InFile(part.Dir, err)
	}
	rescaled := *part
	rescaled.Features = own
	dev, err := newDevice(&s, end.Rank())
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	opt := train.Options{Model: t.Infer.Model, RowNormalize: t.Infer.RowNormalize, Rows: tensor.F32}
	if opt.Strategy, err = s.Choice(); err != nil {
		return nil, err
	}
	rows, err := train.Infer(ctx, dev, &rescaled, end, opt, from.Model, t.Infer.LeftOut)
	if err != nil {
		return nil, err
	}
	list := make([]float32, rows.Rows*rows.Cols)
	dev.Download(list, rows)
	return &share{}, disk.Write(inferred(t.Infer.Folder, end.Rank()), func(w io.Writer) error {
		return binary.Write(w, binary.LittleEndian, list)
	})
}
