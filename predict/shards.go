package predict

import (
	"fmt"
	"strings"
	"time"

	"starling/graph"
	"starling/partition"
	"starling/serve"
	"starling/setup"
	"starling/spec"
	"starling/supervise"
	"starling/tensor"
	"starling/worker"
)

// With --shards predictions over a partition stay where their owners are: a pair of files per part, the rows of its own
// vertices in the order of the part, and their numbers in the dataset. Every worker writes what it computed; this
// process then makes predictions of it part by part, and so holds one part's rows, and no list of all vertices.

// checkShards refuses --shards where there are no parts to have them.
func (o *Options) checkShards() error {
	if !o.Shards {
		return nil
	}
	switch {
	case !partition.IsPartition(o.Dataset):
		return spec.Mistake("--shards", "it with a dataset that is no partition", "a partition, whose parts have a file each", "leave it out")
	case !strings.HasSuffix(o.Out, ".npy"):
		return spec.Mistake("--shards", "it with --out "+o.Out, "a file that ends in .npy", "")
	case o.Report != "":
		return spec.Mistake("--shards", "it with --report", "one of them, as a report is of all vertices", "leave one out")
	}
	return nil
}

// shardFiles are the files of a part: its rows, and the vertices that they are of.
func (o *Options) shardFiles(k int) (rows, ids string) {
	prefix := fmt.Sprintf("%s-%d", strings.TrimSuffix(o.Out, ".npy"), k)
	return prefix + ".npy", prefix + ".ids.npy"
}

// inShards predicts over parts, and leaves each part's rows in files of its own.
func (o Options) inShards() (*Predicted, error) {
	start := time.Now()
	trained, err := o.open()
	if err != nil {
		return nil, err
	}
	c, err := o.inferenceOf(trained)
	if err != nil {
		return nil, err
	}
	d := &graph.Dataset{Dir: c.Parts.Dir, Meta: c.Parts.Meta, Graph: &graph.CSR{Indptr: make([]int64, 1), EdgeDim: c.Parts.Book.EdgeDim}}
	if d.Typed() {
		return nil, spec.Mistake("--shards", "it with a typed graph", "a graph without types", "leave it out")
	}
	if f := c.Parts.Book.Features; f != nil {
		d.Features = &graph.Features{Cols: f.Dim}
	}
	if err := knowsTarget(d, trained); err != nil {
		return nil, err
	}
	if err := trained.Suits(d, o.What); err != nil {
		return nil, err
	}
	out := &Predicted{Run: o.Run, Dataset: d.Meta.Name, Model: trained.Config.Model.Model, What: o.What,
		Workers: c.Spec.Cluster.Workers, Shards: c.Parts.Book.Parts}
	for k := range out.Shards {
		rows, ids := o.shardFiles(k)
		for _, file := range []string{rows, ids} {
			if err := setup.Overwriteable(file, "this file", o.Overwrite); err != nil {
				return nil, err
			}
		}
	}
	remove, err := workIn(c)
	if err != nil {
		return nil, err
	}
	defer remove()
	for k := range out.Shards {
		if err := o.shard(out, trained, d, c, k); err != nil {
			return nil, err
		}
	}
	rows, _ := o.shardFiles(0)
	out.Out = strings.TrimSuffix(rows, "0.npy") + "{K}.npy"
	out.Seconds, out.RSS = time.Since(start).Seconds(), tensor.PeakRSS()
	return out, nil
}

// shard writes the files of a part from what its worker computed.
func (o *Options) shard(out *Predicted, t *serve.Trained, d *graph.Dataset, c *supervise.Run, k int) error {
	part, err := partition.OpenPart(c.Parts.Dir, k)
	if err != nil {
		return err
	}
	defer part.Close()
	ids := part.IDs[:part.Core()]
	list, err := worker.InferredRows(c.Infer.Folder, k)
	if err != nil {
		return err
	}
	p := t.FromRows(d, o.What, len(ids), len(list)/len(ids), list)
	out.Vertices, out.Width = out.Vertices+len(ids), p.Width
	rows, names := o.shardFiles(k)
	out.Classes = p.ClassesFile(rows)
	if err := graph.WriteNPY(names, ids); err != nil {
		return err
	}
	return p.WriteNPY(rows)
}
