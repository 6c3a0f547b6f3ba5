package schema

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"starling/dataset"
	"starling/dataset/table"
	"starling/graph"
)

// A graph without types is one table of edges, and perhaps one of vertices. Its tables are read in this order:
//
//	edges      ids, if there is no table of vertices, and words of features        (only if there is something to find)
//	vertices   ids, labels, splits, words; then features
//	edges      ends, which are sorted, and what else they have, which is spilled and put into their order at the end
//
// Ids of edges alone are in ascending order if they are whole numbers, else in the order of their first appearance.

// flat writes a graph without types.
func (b *build) flat() error {
	n, e := b.plan.nodes[0], b.plan.edges[0]
	r := &edgeReader{b: b, e: e, hot: make([]words, len(e.features))}
	if n.Edges {
		r.ids = newIDs()
	}
	if err := r.survey(); err != nil {
		return err
	}
	d, err := b.flatVertices(n, r.ids)
	if err != nil {
		return err
	}
	r.d = d
	if err := r.write(); err != nil {
		return err
	}
	if err := b.lookAtEdges(e.Untyped.Negative); err != nil {
		return err
	}
	if err := b.flatRest(d); err != nil {
		return err
	}
	return b.w.Preparation(b.preparation(r.prepared))
}

// flatVertices reads what there is of vertices and writes their features.
func (b *build) flatVertices(n *nodePlan, fromEdges *ids) (d *typeData, err error) {
	if n.Edges {
		fromEdges.settle()
		d = &typeData{plan: n, ids: fromEdges}
	} else if d, err = b.collect(n); err != nil {
		return nil, err
	}
	b.types = append(b.types, d)
	if len(n.features) > 0 {
		return d, b.writeFeatures(0, d)
	}
	return d, nil
}

// flatRest writes labels, splits, ids and times.
func (b *build) flatRest(d *typeData) error {
	if d.labels != nil {
		if err := b.w.Labels(d.labels); err != nil {
			return err
		}
	}
	if d.times != nil {
		if err := b.w.Times(d.times); err != nil {
			return err
		}
	}
	if err := b.dates(); err != nil {
		return err
	}
	switch {
	case d.ids.plain:
		return nil
	case d.ids.text:
		return b.w.TextIDs(d.ids.names())
	}
	return b.w.IntIDs(d.ids.numbers)
}

// dates notes whether times are dates, which those of edges and vertices must be alike.
func (b *build) dates() error {
	n, e := b.plan.nodes[0], b.plan.edges[0]
	for _, k := range []*table.Clock{n.clock, e.clock} {
		b.w.Meta.Dates = b.w.Meta.Dates || k != nil && k.Dates
	}
	if n.clock != nil && e.clock != nil && n.clock.Dates != e.clock.Dates {
		return n.at.in("time").wrong(fmt.Sprintf("%s in %s and %s in %s", n.clock, n.table.Pattern, e.clock, e.table.Pattern),
			"times of one kind", "write both as dates, or both as numbers")
	}
	return nil
}

// lookAtEdges says what is to be known of the edges that were written.
func (b *build) lookAtEdges(negative bool) error {
	notes, err := dataset.LookAtEdges(b.w, negative)
	b.notes = append(b.notes, notes...)
	return graph.InFile(b.plan.edges[0].table.Pattern, err)
}

// edgeReader reads the table of edges of a graph without types.
type edgeReader struct {
	b        *build
	e        *edgePlan
	ids      *ids    // to be found; nil: there is a table of vertices
	hot      []words // of features that are words; of is not kept
	d        *typeData
	l        *layout
	table    *graph.EdgeTable
	weights  []float32
	times    []int64
	rows     []float32
	seq      int64
	listed   int64
	one      *oneGraph // nil: no column names graphs
	prepared []graph.PrepColumn
}

