package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"starling/cluster"
	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/partition"
)

// parts is a partition that a run trains on.
type parts struct {
	dir  string // absolute: workers may be started elsewhere
	book *partition.Book
	meta graph.Meta // of the dataset, as far as is known
	// remove deletes a partition that was made for this run only.
	remove func()
}

// settleWorkers finds out how many workers there are, where that was not said.
func (s *Spec) settleWorkers() error {
	if err := s.settleParts(); err != nil {
		return err
	}
	dir := s.partitionFolder()
	if dir == "" {
		if s.Hosts != "" && s.Workers == 0 {
			hosts, err := openHosts(s.Hosts)
			if err != nil {
				return err
			}
			s.Workers = len(cluster.Slots(hosts))
		}
		s.complete()
		return nil
	}
	book, err := partition.OpenBook(dir)
	if err != nil {
		return err
	}
	if s.Workers == 0 {
		s.Workers = book.Parts
	}
	if s.Strategy == "auto" {
		s.Strategy = "halo"
	}
	switch {
	case s.Strategy == "none":
		return mistake("--strategy", "none", "halo for a partition", "give the dataset itself to train without workers")
	case s.Workers != book.Parts:
		return mistake("--workers", fmt.Sprint(s.Workers), fmt.Sprintf("%d, the parts of %s", book.Parts, dir), "leave it (and --parts) out, or make another partition")
	case s.Servers == 0 && book.Servers > 1:
		s.Servers = book.Servers
	}
	s.complete()
	return nil
}

// settleParts takes --parts for the number of workers, since each trains one, and
// a method in --partition for the way to cut; a folder of that name goes first.
func (s *Spec) settleParts() error {
	if _, err := os.Stat(s.Partition); err != nil && slices.Contains(partition.Names(), s.Partition) {
		if s.Partitioner != s.Partition && s.Partitioner != Default().Partitioner {
			return mistake("--partitioner", s.Partitioner+" beside --partition "+s.Partition, "one method to cut with", "leave out one of the two")
		}
		s.Partition, s.Partitioner = "", s.Partition
	}
	switch {
	case s.Parts == 0:
	case s.Parts < 0 || s.Workers != 0 && s.Workers != s.Parts:
		return mistake("--parts", fmt.Sprintf("%d, and --workers %d", s.Parts, s.Workers), "as many parts as workers", "leave out one of the two")
	default:
		s.Workers, s.Parts = s.Parts, 0
	}
	return nil
}

// partitionFolder is the partition that the user names, or "".
func (s *Spec) partitionFolder() string {
	switch {
	case s.Partition != "":
		return s.Partition
	case s.Dataset != "" && partition.IsPartition(s.Dataset):
		return s.Dataset
	}
	return ""
}

// findParts opens the partition that the user names, or cuts the dataset.
func (s *Spec) findParts(ctx context.Context, events event.Listener) (*parts, error) {
	dir := s.partitionFolder()
	if dir == "" {
		return s.cut(ctx, events)
	}
	p, err := openParts(dir)
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
		return nil, mistake("--partition", fmt.Sprintf("%s, of a graph with %s and %s", dir, event.Counted(p.book.Nodes, "vertex"), event.Counted(p.book.Edges, "edge")),
			fmt.Sprintf("a partition of %s, with %d and %d", s.Dataset, d.Meta.Nodes, d.Meta.Edges), "partition the dataset again")
	}
	p.meta.CRC32C = d.Meta.CRC32C
	return p, nil
}

// openParts reads the book of a partition.
func openParts(dir string) (*parts, error) {
	book, err := partition.OpenBook(dir)
	if err != nil {
		return nil, err
	}
	lack := func(what string) error {
		return &graph.InputError{File: dir, Found: "no " + what, Want: "a partition with features, labels and a training split", Fix: "partition a dataset that has them"}
	}
	switch {
	case book.Features == nil:
		return nil, lack("features")
	case book.Task == "":
		return nil, lack("labels")
	case book.Train == 0:
		return nil, lack("training split")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &parts{dir: abs, book: book, remove: func() {},
		meta: graph.Meta{Name: book.Dataset, Nodes: book.Nodes, Edges: book.Edges, Symmetric: book.Symmetric, EdgeDim: book.EdgeDim, Features: book.Features, Task: book.Task, Classes: book.Classes}}, nil
}

// cut partitions the dataset into a temporary folder.
func (s *Spec) cut(ctx context.Context, events event.Listener) (p *parts, err error) {
	if s.elsewhere() {
		return nil, s.wantsParts()
	}
	d, err := openForTraining(s.Dataset, true)
	if err != nil {
		return nil, err
	}
	meta := d.Meta
	d.Close()
	tmp, remove, err := partsFolder()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	opt := DefaultPartition()
	opt.Parts, opt.Servers, opt.Method, opt.Seed, opt.Out = s.Workers, max(s.Servers, 1), s.Partitioner, s.Seed, filepath.Join(tmp, "parts")
	if s.Partitioner == "multilevel" {
		// A worker's time follows its edges: by vertices alone a power-law graph gives one of them nearly all.
		opt.Balance, opt.BestEffort = "vertices:0.1,edges:0.2", true
	}
	start := time.Now()
	r, err := Partition(ctx, s.Dataset, opt, events)
	if err != nil {
		return nil, workersMistake(err)
	}
	if !s.Quiet {
		events.On(event.Note{Minor: true, Text: fmt.Sprintf("cut into %s by %s in %s, %s of edges between parts; to keep them: starling partition %s --parts %d --out PARTS",
			event.Counted(r.Parts, "part"), r.Method, event.Duration(time.Since(start)), percent(r.EdgeCutShare), s.Dataset, r.Parts)})
	}
	if p, err = openParts(opt.Out); err != nil {
		return nil, err
	}
	p.meta.CRC32C = meta.CRC32C
	p.remove = remove
	return p, nil
}

// wantsParts is the mistake of giving workers elsewhere a dataset.
func (s *Spec) wantsParts() error {
	return mistake("DIR", s.Dataset+", a dataset", "a partition folder, which all workers can open", fmt.Sprintf("starling partition %s --parts %d --out PARTS", s.Dataset, s.Workers))
}

// partsFolder is a temporary one that goes with this process: if it is killed, the next
// that needs one removes it.
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

// workersMistake names the flags of starling train where partitioning names its own.
func workersMistake(err error) error {
	return renamed(err, map[string]string{"--parts": "--workers", "--method": "--partitioner"})
}
