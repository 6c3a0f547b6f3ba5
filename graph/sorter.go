package graph

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"starling/event"
)

// Sorter makes the graph of a dataset from more edges than memory can hold. It
// gives the same bytes as FromEdges, and holds neither the edges nor the
// graph:
//
//	s := w.Sorter(n, expected, weighted, opt)
//	defer s.Close()
//	s.Add(0, src, dst, nil); s.Add(1, …) // chunks, numbered from 0, on any goroutines
//	err := s.Finish()                    // writes indptr, indices and weights
//
// It is an external bucket sort. Add distributes edges to buckets, each a range of targets. A
// full bucket is spilled to a nameless file beside the dataset. Finish splits buckets of too
// many edges, joins neighbouring ones of too few, sorts such units on all cores, in
// cache, and writes them in order. A vertex costs no memory: its offset in
// indptr.npy is streamed.
type Sorter struct {
	w        *Writer
	n        int
	weighted bool
	numbered bool // weights are positions in the list of edges, see edgerows.go
	typed    bool // weights are relations, see relations.go
	opt      BuildOptions
	shift    int // a bucket's targets are those equal above this bit
	full     int // edges a bucket buffers
	buckets  []bucket
	file     *os.File
	end      atomic.Int64 // bytes in the file
	listed   int64

	mu   sync.Mutex
	turn *sync.Cond
	next int64 // the chunk whose turn it is
	err  error
}

// bucket holds its newest edges, and where in the file the earlier ones are. An edge is
// its target, in the upper half, and its source.
type bucket struct {
	first, rows int // its targets
	ends        []uint64
	weights     []float32
	written     []extent
	edges       int64
}

type extent struct {
	at    int64
	edges int
}

const (
	unitEdges  = 1 << 16  // sorted at a time: twice 512 KiB and their rows, which fit a core's cache
	unitRows   = 1 << 18  // and not of more vertices: their offsets take 2 MiB
	bufferSize = 32 << 20 // of all buckets together
	maxBuckets = 4096
	pageEdges  = 512 // buckets are written by whole pages
)

// Sorter starts the graph of n vertices. expected is about how many edges there will
// be; only speed and memory depend on it.
func (w *Writer) Sorter(n int, expected int64, weighted bool, opt BuildOptions) *Sorter {
	if opt.Symmetrize {
		expected *= 2
	}
	want := min(max(expected/unitEdges, int64(n)/unitRows, 1), maxBuckets/2)
	s := &Sorter{w: w, n: n, weighted: weighted, opt: opt, shift: max(0, bits.Len64(uint64(n)/uint64(want))-1)}
	if want == 1 {
		s.shift = bits.Len64(uint64(n))
	}
	s.buckets = bucketsOf(0, n, s.shift)
	s.full = min(max(bufferSize/8/len(s.buckets)&^(pageEdges-1), 2*pageEdges), unitEdges/2)
	s.turn = sync.NewCond(&s.mu)
	return s
}

// bucketsOf divides the rows from first on into buckets.
func bucketsOf(first, rows, shift int) []bucket {
	list := make([]bucket, max(rows-1, 0)>>shift+1)
	for k := range list {
		at := k << shift
		list[k].first, list[k].rows = first+at, min(1<<shift, rows-at)
	}
	return list
}

// grouped is a chunk grouped by bucket.
type grouped struct {
	ends    []uint64
	weights []float32
	upTo    []int // where each bucket's edges end, behind a zero
}

var groupedPool = sync.Pool{New: func() any { return new(grouped) }}

