//go:build linux && amd64 && !static

package cuda_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"starling/internal/testseed"
	"starling/rng"
	"starling/tensor"
	"starling/tensor/cuda"
)

// drawnGraph is a graph in which the first vertices have very many edges, some have loops, and some have no edge.
func drawnGraph(seed uint64, n, edges int) (ptr []int64, index []uint32) {
	key := rng.New(seed)
	ptr = []int64{0}
	for v := range n {
		degree := key.IntN(uint64(v), 2*edges/n)
		switch {
		case v < 2:
			degree = edges / 4
		case v%7 == 0:
			degree = 0
		}
		for k := range degree {
			u := key.Fold(uint64(v)).IntN(uint64(k), n)
			index = append(index, uint32(min(u, key.Fold(uint64(k)).IntN(uint64(v), n)))) // low ones more often
		}
		ptr = append(ptr, int64(len(index)))
	}
	return ptr, index
}

// block is what a layer should be.
type block struct {
	ptr   []int64
	index []uint32
	scale []float32
	cols  int
}

// picked are the edges of a vertex that are drawn: as package sample's chooser does, with a map.
func picked(key rng.Key, degree, fanout int, replace bool) (list []int) {
	switch {
	case degree == 0:
	case replace && fanout >= 0:
		for i := range fanout {
			list = append(list, key.IntN(uint64(i), degree))
		}
	case fanout < 0 || degree <= fanout:
		for i := range degree {
			list = append(list, i)
		}
	default:
		for j := degree - fanout; j < degree; j++ {
			at := key.IntN(uint64(j), j+1)
			if slices.Contains(list, at) {
				at = j
			}
			list = append(list, at)
		}
	}
	return list
}

// wantBlocks draws a batch in the plainest way.
func wantBlocks(of tensor.Neighbourhoods, seeds []uint32, keys []uint64) (vertices []uint32, blocks []block) {
	vertices, blocks = slices.Clone(seeds), make([]block, len(of.Layers))
	row := map[uint32]uint32{}
	for i, v := range seeds {
		row[v] = uint32(i)
	}
	for layer := len(of.Layers) - 1; layer >= 0; layer-- {
		l, x := of.Layers[layer], block{ptr: []int64{0}, cols: len(of.Indptr) - 1}
		for i, v := range slices.Clone(vertices) {
			first := of.Indptr[v]
			degree := int(of.Indptr[v+1] - first)
			for _, k := range picked(rng.Key(keys[layer]).Fold(uint64(v)), degree, l.Fanout, of.Replace) {
				u := of.Indices[first+int64(k)]
				if _, known := row[u]; !known && !l.ByID {
					row[u] = uint32(len(vertices))
					vertices = append(vertices, u)
				}
				x.add(of.Loops, u, v, row[u], l.ByID)
			}
			if of.Loops == tensor.Looped {
				x.add(tensor.LoopsDrawn, v, v, uint32(i), l.ByID)
			}
			x.ptr = append(x.ptr, int64(len(x.index)))
			factor := 1.0
			if of.Factor != nil {
				factor = of.Factor[v]
			}
			counts := float32(1)
			if degree > 0 && (of.Replace || degree > l.Fanout) {
				counts = float32(degree) / float32(l.Fanout)
			}
			if l.Fanout >= 0 {
				x.scale = append(x.scale, float32(factor*float64(counts)))
			}
		}
		if !l.ByID {
			x.cols = len(vertices)
		}
		blocks[layer] = x
	}
	return vertices, blocks
}

// add adds an edge from u to v.
func (x *block) add(loops tensor.Loops, u, v, row uint32, byID bool) {
	switch {
	case loops != tensor.LoopsDrawn && u == v:
	case byID:
		x.index = append(x.index, u)
	default:
		x.index = append(x.index, row)
	}
}

// transposed are the rows of each column, and the places of entries, in order.
func (x *block) transposed() (ptr []int64, index, place []uint32) {
	ptr = []int64{0}
	at := make([][]uint32, x.cols)
	for i := range len(x.ptr) - 1 {
		for k := x.ptr[i]; k < x.ptr[i+1]; k++ {
			index = append(index, uint32(i))
			at[x.index[k]] = append(at[x.index[k]], uint32(k))
		}
	}
	rows := index
	index = nil
	for _, list := range at {
		for _, k := range list {
			index, place = append(index, rows[k]), append(place, k)
		}
		ptr = append(ptr, int64(len(place)))
	}
	return ptr, index, place
}

func down[T any](d tensor.Device, m tensor.Matrix) []T {
	list := make([]T, m.Rows)
	d.Download(list, m)
	return list
}

// sameBlock compares a block with what it should be.
func sameBlock(t *testing.T, name string, d tensor.Device, got tensor.DrawnBlock, want *block) {
	t.Helper()
	in := tensor.PartsOf(got.In)
	if ptr := down[int64](d, in.Ptr); !slices.Equal(ptr, want.ptr) {
		t.Errorf("%s: rows begin at %v, want %v", name, ptr, want.ptr)
	}
	if index := down[uint32](d, in.Index.Matrix()); !slices.Equal(index, want.index) {
		t.Errorf("%s: edges %v, want %v", name, index, want.index)
	}
	if got.In.Cols != want.cols || got.In.Entries() != int64(len(want.index)) {
		t.Errorf("%s: %d columns, %d entries, want %d, %d", name, got.In.Cols, got.In.Entries(), want.cols, len(want.index))
	}
	if got.Scale.IsZero() != (want.scale == nil) || want.scale != nil && !slices.Equal(down[float32](d, got.Scale), want.scale) {
		t.Errorf("%s: the factors differ", name)
	}
	if got.Out == nil {
		return
	}
	out := tensor.PartsOf(got.Out)
	ptr, index, place := want.transposed()
	if !slices.Equal(down[int64](d, out.Ptr), ptr) || !slices.Equal(down[uint32](d, out.Index.Matrix()), index) ||
		!slices.Equal(down[uint32](d, out.Perm.Matrix()), place) {
		t.Errorf("%s: the transpose differs", name)
	}
}

