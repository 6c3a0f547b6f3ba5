package partition

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"syscall"
	"time"

	"starling/disk/tasks"
	"starling/graph"
)

// A partition may be made by several processes that share a folder (package disk/tasks), none of which holds the graph:
//
//	check      window by window, a range of vertices: the edges are sound
//	assign     the method. Those that stream (ldg, fennel) read window after window, pass by pass; a pass is a task
//	refine     likewise: passes that lower the cut
//	settle     parts that exceed a limit are brought back within it
//	scatter    window by window: rows, by the part of their vertex
//	gather     part by part: its rows; the order of its vertices
//	halo       part by part: the remote vertices that it needs
//	write      part by part: its folder
//
// A process holds a few words for each vertex (the assignment, the weights of constraints, the new numbers), a window,
// and maps what belongs to one part. The parts have the same bytes as those of one process, for any number of processes,
// and when all of them were killed and started again.

// Shared says how processes work together.
type Shared struct {
	Processes int   // 0: one process partitions, in memory
	Memory    int64 // for a window
	Role      tasks.Role
	Begun     func() error // if set, is called when other processes can join
}

// Folder is where the work on a partition is.
func (s Shared) folder(out string) string {
	out = filepath.Clean(out)
	return filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+".partition")
}

// SharedMemory is what a process takes beside Shared.Memory.
type SharedMemory struct {
	Vertices int64 // the part, the order and the new number of each vertex, and marks
	Part     int64 // the rows of an average part, one at a time
}

// SharedMemoryFor is what each process takes that partitions this dataset.
func SharedMemoryFor(m *graph.Meta, parts int) SharedMemory {
	perVertex, perEdge, k := int64(16), int64(4), int64(max(parts, 1))
	if _, weighted := m.Arrays["weights.npy"]; weighted {
		perVertex, perEdge = 24, 8 // and the degree that gcn divides by
	}
	const perRow = 32 // of the part: where it begins, its vertex, its degree, its place in the order
	return SharedMemory{Vertices: perVertex * m.Nodes, Part: (perEdge*m.Edges + perRow*m.Nodes) / k}
}

// sharedPlan is what the bytes of the parts depend on.
type sharedPlan struct {
	Version             int
	Dataset, CRC32C     string
	Parts, Servers      int
	Method, Objective   string
	Balance             string
	BestEffort          bool
	Seed                uint64
	Tries, Passes, Hops int
	Memory              int64
	Refine              int `json:",omitempty"`
}

// sharedJob is a partition by several processes.
type sharedJob struct {
	*job
	ctx     context.Context
	plan    sharedPlan
	f       *tasks.Folder
	k       int
	windows []window
	loops   bool
	number  []uint32
	order   []uint32
	offsets []int64
	seconds float64
	begun   time.Time
	failed  string // why a constraint is not met
}

// window is a range of vertices, and where their edges are.
type window struct{ lo, hi int }

// runShared is Run by several processes.
func runShared(ctx context.Context, dir string, opt Options) (r *Report, err error) {
	work := opt.Shared.folder(opt.Out)
	defer func() { err = explainShared(err, work) }()
	if opt.Out == "" || opt.PartDirs != nil {
		return nil, &graph.InputError{Field: "processes", Found: "no --out, or --part-dir", Want: "--out with --processes, and all parts in it",
			Fix: "name the folder to write"}
	}
	d, err := graph.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	plan := sharedPlan{1, d.Meta.Name, d.Meta.CRC32C, opt.Parts, opt.Servers, opt.Method, opt.Objective.String(), opt.Balance,
		opt.BestEffort, opt.Seed, opt.Tries, opt.Passes, opt.Hops, opt.Shared.Memory, opt.Refine}
	if d.Typed() || d.HasTimes() {
		return nil, &graph.InputError{File: dir, Found: "a typed graph, or one with times", Want: "a graph without both for --processes",
			Fix: "leave --processes out"}
	}
	opt.Compare = false
	s := &sharedJob{job: &job{opt: opt, d: d, shared: true}, ctx: ctx, k: opt.Parts, begun: time.Now()}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	s.plan = plan
	s.f, err = tasks.Begin(ctx, work, plan, opt.Shared.Role, tasks.Target{Made: func() bool { return plan.made(opt.Out) },
		Free: func() error { return free(opt.Out, bookFile, opt.Overwrite) }, Overwrite: opt.Overwrite})
	if s.f == nil || err != nil {
		return nil, err
	}
	defer s.f.Close()
	s.f.Progress = opt.Progress
	if opt.Shared.Begun != nil {
		if err := opt.Shared.Begun(); err != nil {
			return nil, err
		}
	}
	if err := s.stages(); err != nil {
		if _, gone := os.Stat(work); gone != nil && plan.made(opt.Out) { // another process was faster, and has removed the work
			return nil, nil
		}
		return nil, err
	}
	if opt.Shared.Role.Helper {
		return nil, nil
	}
	return s.reportShared()
}