// Add takes chunk number seq. Any goroutine may add chunks, but each waits
// until those before it were taken. The caller may reuse the slices afterwards.
func (s *Sorter) Add(seq int64, src, dst []uint32, weights []float32) error {
	d := groupedPool.Get().(*grouped)
	defer groupedPool.Put(d)
	bad := s.group(d, src, dst, weights)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next != seq && s.err == nil {
		s.turn.Wait()
	}
	if s.err == nil && bad >= 0 {
		s.err = &InputError{Field: fmt.Sprintf("edge %d", s.listed+int64(bad)),
			Found: fmt.Sprintf("%d → %d", src[bad], dst[bad]),
			Want:  fmt.Sprintf("vertices from 0 to %d", s.n-1),
			Fix:   "an edge names an absent vertex: correct the source or the number of vertices"}
	}
	if s.err == nil && s.numbered {
		s.err = s.number(d, len(src))
	}
	if s.err == nil {
		s.err = s.take(d)
	}
	s.listed += int64(len(src))
	s.next++
	s.turn.Broadcast()
	return s.err
}

// Fail makes every Add and Finish return err; for a producer that failed.
func (s *Sorter) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.turn.Broadcast()
}

// Listed is how many edges were added.
func (s *Sorter) Listed() int64 { return s.listed }

// group groups the edges by bucket, in order, with reverses if the graph is symmetrized. It
// returns the first edge with an absent end, or -1.
func (s *Sorter) group(d *grouped, src, dst []uint32, weights []float32) (bad int) {
	d.upTo = grown(d.upTo, len(s.buckets)+1)
	clear(d.upTo)
	next := d.upTo[1:]
	if bad := s.count(next, src, dst); bad >= 0 {
		return bad
	}
	total := 0
	for i, c := range next {
		next[i] = total // where the bucket starts; placing moves it to where it ends
		total += c
	}
	d.ends = grown(d.ends, total)
	if !s.opt.Symmetrize && !s.weighted {
		place(d.ends, next, src, dst, s.shift, !s.opt.DropSelfLoops)
		return -1
	}
	if s.weighted {
		d.weights = grown(d.weights, total)
	}
	s.placeAll(d, next, src, dst, weights)
	return -1
}

// count adds to next how many edges each bucket gets, up to one with an absent end.
func (s *Sorter) count(next []int, src, dst []uint32) (bad int) {
	n, shift, loops, both := uint64(s.n), s.shift&31, !s.opt.DropSelfLoops, s.opt.Symmetrize
	dst = dst[:len(src)]
	for i, u := range src {
		v := dst[i]
		if uint64(max(u, v)) >= n {
			return i
		}
		if u != v || loops {
			next[v>>shift]++
		}
		if both && u != v {
			next[u>>shift]++
		}
	}
	return -1
}

// place is placeAll without weights and reverses. It needs fewer registers and takes
// three quarters of the time.
func place(ends []uint64, next []int, src, dst []uint32, shift int, loops bool) {
	shift &= 31
	dst = dst[:len(src)]
	for i, u := range src {
		v := dst[i]
		if u == v && !loops {
			continue
		}
		k := v >> shift
		at := next[k]
		next[k] = at + 1
		ends[at] = uint64(v)<<32 | uint64(u)
	}
}

