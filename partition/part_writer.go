package partition

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"starling/graph"
)

// partWriter writes one part, an array at a time.
type partWriter struct {
	all   *folderWriter
	k     int
	ranks *ranks
	out   *graph.FolderWriter
	meta  PartMeta

	// rows has the rows of the part's vertices alone, that of v at at(v); nil: they are read from the dataset.
	rows *graph.CSR
	at   func(v uint32) uint32
}

// neighbors are the in-neighbours of a vertex of the part.
func (w *partWriter) neighbors(v uint32) []uint32 {
	if w.rows != nil {
		return w.rows.Neighbors(w.at(v))
	}
	return w.all.d.Graph.Neighbors(v)
}

func (w *partWriter) write(ctx context.Context, meta string) error {
	m := &w.meta
	m.Format, m.Part, m.Book, m.Checksum = partFormat, w.k, w.all.book, "crc32c"
	m.Core, m.Halo = int64(len(w.all.core(w.k))), int64(len(w.all.halos[w.k]))
	for _, step := range []func() error{w.edges, w.lists, w.numbers, w.features, w.targets} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	m.Arrays = w.out.Arrays()
	return writeSealed(meta, m, &m.CRC32C)
}

// edges writes indptr and indices (and weights, and features of edges), a row at a time.
func (w *partWriter) edges() error {
	g, core := w.all.d.Graph, w.all.core(w.k)
	indptr := make([]int64, len(core)+1)
	for i, v := range core {
		indptr[i+1] = indptr[i] + int64(g.Degree(v))
	}
	w.meta.Edges = indptr[len(core)]
	if err := graph.PutArray(w.out, "indptr.npy", indptr); err != nil {
		return err
	}
	if err := w.indices(core); err != nil {
		return err
	}
	if g.Relations != nil {
		if err := w.relations(core); err != nil {
			return err
		}
	}
	if g.Weights != nil {
		if err := ofEdges(w, "weights.npy", "<f4", g.Weights, 1); err != nil {
			return err
		}
	}
	if g.EdgeDim > 0 {
		if err := ofEdges(w, "edge_features.npy", "<f4", g.EdgeFeatures, g.EdgeDim, int64(g.EdgeDim)); err != nil {
			return err
		}
	}
	if w.all.seen != nil {
		if err := ofEdges(w, timesOfEdges, "<i8", w.all.seen, 1); err != nil {
			return err
		}
	}
	return w.datasetOrder()
}