func (s *sharedJob) stages() error {
	for _, stage := range []func() error{s.check, s.assign, s.scatter, s.gather, s.halo, s.write} {
		if err := stage(); err != nil {
			return err
		}
	}
	return nil
}

// settingsFile is in a partition by several processes, so that the same command finds that it is done.
const settingsFile = "settings.json"

// made tells whether out has the parts of this plan.
func (p sharedPlan) made(out string) bool {
	text, err := json.Marshal(p)
	there, err2 := os.ReadFile(filepath.Join(out, settingsFile))
	return err == nil && err2 == nil && bytes.Equal(text, there) && IsPartition(out)
}

// explainShared makes what the folder of the work tells a user's matter.
func explainShared(err error, work string) error {
	var other *tasks.Other
	switch {
	case errors.As(err, &other):
		return &graph.InputError{File: other.Dir, Found: "unfinished work on another dataset or with other settings (" + other.Difference + ")",
			Want: "the work of this command", Fix: "give the same dataset and settings to go on, or remove the folder to begin again"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; what is done is kept in %s: free some space and give the same command again to go on", err, work)
	}
	return err
}

// divide makes windows of about as many edges as fit the memory several times.
func (s *sharedJob) divide() {
	g := s.d.Graph
	most := max(s.opt.Shared.Memory/32, 1<<10)
	for lo := 0; lo < g.Nodes(); {
		end := g.Indptr[lo] + most
		hi := lo + sort.Search(min(g.Nodes()-lo, int(most)), func(i int) bool { return g.Indptr[lo+i+1] > end })
		hi = max(hi, lo+1)
		s.windows = append(s.windows, window{lo, hi})
		lo = hi
	}
}

// checkResult is what is known of a window after it was checked.
type checkResult struct {
	Asymmetry uint64 `json:",string"`
	Loops     bool
}

func (s *sharedJob) check() error {
	s.divide()
	g := s.d.Graph
	if err := s.f.Do(s.ctx, "check", len(s.windows), func(k int, _ *tasks.Out) (any, error) {
		w := s.windows[k]
		lo, hi := g.Indptr[w.lo], g.Indptr[w.hi]
		defer s.d.ReleaseEdges(lo, hi)
		part := &graph.CSR{Indices: g.Indices[lo:hi]}
		if g.Weights != nil {
			part.Weights = g.Weights[lo:hi]
		}
		if g.EdgeFeatures != nil {
			part.EdgeFeatures, part.EdgeDim = g.EdgeFeatures[lo*int64(g.EdgeDim):hi*int64(g.EdgeDim)], g.EdgeDim
		}
		if err := graph.CheckEdgeValues(part); err != nil {
			return nil, graph.InFile(s.d.Dir, err)
		}
		var r checkResult
		for v := w.lo; v < w.hi; v++ {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				u := g.Indices[e]
				if int64(u) >= int64(g.Nodes()) {
					return nil, &graph.InputError{File: s.d.Dir, Field: "indices", Found: fmt.Sprintf("%d at position %d", u, e),
						Want: fmt.Sprintf("ids from 0 to %d", g.Nodes()-1), Fix: "import the dataset again or correct its source"}
				}
				var weight float32
				if g.Weights != nil {
					weight = g.Weights[e]
				}
				r.Asymmetry += graph.SignedHash(uint64(u), uint64(v), weight)
				r.Loops = r.Loops || int(u) == v
			}
		}
		return r, s.ctx.Err()
	}); err != nil {
		return err
	}
	var sum uint64
	for k := range s.windows {
		var r checkResult
		if err := s.f.Result("check", k, &r); err != nil {
			return err
		}
		sum += r.Asymmetry
		s.loops = s.loops || r.Loops
	}
	if s.d.Meta.Symmetric && sum != 0 {
		return &graph.InputError{File: s.d.Dir, Field: "symmetric", Found: "true", Want: "false, as some edges have no reverse",
			Fix: "correct it or make the dataset again"}
	}
	return nil
}