// wants are source and target, weight, time, the columns of features, and that of graphs, in this order.
func (r *edgeReader) wants() []table.Want {
	u := r.e.Untyped
	want := []table.Want{{Name: r.e.Src, As: table.ID}, {Name: r.e.Dst, As: table.ID}}
	if u.Weight != "" {
		want = append(want, table.Want{Name: u.Weight, As: table.Real})
	}
	if r.e.clock != nil {
		want = append(want, table.Want{Name: u.Time, As: r.e.clock.As})
	}
	for i := range r.e.features {
		want = append(want, table.Want{Name: r.e.features[i].col.Name, As: r.e.features[i].as()})
	}
	if r.e.Graph != "" {
		want, r.one = append(want, table.Want{Name: r.e.Graph, As: table.Text}), &oneGraph{column: r.e.Graph}
	}
	return want
}

// as is what a column of features is read as.
func (f *featurePlan) as() table.Kind {
	switch {
	case f.OneHot:
		return table.Text
	case f.col.Kind == table.Vector:
		return table.Vector
	}
	return table.Real
}

// survey finds ids and words, if there are any to be found.
func (r *edgeReader) survey() error {
	var want []table.Want
	var take []func(x *table.Batch, v *table.Values) error
	if r.ids != nil {
		want = append(want, table.Want{Name: r.e.Src, As: table.ID}, table.Want{Name: r.e.Dst, As: table.ID})
		take = append(take, func(x *table.Batch, _ *table.Values) error { return r.addIDs(x) },
			func(*table.Batch, *table.Values) error { return nil })
	}
	for i := range r.e.features {
		if f := &r.e.features[i]; f.OneHot {
			want = append(want, table.Want{Name: f.col.Name, As: table.Text})
			take = append(take, func(x *table.Batch, v *table.Values) error {
				r.hot[i].add(x, v, table.IsMissing)
				r.hot[i].of = r.hot[i].of[:0]
				return nil
			})
		}
	}
	if want == nil {
		return nil
	}
	p := pass{table: r.e.table, want: want, take: take}
	_, err := p.run(func(rows, total int64) { r.b.report("read edges", rows, total) })
	return err
}

// addIDs adds the ends of edges to the ids, source and target of each in turn.
func (r *edgeReader) addIDs(x *table.Batch) error {
	for i := range x.Rows {
		for c := range 2 {
			v := &x.Columns[c]
			if err := r.checkID(x, v, i, c); err != nil {
				return err
			}
			if v.Text != nil {
				r.ids.addText(v.Text[i])
			} else {
				r.ids.addNumber(v.Whole[i])
			}
			if r.ids.n >= math.MaxUint32-1 {
				return place{x.File, x.Place(i)}.wrong("more than 2^32 vertices", "fewer", "split the graph")
			}
		}
	}
	return nil
}

// checkID refuses ids that are missing.
func (r *edgeReader) checkID(x *table.Batch, v *table.Values, i, c int) error {
	name := []string{r.e.Src, r.e.Dst}[c]
	found := "no id"
	if v.Text != nil && table.IsMissing(v.Text[i]) && v.Text[i] != "" {
		found = fmt.Sprintf("%q, which stands for a missing value", v.Text[i])
	} else if !v.IsMissing(i) {
		return nil
	}
	return place{x.File, fmt.Sprintf("%s, column %.60s", x.Place(i), name)}.wrong(found, "an id",
		"remove the row, or rename the id if it is one")
}

// write sorts the edges and writes all that they have.
func (r *edgeReader) write() (err error) {
	u, w := r.e.Untyped, r.b.w
	if r.l, err = newLayout(r.e.features, r.hot); err != nil {
		return err
	}
	repeats := u.repeats()
	numbered := u.Weight != "" || u.Time != "" || len(r.e.features) > 0 || repeats.Joins()
	s := w.Sorter(r.d.ids.n, max(r.e.table.Rows, r.e.table.About), false, graph.BuildOptions{Symmetrize: u.Symmetrize,
		DropDuplicates: repeats == graph.First, DropSelfLoops: !u.SelfLoops})
	defer s.Close()
	if numbered {
		s.Number()
		if r.table, err = w.EdgeTable(u.Weight != "", u.Time != "", r.l.dim); err != nil {
			return err
		}
		defer r.table.Close()
	}
	err = r.e.table.Read(r.wants(), func(x *table.Batch) error { return r.batch(s, x) })
	if err != nil {
		return err
	}
	if r.listed == 0 {
		return place{r.e.table.Pattern, ""}.wrong("no rows", "the edges", "check the file")
	}
	if err := s.Finish(); err != nil {
		return err
	}
	if numbered {
		if err := r.finish(repeats); err != nil {
			return err
		}
	}
	r.note(repeats, w.Meta.Edges)
	return nil
}

