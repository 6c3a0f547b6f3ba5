package graph

import "fmt"

// OfType is what is known of one type of a typed dataset, without edges: its features, labels, splits and ids, by the
// vertex's number within the type. It is valid as long as d is.
func (d *Dataset) OfType(k int) *Dataset {
	t := &d.Meta.Schema.Types[k]
	local := func(list []uint32) (out []uint32) {
		for _, v := range list {
			out = append(out, v-uint32(t.First))
		}
		return out
	}
	s := &d.typeSplits[k]
	return &Dataset{Dir: d.Dir, Meta: Meta{Name: d.Meta.Name, Nodes: t.Count, Features: t.Features, Task: t.Task,
		Classes: t.Classes, ClassNames: t.ClassNames, Arrays: d.Meta.Arrays},
		Features: d.TypeFeatures[k], Labels: d.typeLabels[k], ids: d.typeIDs[k], idName: fmt.Sprintf("ids_%d", k),
		Splits: Splits{Train: local(s.Train), Val: local(s.Val), Test: local(s.Test)}}
}

// IDFile is the file of the names that vertices had before import; "": there is none.
func (d *Dataset) IDFile() string {
	for _, end := range []string{".npy", ".txt"} {
		name := d.idName + end
		if d.idName == "" {
			name = "ids" + end
		}
		if _, ok := d.Meta.Arrays[name]; ok && d.HasIDs() {
			return name
		}
	}
	return ""
}

// TextIDs reports whether vertices had names that are not numbers.
func (d *Dataset) TextIDs() bool { return d.ids.text != nil }

// Described is a typed dataset of which only sizes are here, and the labels of all vertices and the splits of type k.
func Described(dir string, m Meta, k int, l *Labels, s Splits) *Dataset {
	n := len(m.Schema.Types)
	d := &Dataset{Dir: dir, Meta: m, Graph: &CSR{Indptr: make([]int64, m.Nodes+1)}, Target: m.Schema.Types[k].Name,
		TypeFeatures: make([]*Features, n), Labels: l, Splits: s, typeLabels: make([]*Labels, n),
		typeSplits: make([]Splits, n), typeIDs: make([]vertexIDs, n)}
	for i := range m.Schema.Types {
		if t := &m.Schema.Types[i]; t.Features != nil {
			d.TypeFeatures[i] = &Features{Rows: int(t.Count), Cols: t.Features.Dim}
		}
	}
	if l != nil {
		d.typeLabels[k] = l.rows(int(m.Schema.Types[k].First), int(m.Schema.Types[k].End()))
	}
	d.typeSplits[k] = s
	return d
}

// rows are the labels of vertices lo to hi.
func (l *Labels) rows(lo, hi int) *Labels {
	out := &Labels{Classes: l.Classes, Names: l.Names}
	switch l.Kind() {
	case MultiLabel:
		out.Multi = l.Multi[lo*l.Classes : hi*l.Classes]
	case Regression:
		out.Values = l.Values[lo*l.Classes : hi*l.Classes]
	default:
		out.Class = l.Class[lo:hi]
	}
	return out
}
