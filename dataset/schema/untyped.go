package schema

import (
	"fmt"
	"slices"

	"starling/dataset"
	"starling/event"
	"starling/graph"
)

// Untyped writes the graph of a typed dataset without its types, for models that do not look at them: the same vertices,
// edges, labels and splits. Types without features get zeros; those that have some must have one width.
func Untyped(src string, opt Options, out string) (dataset.Summary, error) {
	d, err := graph.Open(src)
	if err != nil {
		return dataset.Summary{}, err
	}
	defer d.Close()
	width, err := oneWidth(d)
	if err != nil {
		return dataset.Summary{}, err
	}
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: opt.Overwrite})
	if err != nil {
		return dataset.Summary{}, err
	}
	defer w.Abort()
	w.Meta.Source, w.Meta.Name = "import untyped "+src, d.Meta.Name
	if opt.Name != "" {
		w.Meta.Name = opt.Name
	}
	if err := w.Graph(withoutRelations(d.Graph)); err != nil {
		return dataset.Summary{}, err
	}
	if err := w.Features(allFeatures(d, width)); err != nil {
		return dataset.Summary{}, err
	}
	if d.Labels != nil {
		if err := w.Labels(d.Labels); err != nil {
			return dataset.Summary{}, err
		}
	}
	if err := w.TextIDs(typedIDs(d)); err != nil {
		return dataset.Summary{}, err
	}
	return dataset.Commit(w, d.Splits)
}

// oneWidth is the width of features that all types have which have any. It also makes the labels those of the only type
// that has some.
func oneWidth(d *graph.Dataset) (width int, err error) {
	bad := func(found, want string) error {
		return &graph.InputError{File: d.Dir, Found: found, Want: want, Fix: "train a typed model on it: --model rgcn"}
	}
	if !d.Typed() {
		return 0, &graph.InputError{File: d.Dir, Found: "a graph without types", Want: "a typed graph",
			Fix: "use the dataset itself"}
	}
	for k, f := range d.TypeFeatures {
		if f == nil {
			continue
		}
		if width > 0 && f.Cols != width {
			return 0, bad(fmt.Sprintf("%s of type %q and %d of another", event.Tally(f.Cols, "feature"), d.Meta.Schema.Types[k].Name, width),
				"features of one width")
		}
		width = f.Cols
	}
	targets := d.Targets()
	switch {
	case width == 0:
		return 0, bad("no features", "a type with features")
	case len(targets) > 1:
		return 0, bad(fmt.Sprintf("%d types with labels", len(targets)), "labels of one type")
	case len(targets) == 1:
		d.SetTarget(targets[0])
	}
	return width, nil
}

// withoutRelations is the graph with the in-edges of each vertex in the order of their sources.
func withoutRelations(g *graph.CSR) *graph.CSR {
	out := &graph.CSR{Indptr: g.Indptr, Indices: slices.Clone(g.Indices)}
	for v := range uint32(out.Nodes()) {
		slices.Sort(out.Neighbors(v))
	}
	return out
}

func allFeatures(d *graph.Dataset, width int) *graph.Features {
	all := &graph.Features{Rows: int(d.Meta.Nodes), Cols: width, F32: make([]float32, int(d.Meta.Nodes)*width)}
	for k, f := range d.TypeFeatures {
		if f == nil {
			continue
		}
		first := int(d.Meta.Schema.Types[k].First)
		for i := range f.Rows {
			f.CopyRow(all.F32[(first+i)*width:(first+i+1)*width], uint32(i))
		}
	}
	return all
}

// typedIDs are the names of vertices, with their types, as ids are told apart within a type only.
func typedIDs(d *graph.Dataset) (list []string) {
	for v := range uint32(d.Meta.Nodes) {
		list = append(list, d.Meta.Schema.Types[d.Meta.Schema.TypeOf(v)].Name+" "+d.ID(v))
	}
	return list
}