// batch takes some rows.
func (r *edgeReader) batch(s *graph.Sorter, x *table.Batch) error {
	for c := range 2 {
		for i := range x.Rows {
			if err := r.checkID(x, &x.Columns[c], i, c); err != nil {
				return err
			}
		}
	}
	if err := r.one.last(x); err != nil {
		return err
	}
	src, dst, err := bothEnds(x, r.d, r.d, r.e)
	if err != nil {
		return err
	}
	r.listed += int64(x.Rows)
	r.b.report("read edges", r.listed, max(r.e.table.Rows, r.e.table.About))
	if err := s.Add(r.seq, src, dst, nil); err != nil {
		return err
	}
	r.seq++
	if r.table == nil {
		return nil
	}
	return r.put(x)
}

// put spills what the rows have beside ends.
func (r *edgeReader) put(x *table.Batch) error {
	r.weights, r.times = r.weights[:0], r.times[:0]
	at := 2
	if r.e.Untyped.Weight != "" {
		if err := r.takeWeights(x, &x.Columns[at]); err != nil {
			return err
		}
		at++
	}
	if r.e.clock != nil {
		if err := r.takeTimes(x, &x.Columns[at]); err != nil {
			return err
		}
		at++
	}
	r.rows = slices.Grow(r.rows[:0], x.Rows*r.l.dim)[:x.Rows*r.l.dim]
	clear(r.rows)
	for i := range r.e.features {
		if err := r.takeFeature(x, &x.Columns[at+i], i); err != nil {
			return err
		}
	}
	return r.table.Put(r.weights, r.times, r.rows)
}

func (r *edgeReader) wrong(x *table.Batch, i int, column, found, want, fix string) error {
	return place{x.File, fmt.Sprintf("%s, column %.60s", x.Place(i), column)}.wrong(found, want, fix)
}

func (r *edgeReader) takeWeights(x *table.Batch, v *table.Values) error {
	u := r.e.Untyped
	for i, y := range v.Real {
		switch {
		case y != y:
			return r.wrong(x, i, u.Weight, "no weight", "a number in every row", "fill it in, or remove the row")
		case math.Abs(y) > math.MaxFloat32:
			return r.wrong(x, i, u.Weight, fmt.Sprint(y), "a number that a float32 can hold", "correct it")
		case y < 0 && !u.Negative:
			return r.wrong(x, i, u.Weight, fmt.Sprintf("%g", y), "a weight of 0 or more, as gcn divides by the root of their sum",
				"--negative-weights keeps it for models that do not")
		}
		r.weights = append(r.weights, float32(y))
	}
	return nil
}

func (r *edgeReader) takeTimes(x *table.Batch, v *table.Values) error {
	for i := range x.Rows {
		t, err := r.e.clock.Time(x, v, i)
		if err != nil {
			return err
		}
		if t == graph.NoTime {
			return r.wrong(x, i, r.e.Untyped.Time, "no time", "a time in every row", "fill it in, or remove the row")
		}
		r.times = append(r.times, t)
	}
	return nil
}

