package partition

import (
	"fmt"
	"math"
	"os"
	"slices"
	"unsafe"

	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

// The rows of each part: stages scatter and gather of a partition by several processes (shared.go).

// scatterResult says where the rows of each part are in a window's files.
type scatterResult struct {
	Edges    []int64 // before each part's, and in all
	Boundary []int64 // likewise of the vertices that other parts need
}

// scatter divides the rows of each window by part.
func (s *sharedJob) scatter() error {
	return s.f.Do(s.ctx, "scatter", len(s.windows), s.scatterWindow)
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
	needed := newNeeds(s.k, g.Nodes())
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
				needed.add(q, u)
			}
		}
	}
	var list []uint32
	list, r.Boundary = needed.byPart()
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

// bytesOf views numbers as the bytes of a little-endian file.
func bytesOf[T uint32 | int64 | float32 | float64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}
