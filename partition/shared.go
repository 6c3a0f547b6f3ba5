package partition

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"syscall"
	"time"
	"unsafe"

	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

// A partition may be made by several processes that share a folder (package disk/tasks), none of which holds the graph:
//
//	check      window by window, a range of vertices: the edges are sound
//	assign     the method. Those that stream (ldg, fennel) read window after window, pass by pass; a pass is a task
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
	Helper    bool  // it is another process that puts the parts in their place, and reports
}

// Folder is where the work on a partition is.
func (s Shared) folder(out string) string {
	out = filepath.Clean(out)
	return filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+".partition")
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
		opt.BestEffort, opt.Seed, opt.Tries, opt.Passes, opt.Hops, opt.Shared.Memory}
	if _, err := os.Stat(work); err != nil {
		if !opt.Overwrite && plan.made(opt.Out) {
			return nil, tasks.Clean(work)
		}
		if err := free(opt.Out, bookFile, opt.Overwrite); err != nil {
			return nil, err
		}
	}
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
	if s.f, err = tasks.Open(work, plan); err != nil {
		return nil, err
	}
	defer s.f.Close()
	s.f.Progress = opt.Progress
	for _, stage := range []func() error{s.check, s.assign, s.scatter, s.gather, s.halo, s.write} {
		if err := stage(); err != nil {
			return nil, err
		}
	}
	if opt.Shared.Helper {
		return &Report{Out: opt.Out}, nil
	}
	return s.reportShared()
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

// assignResult is what is known of an assignment.
type assignResult struct {
	Moved   int
	Seed    uint64
	Seconds float64
	Failed  string // the constraint that is not met
}

// assign finds the part of every vertex.
func (s *sharedJob) assign() error {
	last := 0
	begin := streams[s.opt.Method]
	s.p.Scanned = func(lo, hi int) { s.d.ReleaseEdges(s.d.Graph.Indptr[lo], s.d.Graph.Indptr[hi]) }
	if begin != nil && s.opt.Servers <= 1 {
		for ; last < s.p.passes(); last++ {
			if err := s.f.Do(s.ctx, passName(last), 1, func(_ int, out *tasks.Out) (any, error) { return s.pass(begin, last, out) }); err != nil {
				return err
			}
			if last > 0 {
				if err := s.f.Drop(passName(last-1), 0, 1); err != nil {
					return err
				}
			}
			var r assignResult
			if err := s.f.Result(passName(last), 0, &r); err != nil {
				return err
			}
			if s.seconds += r.Seconds; r.Moved == 0 {
				last++
				break
			}
		}
	}
	if err := s.f.Do(s.ctx, "settle", 1, func(_ int, out *tasks.Out) (any, error) { return s.settle(last, out) }); err != nil {
		return err
	}
	var r assignResult
	if err := s.f.Result("settle", 0, &r); err != nil {
		return err
	}
	s.seconds += r.Seconds
	s.p.Seed, s.failed = r.Seed, r.Failed
	if r.Failed != "" && s.opt.Balance != "" && !s.opt.BestEffort {
		return &graph.InputError{Field: "balance", Found: graph.Sentence(r.Failed), Fix: "remove " + s.f.Dir + " before you ask for something else"}
	}
	return s.loadParts("settle")
}

func passName(k int) string { return fmt.Sprintf("pass%d", k) }

func (s *sharedJob) loadParts(stage string) error {
	s.parts = make([]uint32, s.d.Graph.Nodes())
	r, err := s.f.Open(stage, 0, "parts")
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.ReadFull(r, bytesOf(s.parts))
	return err
}

func (s *sharedJob) saveParts(out *tasks.Out, parts []uint32) error {
	w, err := out.Create("parts")
	if err != nil {
		return err
	}
	_, err = w.Write(bytesOf(parts))
	return err
}

// pass is one pass of a method that streams.
func (s *sharedJob) pass(begin func(*Problem) *stream, k int, out *tasks.Out) (any, error) {
	begun := time.Now()
	st := begin(&s.p)
	if k > 0 {
		if err := s.loadParts(passName(k - 1)); err != nil {
			return nil, err
		}
		st.parts = s.parts
		st.loads.of(st.parts)
	}
	moved, err := st.pass(s.ctx, s.opt.Method, k, s.p.passes())
	if err == nil {
		err = s.saveParts(out, st.parts)
	}
	return assignResult{Moved: moved, Seconds: time.Since(begun).Seconds()}, err
}

