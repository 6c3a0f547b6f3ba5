package bench

import (
	"errors"
	"sync"

	"starling/coflow"
	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/store"
)

// Rows of a store, of a size in bytes: from rank 1, and from this rank in place; and the same
// copied by a plain loop.
var storeOps = []wireOp{
	{"pull", rowBytes, (*wireRank).pull},
	{"gather", rowBytes, (*wireRank).gather},
	{"copy", rowBytes, (*wireRank).copyRows},
}

const (
	pulledRows = 4096      // of a step, about
	tableBytes = 256 << 20 // more than processors cache
	pullers    = 2         // batches in flight
)

func rowBytes(size, _ int) int { return pulledRows * size }

// rowTable is a store of rows of one size.
type rowTable struct {
	size    int
	rows    int // of each rank
	store   *store.Store
	numbers [][]uint32 // of some steps, below rows
	to      [pullers]graph.Features
	pullers [pullers]*store.Puller
}

// tableOf is the store of rows of a size, which all ranks open together.
func (b *wireRank) tableOf(size int) (*rowTable, error) {
	if b.table != nil && b.table.size == size {
		return b.table, nil
	}
	if err := b.closeTable(); err != nil {
		return nil, err
	}
	t := &rowTable{size: size, rows: tableBytes / size}
	n := b.end.Size()
	book := &partition.Book{Parts: n, Offsets: []int64{0}, Nodes: int64(n * t.rows)}
	for k := range n {
		book.Offsets = append(book.Offsets, int64((k+1)*t.rows))
	}
	part := &partition.Part{Book: book, Meta: partition.PartMeta{Part: b.end.Rank(), Core: int64(t.rows)},
		In: &graph.CSR{Indptr: make([]int64, t.rows+1)}, IDs: make([]uint32, t.rows), DatasetOrder: &graph.RowOrder{},
		Features: &graph.Features{Rows: t.rows, Cols: size / 4, F32: filled(t.rows * size / 4)}}
	var err error
	if t.store, err = store.Open(b.ctx, part, b.end, store.Options{}); err != nil {
		return nil, err
	}
	for i := range t.pullers {
		t.pullers[i] = t.store.Puller()
	}
	key := rng.New(1)
	for step := range 16 {
		list := make([]uint32, pulledRows)
		for i := range list {
			list[i] = uint32(key.Fold(uint64(step)).IntN(uint64(i), t.rows))
		}
		t.numbers = append(t.numbers, list)
	}
	b.table = t
	return t, b.comm.Barrier(b.ctx, coflow.ID{})
}

// filled are ones, written by a loop: a single copy of this size cannot be interrupted, and on one core no heartbeat is
// sent until it ends.
func filled(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// closeTable ends the service; no rank asks any more.
func (b *wireRank) closeTable() error {
	if b.table == nil {
		return nil
	}
	t := b.table
	b.table = nil
	return errors.Join(b.comm.Barrier(b.ctx, coflow.ID{}), t.store.Close())
}

func (b *wireRank) pull(size, count int) error   { return b.pullFrom(1, size, count) }
func (b *wireRank) gather(size, count int) error { return b.pullFrom(0, size, count) }

// pullFrom pulls steps' rows of a rank, some at a time, on rank 0.
func (b *wireRank) pullFrom(owner, size, count int) error {
	t, err := b.tableOf(size)
	if err != nil || b.end.Rank() > 0 {
		return err
	}
	errs := make([]error, pullers)
	var wg sync.WaitGroup
	for i, p := range t.pullers {
		wg.Go(func() {
			list := make([]uint32, pulledRows)
			for step := i; step < count && errs[i] == nil; step += pullers {
				for j, v := range t.numbers[step%len(t.numbers)] {
					list[j] = uint32(owner*t.rows) + v
				}
				errs[i] = p.Features(b.ctx, coflow.ID{Type: coflow.Rows, Batch: uint32(step)}, &t.to[i], list)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// copyRows is what a plain loop reaches on as many goroutines.
func (b *wireRank) copyRows(size, count int) error {
	t, err := b.tableOf(size)
	if err != nil || b.end.Rank() > 0 {
		return err
	}
	from, width := t.store.Part.Features.F32, size/4
	var wg sync.WaitGroup
	for i := range pullers {
		wg.Go(func() {
			to := make([]float32, pulledRows*width)
			for step := i; step < count; step += pullers {
				for j, v := range t.numbers[step%len(t.numbers)] {
					copy(to[j*width:(j+1)*width], from[int(v)*width:])
				}
			}
		})
	}
	wg.Wait()
	return nil
}
