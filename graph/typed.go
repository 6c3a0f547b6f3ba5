package graph

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"starling/event"
)

// In the folder of a typed graph, what is by type has the type's number in its name:
//
//	relations.npy        uint16  [edges]
//	features_K.npy       float32 [count of type K, its dim], or uint16
//	labels_K.npy         as labels.npy, of the type's vertices
//	train_K.npy val_K.npy test_K.npy  uint32, ascending vertex ids of the one id space
//	ids_K.npy, ids_K.txt as ids.npy and ids.txt, of the type's vertices

// typedName is the name of a type's array.
func typedName(array string, k int) string { return fmt.Sprintf("%s_%d.npy", array, k) }

// Typed reports whether the graph has types.
func (d *Dataset) Typed() bool { return d.Meta.Schema != nil }

// Untyped refuses a typed dataset for something that does not know types, such as "starling partition".
func (d *Dataset) Untyped(what string) error {
	if !d.Typed() {
		return nil
	}
	s := d.Meta.Schema
	return &InputError{File: d.Dir, Found: fmt.Sprintf("a typed graph (%s of vertices, %s)",
		event.Tally(len(s.Types), "type"),
		event.Tally(len(s.Relations), "relation")), Want: "a graph without types",
		Fix: what + " does not know types yet"}
}

func (d *Dataset) loadTyped() (err error) {
	s := d.Meta.Schema
	if d.Graph.Relations, err = array[uint16](d, relationsFile, d.Meta.Edges); err != nil {
		return err
	}
	d.TypeFeatures, d.typeLabels, d.typeSplits = make([]*Features, len(s.Types)), make([]*Labels, len(s.Types)),
		make([]Splits, len(s.Types))
	d.typeIDs = make([]vertexIDs, len(s.Types))
	for k := range s.Types {
		if err := d.loadType(k, &s.Types[k]); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dataset) loadType(k int, t *VertexType) (err error) {
	if m := t.Features; m != nil {
		f := &Features{Rows: int(t.Count), Cols: m.Dim}
		d.TypeFeatures[k] = f
		if m.Kind == BFloat16 {
			f.BF16, err = array[uint16](d, typedName("features", k), t.Count, int64(m.Dim))
		} else {
			f.F32, err = array[float32](d, typedName("features", k), t.Count, int64(m.Dim))
		}
		if err != nil {
			return err
		}
	}
	if t.Task != "" {
		if d.typeLabels[k], err = d.loadLabelArray(typedName("labels", k), t.Count, t.Task, t.Classes, t.ClassNames); err != nil {
			return err
		}
	}
	if d.typeSplits[k], err = d.loadSplitArrays("_" + strconv.Itoa(k)); err != nil {
		return err
	}
	d.typeIDs[k], err = d.loadIDArray("ids_"+strconv.Itoa(k), t.Count)
	return err
}

// checkTyped checks values of what is by type; all of them, or those of small arrays.
func (d *Dataset) checkTyped(all, finite bool) error {
	s := d.Meta.Schema
	if all || 2*d.Graph.Edges() <= SmallArray {
		if err := d.Graph.CheckRelations(s); err != nil {
			return d.named(err)
		}
	}
	for k := range s.Types {
		if err := d.checkType(k, &s.Types[k], finite); err != nil {
			return inType(err, s.Types[k].Name)
		}
	}
	return nil
}

func (d *Dataset) checkType(k int, t *VertexType, finite bool) error {
	if f := d.TypeFeatures[k]; f != nil && finite {
		if err := f.CheckFinite(); err != nil {
			return d.namedType(k, err)
		}
	}
	l := d.typeLabels[k]
	if l != nil {
		if err := l.Validate(int(t.Count)); err != nil {
			return d.namedType(k, err)
		}
	}
	return d.namedType(k, d.typeSplits[k].within(t, l))
}

// within checks splits whose vertices are of one type.
func (s *Splits) within(t *VertexType, labels *Labels) error {
	var local Splits
	for _, pair := range []struct {
		from []uint32
		to   *[]uint32
	}{{s.Train, &local.Train}, {s.Val, &local.Val}, {s.Test, &local.Test}} {
		for _, v := range pair.from {
			if int64(v) < t.First || int64(v) >= t.End() {
				return &InputError{Field: "split", Found: fmt.Sprintf("vertex %d", v),
					Want: fmt.Sprintf("vertices of type %q, %d to %d", t.Name, t.First, t.End()-1), Fix: "make the dataset again"}
			}
			*pair.to = append(*pair.to, v-uint32(t.First))
		}
	}
	return local.Validate(int(t.Count), labels)
}

// namedType is named for an array of a type.
func (d *Dataset) namedType(k int, err error) error {
	in, ok := err.(*InputError)
	if !ok {
		return err
	}
	return inFile(filepath.Join(d.Dir, typedName(in.Field, k)), err)
}

// inType adds a type's name to the field of an InputError.
func inType(err error, name string) error {
	in, ok := err.(*InputError)
	if !ok {
		return err
	}
	named := *in
	named.Field = fmt.Sprintf("%s of type %q", in.Field, name)
	return &named
}

// Targets are the numbers of the types that have labels and a training split.
func (d *Dataset) Targets() (list []int) {
	for k := range d.typeLabels {
		if d.typeLabels[k] != nil && len(d.typeSplits[k].Train) > 0 {
			list = append(list, k)
		}
	}
	return list
}

// SetTarget makes Labels and Splits those of a type, over all vertices: others have no label.
func (d *Dataset) SetTarget(k int) {
	t := &d.Meta.Schema.Types[k]
	d.Splits, d.Labels, d.Target = d.typeSplits[k], nil, t.Name
	d.Meta.Task, d.Meta.Classes, d.Meta.ClassNames = t.Task, t.Classes, t.ClassNames
	if l := d.typeLabels[k]; l != nil {
		d.Labels = l.placed(int(d.Meta.Nodes), int(t.First))
	}
}

// TypeLabels are the labels of a type's vertices, or nil, and the splits of the type.
func (d *Dataset) TypeLabels(k int) (*Labels, Splits) { return d.typeLabels[k], d.typeSplits[k] }

// placed are labels of n vertices, of which those from first on are l's and the others unknown.
func (l *Labels) placed(n, first int) *Labels {
	out := &Labels{Classes: l.Classes, Names: l.Names}
	switch l.Kind() {
	case MultiLabel:
		out.Multi = bytes.Repeat([]byte{NoLabel}, n*l.Classes)
		copy(out.Multi[first*l.Classes:], l.Multi)
	case Regression:
		out.Values = repeated(float32(math.NaN()), n*l.Classes)
		copy(out.Values[first*l.Classes:], l.Values)
	default:
		out.Class = repeated(int32(-1), n)
		copy(out.Class[first:], l.Class)
	}
	return out
}

func repeated[T any](x T, n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = x
	}
	return s
}