// settle meets the limits after the last of several passes; without passes it is the whole method, in memory.
func (s *sharedJob) settle(passes int, out *tasks.Out) (any, error) {
	begun := time.Now()
	r := assignResult{Seed: s.opt.Seed}
	if passes == 0 {
		s.p.Scanned = nil // servers have graphs of their own
		best, _, err := s.bestTry(s.ctx)
		if err != nil {
			return nil, err
		}
		s.parts, r.Seed = best.parts, best.seed
		if best.err != nil {
			r.Failed = best.err.Error()
		}
	} else {
		if err := s.loadParts(passName(passes - 1)); err != nil {
			return nil, err
		}
		err := rebalance(s.ctx, &s.p, s.parts, newLoads(&s.p).of(s.parts))
		var u *Unbalanced
		if errors.As(err, &u) {
			r.Failed = u.Error()
		} else if err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(begun).Seconds()
	return r, s.saveParts(out, s.parts)
}

// bytesOf views numbers as the bytes of a little-endian file.
func bytesOf[T uint32 | int64 | float32 | float64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// scatterResult says where the rows of each part are in a window's files.
type scatterResult struct {
	Edges    []int64 // before each part's, and in all
	Boundary []int64 // likewise of the vertices that other parts need
}

// scatter divides the rows of each window by part.
func (s *sharedJob) scatter() error {
	if err := s.f.Do(s.ctx, "scatter", len(s.windows), s.scatterWindow); err != nil {
		return err
	}
	return nil
}

func (s *sharedJob) scatterWindow(k int, out *tasks.Out) (any, error) {
	w, g := s.windows[k], s.d.Graph
	lo, hi := g.Indptr[w.lo], g.Indptr[w.hi]
	defer s.d.ReleaseEdges(lo, hi)
	r := scatterResult{Edges: make([]int64, s.k+1)}
	for v := w.lo; v < w.hi; v++ {
		r.Edges[s.parts[v]+1] += int64(g.Degree(uint32(v)))
	}
	for p := range s.k {
		r.Edges[p+1] += r.Edges[p]
	}
	next := slices.Clone(r.Edges)
	sources := make([]uint32, hi-lo)
	var weights []float32
	if g.Weights != nil {
		weights = make([]float32, hi-lo)
	}
	var remote []uint64 // part and number of vertices that other parts need
	for v := w.lo; v < w.hi; v++ {
		p := s.parts[v]
		row := g.Neighbors(uint32(v))
		copy(sources[next[p]:], row)
		if weights != nil {
			copy(weights[next[p]:], g.Weights[g.Indptr[v]:g.Indptr[v+1]])
		}
		next[p] += int64(len(row))
		for _, u := range row {
			if q := s.parts[u]; q != p {
				remote = append(remote, uint64(q)<<32|uint64(u))
			}
		}
		if len(remote) > 1<<20 && len(remote) > 2*cap(remote)/3 {
			slices.Sort(remote)
			remote = slices.Compact(remote)
		}
	}
	slices.Sort(remote)
	remote = slices.Compact(remote)
	r.Boundary = make([]int64, s.k+1)
	list := make([]uint32, len(remote))
	for i, x := range remote {
		list[i] = uint32(x)
		r.Boundary[x>>32+1]++
	}
	for p := range s.k {
		r.Boundary[p+1] += r.Boundary[p]
	}
	for name, b := range map[string][]byte{"sources": bytesOf(sources), "weights": bytesOf(weights), "boundary": bytesOf(list)} {
		if name == "weights" && weights == nil {
			continue
		}
		f, err := out.Create(name)
		if err == nil {
			_, err = f.Write(b)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, s.ctx.Err()
}

// gatherResult is what is known of a part after stage gather.
type gatherResult struct {
	Core, Edges, Cut int64
	GCN              bool
}

// gather puts the rows of each part together and orders its vertices.
func (s *sharedJob) gather() error {
	if err := s.f.Do(s.ctx, "gather", s.k, s.gatherPart); err != nil {
		return err
	}
	if err := s.f.Drop("scatter", 0, len(s.windows)); err != nil {
		return err
	}
	s.q = &Quality{Traffic: make([][]int64, s.k), Remote: make([]int64, s.k)}
	s.offsets = []int64{0}
	for p := range s.k {
		var r gatherResult
		if err := s.f.Result("gather", p, &r); err != nil {
			return err
		}
		s.q.Core, s.q.Edges = append(s.q.Core, r.Core), append(s.q.Edges, r.Edges)
		s.q.EdgeCut += r.Cut
		s.offsets = append(s.offsets, s.offsets[p]+r.Core)
	}
	if s.d.Meta.Symmetric {
		s.q.EdgeCut /= 2
	}
	return nil
}

// coreOf lists the vertices of a part in ascending order.
func (s *sharedJob) coreOf(k int) (core []uint32) {
	for v, p := range s.parts {
		if int(p) == k {
			core = append(core, uint32(v))
		}
	}
	return core
}

func (s *sharedJob) gatherPart(k int, out *tasks.Out) (any, error) {
	core, g := s.coreOf(k), s.d.Graph
	r := gatherResult{Core: int64(len(core)), GCN: g.Weights != nil || s.loops}
	indptr := make([]int64, len(core)+1)
	for i, v := range core {
		indptr[i+1] = indptr[i] + int64(g.Degree(v))
	}
	if r.Edges = indptr[len(core)]; r.Edges > math.MaxUint32 {
		return nil, &graph.InputError{Field: "parts", Found: fmt.Sprintf("%d, of which part %d has %s", s.k, k, event.Tally(r.Edges, "edge")),
			Want: "fewer than 2^32 edges in each", Fix: "ask for more parts, or balance edges"}
	}
	sources := make([]uint32, r.Edges)
	var weights []float32
	if g.Weights != nil {
		weights = make([]float32, r.Edges)
	}
	border := newBits(g.Nodes())
	if err := s.collect(k, sources, weights, border); err != nil {
		return nil, err
	}
	own := newRanks(g.Nodes())
	own.of(core)
	boundary, gcn := newBits(len(core)), make([]float64, len(core))
	for i, v := range core {
		if border.has(v) {
			boundary.set(uint32(i))
		}
		for e := indptr[i]; e < indptr[i+1]; e++ {
			switch u := sources[e]; {
			case int(s.parts[u]) != k:
				r.Cut++
				boundary.set(uint32(i))
			case u == v:
				continue
			}
			if weights != nil {
				gcn[i] += float64(weights[e])
			} else {
				gcn[i]++
			}
		}
	}
	order := s.orderPart(&graph.CSR{Indptr: indptr, Indices: sources}, core, own, boundary)
	byOrder := make([]float64, len(core))
	for i, at := range order {
		byOrder[i] = gcn[at]
		order[i] = core[at]
	}
	files := map[string][]byte{"sources": bytesOf(sources), "order": bytesOf(order), "gcn": bytesOf(byOrder)}
	for name, b := range files {
		if name == "gcn" && !r.GCN {
			continue
		}
		f, err := out.Create(name)
		if err == nil {
			_, err = f.Write(b)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, s.ctx.Err()
}

// collect reads a part's rows from the windows, and marks its vertices that other parts need.
func (s *sharedJob) collect(k int, sources []uint32, weights []float32, border bitset) error {
	at := int64(0)
	for w := range s.windows {
		var r scatterResult
		if err := s.f.Result("scatter", w, &r); err != nil {
			return err
		}
		n := r.Edges[k+1] - r.Edges[k]
		boundary := make([]uint32, r.Boundary[k+1]-r.Boundary[k])
		for name, to := range map[string]struct {
			b    []byte
			from int64
		}{"sources": {bytesOf(sources[at : at+n]), r.Edges[k]}, "boundary": {bytesOf(boundary), r.Boundary[k]}} {
			if err := s.readAt("scatter", w, name, to.b, 4*to.from); err != nil {
				return err
			}
		}
		if weights != nil {
			if err := s.readAt("scatter", w, "weights", bytesOf(weights[at:at+n]), 4*r.Edges[k]); err != nil {
				return err
			}
		}
		for _, v := range boundary {
			border.set(v)
		}
		at += n
	}
	return nil
}

func (s *sharedJob) readAt(stage string, k int, name string, b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	path, err := s.f.Path(stage, k, name)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(b, at)
	return err
}

// orderPart orders the vertices of a part as order does: by their places in core.
func (s *sharedJob) orderPart(g *graph.CSR, core []uint32, own *ranks, boundary bitset) []uint32 {
	list := make([]uint32, 0, len(core))
	if f := s.d.Features; f != nil && 4*int64(len(f.F32))+2*int64(len(f.BF16))+8*int64(len(f.Indices)) > sequentialBytes {
		for i := range uint32(len(core)) {
			list = append(list, i)
		}
	} else {
		seen, next := newBits(len(core)), 0
		for i := range uint32(len(core)) {
			if seen.set(i) {
				list = append(list, i)
			}
			for ; next < len(list); next++ {
				for _, u := range g.Neighbors(list[next]) {
					if !own.bits.has(u) {
						continue
					}
					if at := own.rank(u); seen.set(at) {
						list = append(list, at)
					}
				}
			}
		}
	}
	boundaryFirst(list, boundary)
	return list
}

// halo lists the remote vertices of each part.
func (s *sharedJob) halo() error {
	if err := s.numberVertices(); err != nil {
		return err
	}
	if err := s.f.Do(s.ctx, "halo", s.k, func(k int, out *tasks.Out) (any, error) {
		r, err := s.f.Open("gather", k, "sources")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		seen, n := newBits(len(s.number)), 0
		buf := make([]uint32, 1<<14)
		for left := s.q.Edges[k]; left > 0; {
			some := buf[:min(left, int64(len(buf)))]
			if _, err := io.ReadFull(r, bytesOf(some)); err != nil {
				return nil, err
			}
			for _, u := range some {
				if int(s.parts[u]) != k && seen.set(s.number[u]) {
					n++
				}
			}
			left -= int64(len(some))
		}
		list := seen.list(make([]uint32, 0, n))
		row := make([]int64, s.k)
		for q := range s.k {
			row[q] = int64(within(list, s.offsets[q+1]) - within(list, s.offsets[q]))
		}
		w, err := out.Create("halo")
		if err == nil {
			_, err = w.Write(bytesOf(list))
		}
		return row, err
	}); err != nil {
		return err
	}
	for k := range s.k {
		if err := s.f.Result("halo", k, &s.q.Traffic[k]); err != nil {
			return err
		}
		for _, n := range s.q.Traffic[k] {
			s.q.Remote[k] += n
		}
		s.q.CommVolume += s.q.Remote[k]
	}
	return nil
}

// numberVertices reads the orders of all parts.
func (s *sharedJob) numberVertices() error {
	if s.f.Done("write") {
		return nil // and they may be gone
	}
	n := s.d.Graph.Nodes()
	s.order, s.number = make([]uint32, n), make([]uint32, n)
	for k := range s.k {
		r, err := s.f.Open("gather", k, "order")
		if err != nil {
			return err
		}
		_, err = io.ReadFull(r, bytesOf(s.order[s.offsets[k]:s.offsets[k+1]]))
		r.Close()
		if err != nil {
			return err
		}
	}
	for i, v := range s.order {
		s.number[v] = uint32(i)
	}
	return nil
}

// write writes the parts.
func (s *sharedJob) write() error {
	if err := s.f.Do(s.ctx, "identify", 1, func(int, *tasks.Out) (any, error) { return identify(s.d, s.parts, s.k), nil }); err != nil {
		return err
	}
	var id string
	if err := s.f.Result("identify", 0, &id); err != nil {
		return err
	}
	w := &folderWriter{d: s.d, parts: s.parts, number: s.number, order: s.order}
	w.book = bookOf(s.d, s.k, s.q, WriteOptions{Servers: s.opt.Servers, Method: s.opt.Method, Seed: s.p.Seed})
	w.book.ID, w.book.Offsets = id, s.offsets
	w.markSplits()
	var ranks *ranks
	if err := s.f.Do(s.ctx, "write", s.k, func(k int, out *tasks.Out) (any, error) {
		if w.halos == nil {
			if err := s.mapHalos(w); err != nil {
				return nil, err
			}
			ranks = newRanks(len(s.parts))
		}
		return nil, s.writePart(w, k, ranks, out.Dir)
	}); err != nil {
		return err
	}
	if s.opt.Shared.Helper {
		return nil
	}
	out := filepath.Join(s.f.Dir, "partition")
	return s.f.Finish(s.ctx, func() error { return s.publish(out, &w.book) })
}

// mapHalos maps the halos of all parts, and loads the degrees that gcn divides by.
func (s *sharedJob) mapHalos(w *folderWriter) error {
	w.halos = make([][]uint32, s.k)
	for k := range s.k {
		w.halos[k] = make([]uint32, s.q.Remote[k])
		if err := s.readAt("halo", k, "halo", bytesOf(w.halos[k]), 0); err != nil {
			return err
		}
	}
	if s.d.Graph.Weights == nil && !s.loops {
		return nil
	}
	w.gcn = make([]float64, len(s.parts))
	var one [8]byte
	for k := range s.k {
		r, err := s.f.Open("gather", k, "gcn")
		if err != nil {
			return err
		}
		for i := s.offsets[k]; i < s.offsets[k+1] && err == nil; i++ {
			_, err = io.ReadFull(r, one[:])
			w.gcn[s.order[i]] = math.Float64frombits(binary.LittleEndian.Uint64(one[:]))
		}
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// writePart writes the folder of a part from its rows.
func (s *sharedJob) writePart(w *folderWriter, k int, r *ranks, dir string) error {
	core := s.coreOf(k)
	own := newRanks(len(s.parts))
	own.of(core)
	g := &graph.CSR{Indptr: make([]int64, len(core)+1), Indices: make([]uint32, s.q.Edges[k])}
	for i, v := range core {
		g.Indptr[i+1] = g.Indptr[i] + int64(s.d.Graph.Degree(v))
	}
	if err := s.readAt("gather", k, "sources", bytesOf(g.Indices), 0); err != nil {
		return err
	}
	r.of(w.halos[k])
	p := partWriter{all: w, k: k, ranks: r, out: graph.NewFolderWriter(dir), rows: g, at: own.rank}
	return p.write(s.ctx, filepath.Join(dir, partFile))
}

// publish puts the folder of the partition together and renames it.
func (s *sharedJob) publish(dir string, book *Book) error {
	out := filepath.Clean(s.opt.Out)
	if b, err := OpenBook(out); err == nil && b.ID == book.ID { // a process that was killed has done it
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for k := range s.k {
		to := filepath.Join(dir, fmt.Sprintf("part%d", k))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		from := filepath.Join(s.f.Dir, "write", fmt.Sprintf("%05d", k))
		if err := cmp.Or(os.RemoveAll(filepath.Join(from, "result.json")), os.Rename(from, to)); err != nil {
			return err
		}
	}
	if err := writeSealed(filepath.Join(dir, bookFile), book, &book.CRC32C); err != nil {
		return err
	}
	text, err := json.Marshal(s.plan)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, settingsFile), text, 0o666)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(out); err == nil {
		if err := free(out, bookFile, s.opt.Overwrite); err != nil {
			return err
		}
		if err := os.Rename(out, filepath.Join(s.f.Dir, "replaced")); err != nil {
			return err
		}
	}
	return os.Rename(dir, out)
}

// reportShared is the report, as one process has it.
func (s *sharedJob) reportShared() (*Report, error) {
	var err error
	if s.all, err = ParseConstraints(s.everything(), s.d); err != nil {
		return nil, err
	}
	s.q.Balance = balances(s.parts, s.k, s.all)
	s.report(s.seconds)
	if s.failed != "" {
		s.r.Notes = append(s.r.Notes, s.failed)
	}
	s.warnUneven()
	s.warnSmall()
	s.r.Plan = s.q.PlanFor(s.model)
	s.r.Plan.AddSampled(s.d.Graph, s.parts, s.d.Splits.Train, s.model, s.k, s.opt.Seed)
	s.r.Out, s.r.WriteSeconds = s.opt.Out, time.Since(s.begun).Seconds()-s.seconds
	if !s.opt.Verify {
		return s.r, nil
	}
	if err := VerifyAgainst(s.opt.Out, s.d); err != nil {
		return nil, fmt.Errorf("the partition was written but does not verify: %w", err)
	}
	s.r.Verified = true
	return s.r, nil
}
