package dataset

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"starling/dataset/table"
	"starling/graph"
)

// edgeFeed is a source of edges that are sorted while they
// are read.
type edgeFeed struct {
	nodes    int
	expected int64
	weighted bool
	features *rowFeed                    // of edges, in the order they are listed; nil: none
	fill     func(s *graph.Sorter) error // adds all edges
	close    func()                      // may be nil
}

// write sorts the edges into the dataset and tells how many were listed.
func (e *edgeFeed) write(w *graph.Writer, opt graph.BuildOptions) (listed int64, err error) {
	if e.close != nil {
		defer e.close()
	}
	s := w.Sorter(e.nodes, e.expected, e.weighted, opt)
	defer s.Close()
	if e.features != nil {
		s.Number()
	}
	if err := e.fill(s); err != nil {
		return 0, err
	}
	listed = s.Listed()
	if err := s.Finish(); err != nil || e.features == nil {
		return listed, err
	}
	return listed, inPath(e.features.file, w.EdgeFeatures(listed, e.features.cols, e.features.each))
}

// newScratch is a nameless file for data that is spilled.
func (o ImportOptions) newScratch() (*os.File, error) {
	if o.scratch != nil {
		return o.scratch()
	}
	f, err := os.CreateTemp("", "starling-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// edges is a parsed list that was spilled to a file, block by block.
type edges struct {
	blocks   []*block
	total    int64
	comments int64 // lines between edges
	headers  int64 // lines that repeat the first
	weighted bool
	file     *os.File
	end      atomic.Int64
	failed   atomic.Bool         // one of the blocks has an error
	to       func(uint32) uint32 // renumbers; nil: ids are vertices
}

// put writes the edges of a block to the end of the file.
func (e *edges) put(b *block) {
	if b.err != nil {
		return
	}
	b.edges = len(b.src)
	size := int64(4 * (len(b.src) + len(b.dst) + len(b.weights)))
	b.at = e.end.Add(size) - size
	at := b.at
	for _, part := range [][]byte{table.BytesOf(b.src), table.BytesOf(b.dst), table.BytesOf(b.weights)} {
		if _, err := e.file.WriteAt(part, at); err != nil {
			b.err = &lineError{err: err}
			return
		}
		at += int64(len(part))
	}
}

// Close closes the file.
func (e *edges) Close() {
	if e != nil && e.file != nil {
		e.file.Close()
		e.file = nil
	}
}

// fill adds the blocks to the sorter, on all cores.
func (e *edges) fill(s *graph.Sorter) error {
	return inOrder(s, int64(len(e.blocks)), func(k int64, x *chunk) error {
		b := e.blocks[k]
		x.resize(b.edges, e.weighted)
		at := b.at
		for _, part := range [][]byte{table.BytesOf(x.src), table.BytesOf(x.dst), table.BytesOf(x.weights)} {
			if _, err := e.file.ReadAt(part, at); err != nil {
				return err
			}
			at += int64(len(part))
		}
		if e.to != nil {
			for i := range x.src {
				x.src[i], x.dst[i] = e.to(x.src[i]), e.to(x.dst[i])
			}
		}
		return nil
	})
}

// chunk is edges for the sorter, in memory that is reused.
type chunk struct {
	src, dst []uint32
	weights  []float32
}

func (x *chunk) resize(n int, weighted bool) {
	if cap(x.src) < n {
		x.src, x.dst = make([]uint32, n+n/8), make([]uint32, n+n/8)
	}
	if weighted && cap(x.weights) < n {
		x.weights = make([]float32, n+n/8)
	}
	x.src, x.dst = x.src[:n], x.dst[:n]
	if weighted {
		x.weights = x.weights[:n]
	}
}

// inOrder makes chunks 0 to n-1 on all cores and adds them. It returns the
// error of the first chunk that has one.
func inOrder(s *graph.Sorter, n int64, fill func(k int64, x *chunk) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for i := range errs {
		wg.Go(func() {
			var x chunk
			for errs[i] == nil {
				k := next.Add(1) - 1
				if k >= n {
					return
				}
				if errs[i] = fill(k, &x); errs[i] != nil {
					s.Fail(errs[i])
				} else {
					errs[i] = s.Add(k, x.src, x.dst, x.weights)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
