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
