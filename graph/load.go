package graph

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"starling/event"
)

// mapName maps one file and checks its size against meta.json.
func (d *Dataset) mapName(name string) ([]byte, error) {
	if m := d.Meta.Arrays[name]; m.Pieces != nil {
		return d.mapPieces(name, m)
	}
	path := filepath.Join(d.Dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &InputError{File: path, Found: "no such file", Want: "the array that meta.json announces",
			Fix: "copy or make the dataset again"}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return nil, &InputError{File: path, Found: info.Mode().Type().String(), Want: "a regular file",
			Fix: "copy or make the dataset again"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if m, ok := d.Meta.Arrays[name]; ok && m.Bytes != info.Size() {
		return nil, &InputError{File: path, Field: "size", Found: event.Tally(info.Size(), "byte"),
			Want: fmt.Sprintf("%d", m.Bytes),
			Fix:  "the file was cut off or changed: copy or make the dataset again"}
	}
	b, err := mapFile(f, info.Size())
	if err != nil {
		return nil, err
	}
	track(b, path, info)
	d.maps[name] = b
	return b, nil
}

// array maps an npy file of the given shape; a -1 in shape fits any length.
func array[T element](d *Dataset, name string, shape ...int64) ([]T, error) {
	b, err := d.mapName(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.Dir, name)
	h, err := ReadNPYHeader(bytes.NewReader(b))
	if err != nil {
		return nil, inFile(path, err)
	}
	bad := func(field, found, want, fix string) error {
		return &InputError{File: path, Field: field, Found: found, Want: want, Fix: fix}
	}
	if want := descrOf[T](); h.Descr != want {
		return nil, bad("dtype", h.Descr, want, "convert the array with numpy's astype and save it again")
	}
	if h.Fortran && len(h.Shape) > 1 {
		return nil, bad("fortran_order", "True", "False", "save numpy.ascontiguousarray(a)")
	}
	if !fits(h.Shape, shape) {
		return nil, bad("shape", fmt.Sprint(h.Shape), fmt.Sprint(shape)+" (-1: any)",
			"meta.json and the array disagree: make the dataset again")
	}
	if m, ok := d.Meta.Arrays[name]; ok && (m.DType != h.Descr || !slices.Equal(m.Shape, h.Shape)) {
		return nil, bad("header", fmt.Sprint(h.Descr, h.Shape), fmt.Sprint(m.DType, m.Shape)+" as in meta.json",
			"make the dataset again")
	}
	if got, want := int64(len(b))-h.Offset, h.DataBytes(); got != want {
		return nil, bad("array", event.Tally(got, "byte"), fmt.Sprintf("%d for shape %v", want, h.Shape),
			"the file was cut off: copy or make it again")
	}
	return fromBytes[T](b[h.Offset:]), nil
}

func fits(shape, want []int64) bool {
	return slices.EqualFunc(shape, want, func(a, b int64) bool { return a == b || b == -1 })
}

func (d *Dataset) has(name string) bool {
	if _, ok := d.Meta.Arrays[name]; ok {
		return true
	}
	_, err := os.Stat(filepath.Join(d.Dir, name))
	return err == nil && len(d.Meta.Arrays) == 0 // a folder written by hand lists nothing
}

func (d *Dataset) loadGraph() (err error) {
	g := &CSR{}
	d.Graph = g
	if g.Indptr, err = array[int64](d, "indptr.npy", d.Meta.Nodes+1); err != nil {
		return err
	}
	if g.Indices, err = array[uint32](d, "indices.npy", d.Meta.Edges); err != nil {
		return err
	}
	if d.has("weights.npy") {
		if g.Weights, err = array[float32](d, "weights.npy", d.Meta.Edges); err != nil {
			return err
		}
	}
	if d.Meta.EdgeDim > 0 || d.hasFile("edge_features.npy") {
		if err := d.loadEdgeFeatures(); err != nil {
			return err
		}
	}
	return d.loadEdgeTimes()
}

// hasFile reports whether there is such a file, listed or not: one may be added later.
func (d *Dataset) hasFile(name string) bool {
	_, err := os.Stat(filepath.Join(d.Dir, name))
	return err == nil || d.has(name)
}

func (d *Dataset) loadEdgeFeatures() (err error) {
	g, dim := d.Graph, int64(-1)
	if d.Meta.EdgeDim > 0 {
		dim = int64(d.Meta.EdgeDim)
	}
	if g.EdgeFeatures, err = array[float32](d, "edge_features.npy", d.Meta.Edges, dim); err != nil {
		return err
	}
	if d.Meta.Edges > 0 { // else it is what meta.json says
		d.Meta.EdgeDim = len(g.EdgeFeatures) / int(d.Meta.Edges)
	}
	g.EdgeDim = d.Meta.EdgeDim
	if _, listed := d.Meta.Arrays["edge_features.npy"]; !listed { // and so without a checksum
		err = inFile(filepath.Join(d.Dir, "edge_features.npy"),
			checkFinite("edge_features", g.EdgeFeatures, max(g.EdgeDim, 1)))
	}
	return err
}

func (d *Dataset) loadFeatures() (err error) {
	m := d.Meta.Features
	if m == nil {
		return nil
	}
	f := &Features{Rows: int(d.Meta.Nodes), Cols: m.Dim}
	d.Features = f
	switch m.Kind {
	case Dense:
		f.F32, err = array[float32](d, "features.npy", d.Meta.Nodes, int64(m.Dim))
	case BFloat16:
		f.BF16, err = array[uint16](d, "features.npy", d.Meta.Nodes, int64(m.Dim))
	case Sparse:
		if f.Indptr, err = array[int64](d, "features_indptr.npy", d.Meta.Nodes+1); err != nil {
			return err
		}
		if f.Indices, err = array[uint32](d, "features_indices.npy", -1); err != nil {
			return err
		}
		f.Values, err = array[float32](d, "features_values.npy", int64(len(f.Indices)))
	}
	return err
}

func (d *Dataset) loadLabels() (err error) {
	if d.Meta.Task == "" {
		return nil
	}
	d.Labels, err = d.loadLabelArray("labels.npy", d.Meta.Nodes, d.Meta.Task, d.Meta.Classes, d.Meta.ClassNames)
	return err
}

// loadLabelArray maps the labels of n vertices.
func (d *Dataset) loadLabelArray(name string, n int64, task string, classes int, names []string) (l *Labels, err error) {
	l = &Labels{Classes: classes, Names: names}
	switch wide := int64(classes); task {
	case MultiLabel:
		l.Multi, err = array[uint8](d, name, n, wide)
	case Regression:
		l.Values, err = array[float32](d, name, n, wide)
	default:
		l.Class, err = array[int32](d, name, n)
	}
	return l, err
}

func (d *Dataset) loadSplits() (err error) {
	d.Splits, err = d.loadSplitArrays("")
	return err
}

// loadSplitArrays maps the splits whose names end so.
func (d *Dataset) loadSplitArrays(suffix string) (s Splits, err error) {
	for name, ids := range map[string]*[]uint32{"train": &s.Train, "val": &s.Val, "test": &s.Test} {
		file := name + suffix + ".npy"
		if !d.has(file) {
			continue
		}
		if *ids, err = array[uint32](d, file, -1); err != nil {
			return s, err
		}
		if len(*ids) == 0 {
			return s, &InputError{File: filepath.Join(d.Dir, file), Found: "an empty split",
				Want: "at least one vertex",
				Fix:  "fill the split, or make the dataset again with other fractions"}
		}
	}
	return s, nil
}

func (d *Dataset) loadIDs() (err error) {
	d.ids, err = d.loadIDArray("ids", d.Meta.Nodes)
	return err
}

// loadIDArray maps the names of n vertices, numbers or text, if there are any.
func (d *Dataset) loadIDArray(name string, n int64) (ids vertexIDs, err error) {
	if d.has(name + ".npy") {
		ids.numbers, err = array[int64](d, name+".npy", n)
		return ids, err
	}
	name += ".txt"
	if !d.has(name) {
		return ids, nil
	}
	raw, err := d.mapName(name)
	if err != nil {
		return ids, err
	}
	if lines := int64(bytes.Count(raw, []byte{'\n'})); lines != n {
		return ids, &InputError{File: filepath.Join(d.Dir, name), Found: event.Tally(lines, "line"),
			Want: fmt.Sprintf("one per vertex (%d)", n), Fix: "copy or make the dataset again"}
	}
	ids.text = &textIDs{raw: raw}
	return ids, nil
}
