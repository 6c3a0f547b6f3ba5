package cuda

import (
	"cmp"
	"fmt"
	"slices"

	"starling/tensor"
	"starling/tensor/cuda/memory"
)

// farRows is a matrix in memory of the host that the GPU reads by itself, row by row over the bus, for features that
// do not fit the GPU. The rows that the first batches read most often are kept on the GPU as well: neighbours are
// drawn by degree, so that few rows are most of what is read.
type farRows struct {
	counts []uint32 // how often each row was gathered, until the cache is made
	seen   int      // gathers so far
	cache  Matrix
	place  Index // of each row in the cache, or ^0
}

// watched is how many gathers decide what is kept.
const watched = 32

// HostRows is a matrix of a host slice, copied to memory of the host that the GPU can read. Gathers read it through
// a cache on the GPU (keepHot); other operations read it over the bus.
func (d *Device) HostRows(t DType, rows, cols int, host any) Matrix {
	defer d.enter()()
	m := d.mem.Pinned(t, rows, cols)
	if b := memory.BlockOf(m); b != nil {
		b.Known = &farRows{counts: make([]uint32, rows)}
		tensor.CopyIn(m, host)
	}
	return m
}

// farOf is what is known of a matrix of HostRows, if it is a whole one.
func farOf(m Matrix) *farRows {
	b := memory.BlockOf(m)
	if b == nil || tensor.Offset(m) != 0 {
		return nil
	}
	f, ok := b.Known.(*farRows)
	if !ok || len(f.counts) != m.Rows {
		return nil
	}
	return f
}

// farArgs is FarArgs of kernels/elements.cu.
type farArgs struct {
	to    gatherArgs
	cache mat
	place uintptr
}

// gatherFar gathers rows of a matrix on the host.
func (d *Device) gatherFar(dst, src Matrix, rows Index, f *farRows) {
	if f.cache.IsZero() {
		f.watch(memory.HostCopy[uint32](rows.Matrix()))
		if f.seen == watched {
			d.keepHot(src, f)
		}
	}
	if f.cache.IsZero() {
		d.rowsKernel("gather", dst, src, rows)
		return
	}
	a := farArgs{gatherArgs{of(dst), of(src), atIndex(rows), int64(rows.Len()), int64(src.Cols)}, of(f.cache), atIndex(f.place)}
	v := vectorOf(4, dst, src, f.cache)
	launch(d, "elements", fmt.Sprintf("gather_far_%d", v), d.elements(rows.Len()*src.Cols/v), oneBlock, &a)
}

func (f *farRows) watch(list []uint32) {
	for _, i := range list {
		f.counts[i]++
	}
	f.seen++
}

// keepHot copies the rows that were read more than once to the GPU, the most often read first, up to a quarter
// of what is free there.
func (d *Device) keepHot(src Matrix, f *farRows) {
	var hot []uint32
	for i, n := range f.counts {
		if n > 1 {
			hot = append(hot, uint32(i))
		}
	}
	slices.SortStableFunc(hot, func(a, b uint32) int { return cmp.Compare(f.counts[b], f.counts[a]) })
	d.run.Bind()
	hot = hot[:min(len(hot), int(d.run.GPU.FreeMemory()/4)/(src.Cols*src.Type().Size()))]
	if len(hot) == 0 {
		return
	}
	place := make([]uint32, src.Rows)
	for i := range place {
		place[i] = ^uint32(0)
	}
	for k, i := range hot {
		place[i] = uint32(k)
	}
	cache := d.scratch(src.Type(), len(hot), src.Cols)
	d.rowsKernel("gather", cache, src, tensor.Indices(d, hot))
	f.place, f.cache = tensor.Indices(d, place), cache
	d.mem.Keep(f.place.Matrix())
}
