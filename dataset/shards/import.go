package shards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"starling/dataset"
	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

// Options are the settings of an import in shards.
type Options struct {
	dataset.ImportOptions
	Memory int64  // bytes that each process may take for its data
	IDs    string // what ids are: numbers, text, or "": all alike
	Role   tasks.Role
	Begun  func() error // if set, is called when other processes can join
}

// LeastMemory and DefaultMemory are bounds and default of Options.Memory.
const (
	LeastMemory   = 1 << 18
	DefaultMemory = 512 << 20
)

// Formats are the formats that are read in shards.
func Formats() []string { return []string{"edgelist", "parquet"} }

// plan is what the bytes of the result depend on.
type plan struct {
	Version  int // of the work, which an older program cannot go on with
	Name     string
	Memory   int64
	IDs      string
	Settings settings
	Edges    []source
	Vertices []source
	Columns  vertexColumns
}

// settings are what of dataset.ImportOptions is used here.
type settings struct {
	Symmetrize, KeepDuplicates, KeepSelfLoops, Weights, NegativeWeights, Standardize bool
	Header, Missing, Task                                                            string
	Nodes                                                                            int64
}

// source is a shard as it was when the work began.
type source struct {
	File  string
	Bytes int64
	Time  int64 // of its last change
}

const planVersion = 1

// job is an import.
type job struct {
	ctx      context.Context
	plan     plan
	opt      Options
	dir      string // of the shards
	edges    []string
	vertices []string
	f        *tasks.Folder

	text    bool
	counts  []readResult // of the shards of edges, then of vertices
	numbers numbering
	pieces  []piece
	sorted  []sortResult
	classes classes
	listed  int64
	loops   int64
}

// WorkFolder is where the work of an import to this folder is.
func WorkFolder(out string) string {
	out = filepath.Clean(out)
	return filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+".import")
}

// Import imports the shards of src with all processes that are called alike at the same time. It goes on where these
// were killed.
func Import(ctx context.Context, src string, opt Options, out string) (sum dataset.Summary, err error) {
	defer func() { err = explain(err, WorkFolder(out)) }()
	j := &job{ctx: ctx, opt: opt, dir: src}
	if err := j.check(); err != nil {
		return sum, err
	}
	if j.edges, j.vertices, err = dataset.EdgeShards(src); err != nil {
		return sum, err
	}
	if err := j.describe(); err != nil {
		return sum, err
	}
	work := WorkFolder(out)
	j.f, err = tasks.Begin(ctx, work, &j.plan, opt.Role, tasks.Target{Made: func() bool { return j.made(out) },
		Free: func() error { return graph.CheckTarget(out, opt.Overwrite) }, Overwrite: opt.Overwrite})
	if err != nil {
		return sum, err
	}
	if j.f == nil {
		return j.summary(out)
	}
	defer j.f.Close()
	j.f.Progress = opt.Progress
	if opt.Begun != nil {
		if err := opt.Begun(); err != nil {
			return sum, err
		}
	}
	if err := j.stages(out); err != nil {
		if _, gone := os.Stat(work); gone != nil && j.made(out) { // another process was faster, and has removed the work
			return j.summary(out)
		}
		return sum, err
	}
	return j.summary(out)
}

func (j *job) stages(out string) error {
	for _, stage := range []func() error{j.read, j.number, j.spread, j.sort, j.rows, j.place} {
		if err := stage(); err != nil {
			return err
		}
	}
	return j.finish(out)
}

