package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/report"
	"starling/spec"
)

// parts is a partition that a run trains on.
type parts struct {
	dir  string // absolute: workers may be started elsewhere
	book *partition.Book
	meta graph.Meta // of the dataset, as far as is known
	// remove deletes a partition that was made for this run only.
	remove func()
}

// findParts opens the partition that the user names, or makes one.
func findParts(ctx context.Context, s *spec.Spec, events event.Listener) (*parts, error) {
	dir := s.PartitionFolder()
	if dir == "" {
		return cutDataset(ctx, s, events)
	}
	p, err := openParts(dir, s)
	if err != nil {
		return nil, err
	}
	if s.Dataset == "" || s.Dataset == dir {
		return p, nil
	}
	d, err := graph.Open(s.Dataset)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if d.Meta.Nodes != p.book.Nodes || d.Meta.Edges != p.book.Edges {
		return nil, spec.Mistake("--partition", fmt.Sprintf("%s, of a graph with %s and %s", dir,
			event.Counted(p.book.Nodes, "vertex"), event.Counted(p.book.Edges, "edge")),
			fmt.Sprintf("a partition of %s, with %d and %d", s.Dataset, d.Meta.Nodes, d.Meta.Edges),
			"partition the dataset again")
	}
	if differ := p.book.Contents.Differences(d.Contents()); p.book.Contents != (graph.Contents{}) && len(differ) > 0 {
		return nil, spec.Mistake("--partition", fmt.Sprintf("%s, of a dataset with other %s", dir,
			strings.Join(differ, ", ")), "a partition of "+s.Dataset, "partition the dataset again")
	}
	p.meta.CRC32C = d.Meta.CRC32C
	return p, nil
}

// openParts reads the book of a partition, which has the features and labels that a run needs.
func openParts(dir string, s *spec.Spec) (*parts, error) {
	book, err := partition.OpenBook(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case book.Features == nil && s.Embeddings.Dim == 0:
		return nil, noFeatures(dir)
	case book.Task == "" && !s.LearnsPairs():
		return nil, noLabels(dir, "labels")
	case book.Train == 0 && !s.LearnsPairs():
		return nil, noLabels(dir, "training split")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return partsOf(abs, book), nil
}

// partsOf is an open partition.
func partsOf(dir string, book *partition.Book) *parts {
	return &parts{dir: dir, book: book, remove: func() {},
		meta: graph.Meta{Name: book.Dataset, Nodes: book.Nodes, Edges: book.Edges, Symmetric: book.Symmetric,
			EdgeDim: book.EdgeDim, Features: book.Features, Task: book.Task, Classes: book.Classes,
			ClassNames: book.ClassNames}}
}

// cutDataset partitions the dataset into a temporary folder.
func cutDataset(ctx context.Context, s *spec.Spec, events event.Listener) (p *parts, err error) {
	if remoteWorkers(s) {
		return nil, needsPartition(s)
	}
	d, err := openForTraining(s)
	if err != nil {
		return nil, err
	}
	meta := d.Meta
	err = checkWeights(s, d.Graph)
	d.Close()
	if err != nil {
		return nil, err
	}
	tmp, remove, err := partsFolder()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	opt := spec.DefaultPartition()
	opt.Parts, opt.Servers, opt.Method, opt.Seed = s.Cluster.Workers, max(s.Cluster.Servers, 1), s.Cluster.Partitioner,
		s.Seed
	opt.Out = filepath.Join(tmp, "parts")
	start := time.Now()
	r, err := Partition(ctx, s.Dataset, opt, events)
	if err != nil {
		return nil, workersMistake(err)
	}
	if !s.Output.Quiet {
		noteCut(r, s.Dataset, opt, time.Since(start), events)
	}
	if p, err = openParts(opt.Out, s); err != nil {
		return nil, err
	}
	p.meta.CRC32C = meta.CRC32C
	p.remove = remove
	return p, nil
}

// noteCut says how the dataset was partitioned, the command that gives the same parts, and what is doubtful about them.
func noteCut(r *report.Partition, dataset string, opt spec.Partition, took time.Duration, events event.Listener) {
	events.On(event.Note{Minor: true, Text: fmt.Sprintf("cut into %s by %s in %s, %s of edges between parts; to "+
		"keep them: %s", event.Counted(r.Parts, "part"), r.Method, event.Duration(took),
		report.Percent(r.EdgeCutShare), partitionCommand(dataset, opt))})
	for _, text := range r.Notes {
		events.On(event.Note{Text: text})
	}
}

// partitionCommand is the command that partitions the dataset as opt says.
func partitionCommand(dataset string, opt spec.Partition) string {
	usual := spec.DefaultPartition()
	words := fmt.Sprintf("starling partition %s --parts %d", dataset, opt.Parts)
	if opt.Servers != usual.Servers {
		words += fmt.Sprintf(" --servers %d", opt.Servers)
	}
	if opt.Method != usual.Method {
		words += " --method " + opt.Method
	}
	if opt.Seed != usual.Seed {
		words += fmt.Sprintf(" --seed %d", opt.Seed)
	}
	return words + " --out PARTS"
}

// needsPartition is the mistake of giving a dataset to workers on other hosts.
func needsPartition(s *spec.Spec) error {
	return spec.Mistake("DIR", s.Dataset+", a dataset", "a partition folder, which all workers can open",
		fmt.Sprintf("starling partition %s --parts %d --out PARTS", s.Dataset, s.Cluster.Workers))
}

// partsFolder is a temporary folder of this process: if it is killed, the next process that makes
// one removes it.
func partsFolder() (dir string, remove func(), err error) {
	const name = "starling-parts-*"
	disk.Sweep(filepath.Join(os.TempDir(), name))
	if dir, err = os.MkdirTemp("", name); err != nil {
		return "", nil, err
	}
	release, err := disk.Hold(dir)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, sync.OnceFunc(func() {
		os.RemoveAll(dir)
		release()
	}), nil
}

// workersMistake is a mistake of partitioning with the flags of starling train.
func workersMistake(err error) error {
	return spec.Renamed(err, map[string]string{"--parts": "--workers", "--method": "--partitioner"})
}