// sameSums compares sums over drawn rows with those over rows that the host knows: both cut long rows alike.
func sameSums(t *testing.T, name string, d tensor.Device, drawn *tensor.Sparse, ptr []int64, index []uint32) {
	t.Helper()
	src := d.New(tensor.F32, drawn.Cols, 8)
	numbers := make([]float32, drawn.Cols*8)
	for i := range numbers {
		numbers[i] = rng.New(9).Float32(uint64(i))
	}
	d.Upload(src, numbers)
	a, b := d.New(tensor.F32, drawn.Rows, 8), d.New(tensor.F32, drawn.Rows, 8)
	d.Aggregate(a, drawn, src, tensor.Aggregate{})
	d.Aggregate(b, tensor.NewSparse(d, drawn.Rows, drawn.Cols, ptr, index, nil), src, tensor.Aggregate{})
	x, y := make([]float32, drawn.Rows*8), make([]float32, drawn.Rows*8)
	d.Download(x, a)
	d.Download(y, b)
	if !slices.Equal(x, y) {
		t.Errorf("%s: sums differ", name)
	}
	for _, m := range []tensor.Matrix{src, a, b} {
		d.Free(m)
	}
}

// TestDraw: batches drawn on the GPU are those that the plainest way draws, and sums over them those over the same rows
// of the host, in buffers that are used again, whichever stream is the later one.
func TestDraw(t *testing.T) {
	needDriver(t)
	seed := testseed.New(t)
	const n, edges = 700, 9000
	ptr, index := drawnGraph(seed, n, edges)
	factor := make([]float64, n)
	for v := range factor {
		factor[v] = 1 / (1 + rng.New(seed).Float64(uint64(v)))
	}
	layers := func(byID bool, fanouts ...int) (list []tensor.DrawnLayer) {
		for i, f := range fanouts {
			list = append(list, tensor.DrawnLayer{Fanout: f, ByID: byID && i == 0})
		}
		return list
	}
	for i, of := range []tensor.Neighbourhoods{
		{Layers: layers(true, 5, 10, 15), Factor: factor, Own: true},
		{Layers: layers(false, 3, 90), Factor: factor, Own: true, Listed: true},
		{Layers: layers(false, -1, 4), Own: true, Loops: tensor.LoopFree, Factor: factor},
		{Layers: layers(true, -1, -1), Loops: tensor.LoopFree},
		{Layers: layers(false, 4, 70), Loops: tensor.Looped},
		{Layers: layers(false, 6, 3), Replace: true, Loops: tensor.Looped},
		{Layers: layers(false, 1)},
	} {
		of.Indptr, of.Indices = ptr, index
		for _, late := range []string{"", "1"} {
			if late != "" && emulated == "" {
				continue
			}
			if late != "" {
				os.Setenv("EMULATOR_LATE", late)
			}
			drawAll(t, fmt.Sprintf("case %d%s", i, late), of, seed)
			os.Unsetenv("EMULATOR_LATE")
		}
	}
}

// drawAll draws batches of many and few seeds, two at a time.
func drawAll(t *testing.T, name string, of tensor.Neighbourhoods, seed uint64) {
	t.Helper()
	d, err := cuda.Open(cuda.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !d.DrawingFits(of, 64, 2) {
		t.Errorf("%s: a drawing of %d edges does not fit", name, len(of.Indices))
	}
	drawing := d.NewDrawing(of)
	batches := []tensor.DrawnBatch{drawing.NewBatch(), drawing.NewBatch()}
	for k, size := range []int{64, 1, 17, 64} {
		b := batches[k%2]
		key := rng.New(seed).Fold(uint64(k))
		seeds := key.Perm(len(of.Indptr) - 1)[:size]
		keys := []uint64{uint64(key.Fold(1)), uint64(key.Fold(2)), uint64(key.Fold(3))}
		if err := b.Draw(seeds, keys); err != nil {
			t.Fatal(err)
		}
		vertices, blocks := wantBlocks(of, seeds, keys)
		if got := down[uint32](d, b.Vertices().Matrix()); !slices.Equal(got, vertices) {
			t.Errorf("%s, batch %d: vertices %v, want %v", name, k, got, vertices)
		}
		if own := b.Own(); own.IsZero() == of.Own || of.Own && !slices.Equal(down[float32](d, own), ownOf(of, vertices)) {
			t.Errorf("%s, batch %d: the vertices' factors differ", name, k)
		}
		for i := range blocks {
			x, label := b.Block(i), fmt.Sprintf("%s, batch %d, block %d", name, k, i)
			sameBlock(t, label, d, x, &blocks[i])
			sameSums(t, label, d, x.In, blocks[i].ptr, blocks[i].index)
			if x.Out != nil {
				p, list, _ := blocks[i].transposed()
				sameSums(t, label+" transposed", d, x.Out, p, list)
			}
		}
		b.Done()
	}
	if err := d.Err(); err != nil {
		t.Error(err)
	}
}

func ownOf(of tensor.Neighbourhoods, vertices []uint32) (own []float32) {
	for _, v := range vertices {
		f := float32(1)
		if of.Factor != nil {
			f = float32(of.Factor[v])
		}
		own = append(own, f)
	}
	return own
}