// explain makes what the folder of the work tells a user's matter.
func explain(err error, work string) error {
	var other *tasks.Other
	switch {
	case errors.As(err, &other):
		return &graph.InputError{File: other.Dir, Found: "unfinished work of other shards or settings (" + other.Difference + ")",
			Want: "that of this import", Fix: "give the same shards and settings to go on, or remove the folder to begin again"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; what is done is kept in %s: free some space and give the same command again to go on", err, work)
	}
	return err
}

// check refuses settings that are not for shards.
func (j *job) check() error {
	o := &j.opt
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	bad := func(flag, found, want string) error {
		return &graph.InputError{Field: "--" + flag, Found: found, Want: want}
	}
	for flag, given := range map[string]bool{"labels": o.Labels != "", "features": o.Features != "", "splits": o.Splits != "",
		"features-from": o.FeaturesFrom != "", "one-hot": len(o.OneHot) > 0, "standardize": o.Standardize,
		"train": o.Split != dataset.SplitOptions{}, "task": o.Task != "" && o.Task != "classify", "missing": o.Missing == "mean"} {
		if given {
			return bad(flag, "a setting without effect on shards", "it without --workers; labels, features and splits are columns of shards called nodes…")
		}
	}
	switch {
	case o.Memory < LeastMemory:
		return bad("memory", fmt.Sprint(o.Memory), fmt.Sprintf("at least %d bytes", LeastMemory))
	case o.IDs != "" && o.IDs != "numbers" && o.IDs != "text":
		return bad("ids", fmt.Sprintf("%q", o.IDs), "numbers, text, or nothing: as they look")
	case o.IDs == "text" && o.Nodes > 0:
		return bad("ids", "text beside --nodes", "numbers from 0 to NODES-1")
	}
	return nil
}

// describe makes the plan.
func (j *job) describe() error {
	o := &j.opt
	p := &j.plan
	p.Version, p.Name, p.Memory, p.IDs = planVersion, o.Name, o.Memory, o.IDs
	if p.Name == "" {
		p.Name, _, _ = strings.Cut(filepath.Base(filepath.Clean(j.dir)), ".")
	}
	p.Settings = settings{o.Symmetrize, o.KeepDuplicates, o.KeepSelfLoops, o.Weights, o.NegativeWeights, o.Standardize, o.Header,
		o.Missing, o.Task, o.Nodes}
	for _, list := range []struct {
		paths []string
		to    *[]source
	}{{j.edges, &p.Edges}, {j.vertices, &p.Vertices}} {
		for _, path := range list.paths {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(j.dir, path)
			if err != nil || name == "." {
				name = filepath.Base(path)
			}
			*list.to = append(*list.to, source{name, info.Size(), info.ModTime().UnixNano()})
		}
	}
	return j.describeVertexTable()
}

// sourceLine is what meta.json says of a dataset that this import has made.
func (j *job) sourceLine() string {
	return fmt.Sprintf("import in %s, %08x", event.Tally(len(j.edges)+len(j.vertices), "shard"), sumOf(&j.plan))
}

// made tells whether out is the dataset that this import makes.
func (j *job) made(out string) bool {
	m, err := graph.ReadMeta(out)
	return err == nil && m.Source == j.sourceLine()
}

// summary describes the dataset, to the process that has put it in its place.
func (j *job) summary(out string) (dataset.Summary, error) {
	if j.opt.Role.Helper {
		return dataset.Summary{}, nil
	}
	m, err := graph.ReadMeta(out)
	if err != nil {
		return dataset.Summary{}, err
	}
	sum := dataset.Summary{Dir: out, Name: m.Name, Nodes: m.Nodes, Edges: m.Edges, Symmetric: m.Symmetric, Task: m.Task,
		Classes: m.Classes, Notes: m.Notes}
	if m.Features != nil {
		sum.Features, sum.FeatureKind = m.Features.Dim, m.Features.Kind
	}
	for name, n := range map[string]*int{"train.npy": &sum.Train, "val.npy": &sum.Val, "test.npy": &sum.Test} {
		if a := m.Arrays[name]; len(a.Shape) > 0 {
			*n = int(min(a.Shape[0], math.MaxInt))
		}
	}
	if j.f != nil && j.f.Absent != nil {
		sum.Notes = append(slices.Clip(sum.Notes), j.f.WithoutRanks())
	}
	return sum, nil
}