// Type writes what is known of type k: features, labels and splits (ids of the one id space), each if there is any. The
// schema is set before.
func (w *Writer) Type(k int, f *Features, l *Labels, s Splits) error {
	t := &w.Meta.Schema.Types[k]
	if f != nil {
		if err := w.typeFeatures(k, t, f); err != nil {
			return err
		}
	}
	if l != nil {
		t.Task, t.Classes, t.ClassNames = l.Kind(), l.Classes, l.Names
		if err := l.Validate(int(t.Count)); err != nil {
			return inType(err, t.Name)
		}
		if err := w.labelArray(typedName("labels", k), l); err != nil {
			return err
		}
	}
	if err := s.within(t, l); err != nil {
		return inType(err, t.Name)
	}
	return w.splitArrays("_"+strconv.Itoa(k), s)
}

func (w *Writer) typeFeatures(k int, t *VertexType, f *Features) error {
	if err := f.Validate(); err != nil {
		return inType(err, t.Name)
	}
	if err := f.CheckFinite(); err != nil {
		return inType(err, t.Name)
	}
	if t.Features == nil {
		t.Features = &FeatureMeta{}
	}
	t.Features.Kind, t.Features.Dim = f.Kind(), f.Cols
	shape := []int64{int64(f.Rows), int64(f.Cols)}
	if f.Kind() == BFloat16 {
		return writeArray(w, typedName("features", k), f.BF16, shape...)
	}
	return writeArray(w, typedName("features", k), f.F32, shape...)
}

// TypeFeatureRows starts dense features of type k that are written row by row, as DenseFeatures does. The schema is set
// before.
func (w *Writer) TypeFeatureRows(k int, kind FeatureKind, cols int) (*ArrayWriter, error) {
	t := &w.Meta.Schema.Types[k]
	if t.Features == nil {
		t.Features = &FeatureMeta{}
	}
	t.Features.Kind, t.Features.Dim = kind, cols
	descr := map[FeatureKind]string{Dense: "<f4", BFloat16: "<u2"}[kind]
	return w.Array(typedName("features", k), descr, t.Count, int64(cols))
}

// TypeIDs writes the names that a type's vertices had before import: numbers, or else text.
func (w *Writer) TypeIDs(k int, numbers []int64, text []string) error {
	name := typedName("ids", k)
	if text == nil {
		if err := writeArray(w, name, numbers); err != nil {
			return err
		}
	} else {
		name = fmt.Sprintf("ids_%d.txt", k)
		if err := w.textIDs(name, text); err != nil {
			return err
		}
	}
	w.Meta.Schema.Types[k].IDs = w.Meta.Arrays[name].CRC32C
	return nil
}