// placeAll puts edges at the next position of their bucket, and advances that.
func (s *Sorter) placeAll(d *grouped, next []int, src, dst []uint32, weights []float32) {
	ends, shift, loops := d.ends, s.shift&31, !s.opt.DropSelfLoops
	put := func(u, v uint32, i int) {
		at := next[v>>shift]
		next[v>>shift] = at + 1
		ends[at] = uint64(v)<<32 | uint64(u)
		if s.numbered {
			d.weights[at] = math.Float32frombits(uint32(i))
		} else if s.weighted {
			d.weights[at] = weights[i]
		}
	}
	for i, u := range src {
		v := dst[i]
		if u != v || loops {
			put(u, v, i)
		}
		if u != v && s.opt.Symmetrize {
			put(v, u, i)
		}
	}
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// take appends a grouped chunk to the buckets. REQUIRES: mu held.
func (s *Sorter) take(d *grouped) error {
	for k := range s.buckets {
		b := &s.buckets[k]
		for lo, hi := d.upTo[k], d.upTo[k+1]; lo < hi; {
			if b.ends == nil {
				b.ends = make([]uint64, 0, s.full)
			}
			m := min(hi, lo+s.full-len(b.ends))
			b.ends = append(b.ends, d.ends[lo:m]...)
			if s.weighted {
				b.weights = append(b.weights, d.weights[lo:m]...)
			}
			b.edges += int64(m - lo)
			lo = m
			if len(b.ends) == s.full {
				if err := s.spill(b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// spill writes a bucket's edges to the file and empties it. REQUIRES: mu held, or
// the file exists and no other goroutine uses the bucket.
func (s *Sorter) spill(b *bucket) (err error) {
	if s.file == nil {
		if s.file, err = s.w.Scratch(); err != nil {
			return err
		}
	}
	size := int64(8*len(b.ends) + 4*len(b.weights))
	at := s.end.Add(size) - size
	b.written = append(b.written, extent{at, len(b.ends)})
	for _, part := range [][]byte{asBytes(b.ends), asBytes(b.weights)} {
		if _, err := s.file.WriteAt(part, at); err != nil {
			return err
		}
		at += int64(len(part))
	}
	b.ends, b.weights = b.ends[:0], b.weights[:0]
	return nil
}

// Scratch is a file beside the dataset that has no name: it is gone when closed,
// however the process ends.
func (w *Writer) Scratch() (*os.File, error) {
	f, err := os.CreateTemp(w.tmp, "scratch-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// Close frees the buckets. It does nothing after Finish.
func (s *Sorter) Close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	s.buckets = nil
}

// Finish sorts and writes the graph.
func (s *Sorter) Finish() error {
	defer s.Close()
	if s.err != nil {
		return s.err
	}
	var total int64
	for i := range s.buckets {
		total += s.buckets[i].edges
	}
	if total > MaxEdges || int64(s.n) > MaxNodes || s.n < 0 {
		return &InputError{Field: "edges", Found: fmt.Sprintf("%s and %s to store", event.Tally(s.n, "vertex"),
			event.Tally(total, "edge")),
			Want: "fewer than 2^32 of each", Fix: "split the graph"}
	}
	if err := s.splitBuckets(); err != nil {
		return err
	}
	weights := ""
	switch {
	case s.numbered:
		weights = numbersFile
	case s.typed:
		weights = relationsFile
	case s.weighted:
		weights = "weights.npy"
	}
	out, err := s.w.startRows(int64(s.n), weights)
	if err != nil {
		return err
	}
	err = s.sortUnits(s.units(total), out)
	var wg sync.WaitGroup
	wg.Go(s.Close) // frees pages while out.close waits for the disk
	err = errors.Join(err, out.close())
	wg.Wait()
	return err
}

// unit is buckets lo to hi, sorted together.
type unit struct{ lo, hi int }

// units have about equal numbers of edges. There are several even if one could hold all edges:
// every core then has work, and sorting overlaps with writing.
func (s *Sorter) units(total int64) (list []unit) {
	most := min(unitEdges, total/8)
	var edges int64
	var rows int
	for k := range s.buckets {
		b := &s.buckets[k]
		edges, rows = edges+b.edges, rows+b.rows
		if len(list) == 0 || edges > most || rows > unitRows {
			list = append(list, unit{k, k})
			edges, rows = b.edges, b.rows
		}
		list[len(list)-1].hi = k + 1
	}
	return list
}

// sortUnits sorts units on all cores and writes them in order.
func (s *Sorter) sortUnits(units []unit, out *rowWriter) error {
	var next int
	s.next = 0
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(units)) {
		wg.Go(func() {
			var x unitSort
			for {
				s.mu.Lock()
				u := next
				next++
				failed := s.err != nil
				s.mu.Unlock()
				if u >= len(units) || failed {
					return
				}
				err := x.sort(s, units[u])
				s.mu.Lock()
				for s.next != int64(u) && s.err == nil {
					s.turn.Wait()
				}
				if s.err == nil && err == nil {
					err = out.rows(&x)
				}
				if s.err == nil {
					s.err = err
				}
				s.next++
				s.turn.Broadcast()
				s.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return s.err
}