func (w *partWriter) indices(core []uint32) error {
	var row, sorted []uint32
	var at []int
	return inPieces(w.out, "indices.npy", "<u4", w.meta.Edges, func(put func([]uint32) error) error {
		for _, v := range core {
			row = w.localRow(row[:0], v)
			for _, u := range row {
				if u >= uint32(w.meta.Core) {
					w.meta.Remote++
				}
			}
			if w.all.d.Graph.Relations == nil {
				slices.Sort(row)
			} else {
				at, sorted = w.sorted(at[:0], v, row), sorted[:0]
				for _, i := range at {
					sorted = append(sorted, row[i])
				}
				row = append(row[:0], sorted...)
			}
			if err := put(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// relations writes the relation of every edge. A row's are in the dataset's order: sorting by relation, then by number,
// does not change which relation is at which place.
func (w *partWriter) relations(core []uint32) error {
	g := w.all.d.Graph
	return inPieces(w.out, "relations.npy", "<u2", w.meta.Edges, func(put func([]uint16) error) error {
		return eachRow(core, func(v uint32) error { return put(g.Relations[g.Indptr[v]:g.Indptr[v+1]]) })
	})
}

// datasetOrder writes the order that the dataset has the part's edges in.
func (w *partWriter) datasetOrder() error {
	longest := 0
	for _, v := range w.all.core(w.k) {
		longest = max(longest, w.all.d.Graph.Degree(v))
	}
	switch {
	case longest <= 1<<8:
		return orderOf[uint8](w, "|u1")
	case longest <= 1<<16:
		return orderOf[uint16](w, "<u2")
	}
	return orderOf[uint32](w, "<u4")
}

func orderOf[T uint8 | uint16 | uint32](w *partWriter, descr string) error {
	return inPieces(w.out, orderFile, descr, w.meta.Edges, func(put func([]T) error) error {
		var row []uint32
		var at []int
		var order []T
		for _, v := range w.all.core(w.k) {
			row = w.localRow(row[:0], v)
			at = w.sorted(at[:0], v, row)
			order = slices.Grow(order[:0], len(row))[:len(row)]
			for stored, i := range at {
				order[i] = T(stored)
			}
			if err := put(order); err != nil {
				return err
			}
		}
		return nil
	})
}

// sorted appends the places of the entries of v's row, in the order in which the part has them: ascending, in a typed
// graph within each relation. Repeated edges keep their order.
func (w *partWriter) sorted(at []int, v uint32, row []uint32) []int {
	g := w.all.d.Graph
	for i := range row {
		at = append(at, i)
	}
	relation := func(i int) uint16 { return 0 }
	if g.Relations != nil {
		relations := g.Relations[g.Indptr[v]:g.Indptr[v+1]]
		relation = func(i int) uint16 { return relations[i] }
	}
	slices.SortStableFunc(at, func(a, b int) int {
		return cmp.Or(cmp.Compare(relation(a), relation(b)), cmp.Compare(row[a], row[b]))
	})
	return at
}

// ofEdges writes dim numbers per edge in the order of the part's edges.
func ofEdges[T float32 | int64](w *partWriter, name, descr string, from []T, dim int, shape ...int64) error {
	return inPieces(w.out, name, descr, w.meta.Edges, func(put func([]T) error) error {
		var row []uint32
		var at []int
		var out []T
		for _, v := range w.all.core(w.k) {
			row, out = w.localRow(row[:0], v), out[:0]
			at = w.sorted(at[:0], v, row)
			first := int(w.all.d.Graph.Indptr[v])
			for _, i := range at {
				out = append(out, from[(first+i)*dim:(first+i+1)*dim]...)
			}
			if err := put(out); err != nil {
				return err
			}
		}
		return nil
	}, shape...)
}

// localRow appends the in-neighbours of v by local number, in the dataset's order.
func (w *partWriter) localRow(row []uint32, v uint32) []uint32 {
	lo, core := uint32(w.all.book.Offsets[w.k]), uint32(w.meta.Core)
	for _, u := range w.neighbors(v) {
		n := w.all.number[u]
		if int(w.all.parts[u]) == w.k {
			row = append(row, n-lo)
			continue
		}
		row = append(row, core+w.ranks.rank(n))
	}
	return row
}

// lists writes the halo and the send lists: q's halo between our offsets is what
// we send to q, in q's order.
func (w *partWriter) lists() error {
	halo, b := w.all.halos[w.k], &w.all.book
	ptr := make([]int64, b.Parts+1)
	for q := range b.Parts {
		ptr[q+1] = int64(within(halo, b.Offsets[q+1]))
	}
	var send []uint32
	sendPtr := make([]int64, b.Parts+1)
	for q, other := range w.all.halos {
		if q != w.k {
			for _, v := range other[within(other, b.Offsets[w.k]):within(other, b.Offsets[w.k+1])] {
				send = append(send, v-uint32(b.Offsets[w.k]))
			}
		}
		sendPtr[q+1] = int64(len(send))
	}
	w.meta.Sent = int64(len(send))
	for name, s := range map[string][]uint32{"halo.npy": halo, "send.npy": send} {
		if err := graph.PutArray(w.out, name, s); err != nil {
			return err
		}
	}
	for name, s := range map[string][]int64{"halo_indptr.npy": ptr, "send_indptr.npy": sendPtr} {
		if err := graph.PutArray(w.out, name, s); err != nil {
			return err
		}
	}
	return nil
}

// within is how many of an ascending list are below limit.
func within(list []uint32, limit int64) int {
	return sort.Search(len(list), func(i int) bool { return int64(list[i]) >= limit })
}

// numbers writes ids and degrees of core and halo.
func (w *partWriter) numbers() error {
	ids := slices.Clone(w.all.core(w.k))
	for _, n := range w.all.halos[w.k] {
		ids = append(ids, w.all.order[n])
	}
	if err := graph.PutArray(w.out, "ids.npy", ids); err != nil {
		return err
	}
	if w.all.gcn != nil {
		gcn := make([]float64, len(ids))
		for i, v := range ids {
			gcn[i] = w.all.gcn[v]
		}
		if err := graph.PutArray(w.out, "gcn_degrees.npy", gcn); err != nil {
			return err
		}
	}
	for i, v := range ids {
		ids[i] = uint32(w.all.d.Graph.Degree(v))
	}
	return graph.PutArray(w.out, "degrees.npy", ids)
}

func (w *partWriter) features() error {
	f, core := w.all.d.Features, w.all.core(w.k)
	if w.all.d.Typed() {
		return w.typeFeatures(core)
	}
	if f == nil {
		return nil
	}
	switch f.Kind() {
	case graph.Dense:
		return rows(w, "features.npy", "<f4", core, f.Cols, f.F32, 0)
	case graph.BFloat16:
		return rows(w, "features.npy", "<u2", core, f.Cols, f.BF16, 0)
	}
	indptr := make([]int64, len(core)+1)
	for i, v := range core {
		indptr[i+1] = indptr[i] + f.Indptr[v+1] - f.Indptr[v]
	}
	if err := graph.PutArray(w.out, "features_indptr.npy", indptr); err != nil {
		return err
	}
	n := indptr[len(core)]
	if err := inPieces(w.out, "features_indices.npy", "<u4", n, func(put func([]uint32) error) error {
		return eachRow(core, func(v uint32) error { return put(f.Indices[f.Indptr[v]:f.Indptr[v+1]]) })
	}); err != nil {
		return err
	}
	return inPieces(w.out, "features_values.npy", "<f4", n, func(put func([]float32) error) error {
		return eachRow(core, func(v uint32) error { return put(f.Values[f.Indptr[v]:f.Indptr[v+1]]) })
	})
}

// typeFeatures writes the features of each type that has some: a row for each of its core vertices, in their order.
func (w *partWriter) typeFeatures(core []uint32) error {
	d := w.all.d
	for t, f := range d.TypeFeatures {
		if f == nil {
			continue
		}
		typ := &d.Meta.Schema.Types[t]
		var mine []uint32
		for _, v := range core {
			if int64(v) >= typ.First && int64(v) < typ.End() {
				mine = append(mine, v)
			}
		}
		var err error
		if name := fmt.Sprintf("features_%d.npy", t); f.Kind() == graph.BFloat16 {
			err = rows(w, name, "<u2", mine, f.Cols, f.BF16, int(typ.First))
		} else {
			err = rows(w, name, "<f4", mine, f.Cols, f.F32, int(typ.First))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows copies dense features, whose first row is vertex first's. Mapped pages that were copied are released now and
// then, or features larger than memory would evict everything else.
func rows[T float32 | uint16](w *partWriter, name, descr string, core []uint32, cols int, from []T, first int) error {
	const letGo = 128 << 20
	copied := 0
	return inPieces(w.out, name, descr, int64(len(core)), func(put func([]T) error) error {
		return eachRow(core, func(v uint32) error {
			if copied += cols * int(unsafe.Sizeof(from[0])); copied >= letGo {
				w.all.d.AdviseFeatures(graph.Release)
				copied = 0
			}
			at := (int(v) - first) * cols
			return put(from[at : at+cols])
		})
	}, int64(cols))
}

func eachRow(core []uint32, f func(v uint32) error) error {
	for _, v := range core {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

func (w *partWriter) targets() error {
	core := w.all.core(w.k)
	if w.all.d.Times != nil {
		times := make([]int64, len(core))
		for i, v := range core {
			times[i] = w.all.d.Times[v]
		}
		if err := graph.PutArray(w.out, timesOfVertices, times); err != nil {
			return err
		}
	}
	if w.all.d.Labels != nil {
		if err := w.labels(w.all.d.Labels, core); err != nil {
			return err
		}
	}
	for name, count := range map[string]*int64{"train": &w.meta.Train, "val": &w.meta.Val, "test": &w.meta.Test} {
		set, ok := w.all.split[name]
		if !ok {
			continue
		}
		var ids []uint32
		for i, v := range core {
			if set.has(v) {
				ids = append(ids, uint32(i))
			}
		}
		*count = int64(len(ids))
		if err := graph.PutArray(w.out, name+".npy", ids); err != nil {
			return err
		}
	}
	return nil
}

// labels writes the labels of the core, of any kind.
func (w *partWriter) labels(l *graph.Labels, core []uint32) error {
	const name = "labels.npy"
	n, wide := int64(len(core)), int64(l.Classes)
	switch l.Kind() {
	case graph.MultiLabel:
		return inPieces(w.out, name, "|u1", n, func(put func([]uint8) error) error {
			return eachRow(core, func(v uint32) error { return put(l.Row(int(v))) })
		}, wide)
	case graph.Regression:
		return inPieces(w.out, name, "<f4", n, func(put func([]float32) error) error {
			return eachRow(core, func(v uint32) error { return put(l.Numbers(int(v))) })
		}, wide)
	}
	class := make([]int32, len(core))
	for i, v := range core {
		class[i] = l.Class[v]
	}
	return graph.PutArray(w.out, name, class)
}

// inPieces writes an array of n rows (of the following dimensions) through a buffer.
func inPieces[T uint8 | uint16 | uint32 | float32 | int64](out *graph.FolderWriter, name, descr string, n int64,
	fill func(put func([]T) error) error, dims ...int64) error {
	a, err := out.Array(name, descr, append([]int64{n}, dims...)...)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(a, 1<<20)
	err = fill(func(s []T) error {
		if len(s) == 0 {
			return nil
		}
		_, err := buf.Write(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0]))))
		return err
	})
	if err == nil {
		err = buf.Flush()
	}
	if err != nil {
		a.Abort()
		return err
	}
	return a.Close()
}

// ranks finds the position of a halo vertex in its ascending list in constant
// time: one bit per vertex, and the number of bits before each word.
type ranks struct {
	bits   bitset
	before []uint32
}

func newRanks(n int) *ranks { return &ranks{newBits(n), make([]uint32, (n+63)/64)} }

func (r *ranks) of(list []uint32) {
	r.bits.clear()
	for _, v := range list {
		r.bits.set(v)
	}
	sum := uint32(0)
	for i, w := range r.bits {
		r.before[i] = sum
		sum += uint32(bits.OnesCount64(w))
	}
}

func (r *ranks) rank(v uint32) uint32 {
	return r.before[v/64] + uint32(bits.OnesCount64(r.bits[v/64]&(1<<(v%64)-1)))
}
