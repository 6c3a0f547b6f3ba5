package dataset

import (
	"fmt"
	"math"

	"starling/dataset/table"
	"starling/graph"
)

// rowsOf streams a two-dimensional array as features of n vertices. open is called
// for every pass.
func rowsOf(file, field string, n int, open func() (*table.Array, error)) (*rowFeed, error) {
	a, err := open()
	if err != nil {
		return nil, err
	}
	a.Close()
	if len(a.Shape) != 2 || a.Shape[0] != int64(n) || a.Shape[1] < 1 || a.Shape[1] > math.MaxInt32 {
		return nil, badFile(file, field, fmt.Sprintf("shape %v", a.Shape), fmt.Sprintf("one row per vertex (%d)", n),
			"the files are not of one dataset: download them again")
	}
	cols := int(a.Shape[1])
	return &rowFeed{file: file, rows: n, cols: cols, each: func(put func(x []float32) error) error {
		a, err := open()
		if err != nil {
			return err
		}
		defer a.Close()
		x := make([]float32, max(1, table.PieceNumbers/cols)*cols)
		for a.Left > 0 {
			x = x[:min(int64(len(x)), a.Left)]
			if err := a.Reals(x); err != nil {
				return badFile(file, field, graph.Sentence(err.Error()), "a whole array of numbers", "download it again")
			}
			if err := put(x); err != nil {
				return err
			}
		}
		if err := a.End(); err != nil {
			return badFile(file, field, graph.Sentence(err.Error()), "a whole array of numbers", "download it again")
		}
		return nil
	}}, nil
}

// stream opens an array inside an npz without holding it.
func (z *npz) stream(name string) (*table.Array, error) {
	r, size, err := z.open(name)
	if err != nil {
		return nil, err
	}
	a, err := table.NewArray(r, size)
	if err != nil {
		r.Close()
		return nil, z.bad(name, graph.Sentence(err.Error()), "an npy array of numbers")
	}
	a.Closing = r.Close
	return a, nil
}

// pieces reads an index array a chunk at a time, prefetched and decoded on a goroutine
// of its own.
type pieces struct {
	ready, free chan []uint32
	stop        chan struct{}
	err         error
}

// newPieces starts to make count numbers: fill makes each piece, and end, if there is one, follows the last.
func newPieces(count int64, fill func(x []uint32) error, end func() error) *pieces {
	p := &pieces{ready: make(chan []uint32, 2), free: make(chan []uint32, 4), stop: make(chan struct{})}
	for range cap(p.free) {
		p.free <- make([]uint32, 0, min(count, table.PieceNumbers))
	}
	go func() {
		defer close(p.ready)
		for count > 0 {
			var x []uint32
			select {
			case x = <-p.free:
			case <-p.stop:
				return
			}
			x = x[:min(count, table.PieceNumbers)]
			if p.err = fill(x); p.err != nil {
				return
			}
			count -= int64(len(x))
			select {
			case p.ready <- x:
			case <-p.stop:
				return
			}
		}
		if end != nil {
			p.err = end()
		}
	}()
	return p
}

// prefetch starts to read count numbers of a. At the end the checksum is compared if
// last is set.
func prefetch(a *table.Array, count int64, last bool) *pieces {
	if last {
		return newPieces(count, a.Indices, a.End)
	}
	return newPieces(count, a.Indices, nil)
}

// next is the following piece; nil at the end or after an error.
func (p *pieces) next() ([]uint32, error) {
	x, ok := <-p.ready
	if !ok {
		return nil, p.err
	}
	return x, nil
}

// done ends the goroutine.
func (p *pieces) done() {
	close(p.stop)
	for range p.ready {
	}
}