// takeFeature puts a column into the rows.
func (r *edgeReader) takeFeature(x *table.Batch, v *table.Values, k int) error {
	f, at, width := &r.e.features[k], r.l.at[k], r.l.width[k]
	refused := f.Missing == "" || f.Missing == "error"
	if v.Vector != nil && v.Width != width {
		return r.wrong(x, 0, f.col.Name, fmt.Sprintf("vectors of %d", v.Width), fmt.Sprintf("%d", width),
			"write vectors of one width")
	}
	for i := range x.Rows {
		row := r.rows[i*r.l.dim+at : i*r.l.dim+at+width]
		switch {
		case f.OneHot:
			if c, ok := r.hot[k].index[v.Text[i]]; ok && !table.IsMissing(v.Text[i]) && r.l.rank[k][c] >= 0 {
				row[r.l.rank[k][c]] = 1
			}
			continue
		case v.Vector != nil:
			copy(row, v.Vector[i*width:])
		case math.Abs(v.Real[i]) > math.MaxFloat32:
			return r.wrong(x, i, f.col.Name, fmt.Sprint(v.Real[i]), "a number that a float32 can hold", "correct it")
		default:
			row[0] = float32(v.Real[i])
		}
		if refused && slices.ContainsFunc(row, func(y float32) bool { return y != y }) {
			return r.wrong(x, i, f.col.Name, "a missing value", "a finite number",
				"fill it in, or add missing: zero or missing: mean")
		}
	}
	return nil
}

// finish puts what was spilled into the order of the edges.
func (r *edgeReader) finish(repeats graph.Repeats) error {
	fill, scale := r.l.given()
	var look func(row []float32)
	stats := dataset.NewColumnStats(r.l.dim)
	if given := fill != nil; !given && r.l.dim > 0 {
		if fill = r.l.refusals(); r.l.reads() {
			look = func(row []float32) { stats.Add(row, true) }
		}
	}
	first, filled := true, int64(0)
	err := r.table.Write(repeats, look, func(row []float32) error {
		if first && look != nil {
			scale = r.l.derive(fill, stats)
		}
		first = false
		for k, y := range row {
			if y != y {
				row[k] = fill[k]
				filled++
			}
		}
		scale.Apply(row)
		return nil
	})
	if filled > 0 {
		r.b.note("missing features of edges were filled in: %d", filled)
	}
	r.prepared = r.l.prepared(fill, scale)
	return graph.InFile(r.e.table.Pattern, err)
}

// note says how many edges there are, and what became of repeated ones.
func (r *edgeReader) note(repeats graph.Repeats, stored int64) {
	text := fmt.Sprintf("edges: %d listed, %d stored", r.listed, stored)
	if r.e.Untyped.Symmetrize {
		text += ", the reverse of each among them"
	}
	text += fmt.Sprintf("; repeated edges: %s (%s)", repeatsInWords[repeats], repeats)
	if !r.e.Untyped.SelfLoops {
		text += "; self-loops dropped"
	}
	r.b.note("%s", text)
}

// importFlat writes a graph without types to out.
func (p *Plan) importFlat(opt Options, out string) (dataset.Summary, error) {
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: opt.Overwrite})
	if err != nil {
		return dataset.Summary{}, err
	}
	defer w.Abort()
	b := &build{plan: p, opt: opt, w: w, notes: slices.Clone(p.Schema.Notes)}
	w.Meta.Name, w.Meta.Source = p.Schema.Name, p.Schema.source()
	if opt.Name != "" {
		w.Meta.Name = opt.Name
	}
	if err := b.flat(); err != nil {
		return dataset.Summary{}, err
	}
	if w.Meta.Features == nil && opt.FeaturesFrom != "" {
		note, err := dataset.MakeFeatures(w, opt.FeaturesFrom, opt.Seed)
		if err != nil {
			return dataset.Summary{}, err
		}
		b.notes = append(b.notes, note)
	} else if w.Meta.Features == nil {
		b.note("%s", dataset.NoFeatures)
	}
	w.Meta.Notes = b.notes
	return dataset.Commit(w, b.types[0].splits)
}

// source says what a dataset was imported from.
func (s *Schema) source() string {
	if s.File == "" {
		return "import table " + strings.Join(s.tables(), " ")
	}
	return "import schema " + filepath.Base(s.File)
}

// tables are the names of the files of a graph without types.
func (s *Schema) tables() (names []string) {
	for _, source := range []Source{s.Edges[0].Table, s.Nodes[0].Table} {
		for _, f := range source.Files {
			names = append(names, filepath.Base(f))
		}
	}
	return names
}
