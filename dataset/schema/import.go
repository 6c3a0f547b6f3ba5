package schema

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"starling/dataset"
	"starling/dataset/table"
	"starling/event"
	"starling/graph"
	"starling/rng"
)

// Options of an import.
type Options struct {
	Name      string // of the dataset; "": the schema's
	Seed      uint64 // of the splits that are drawn
	Overwrite bool
	// FeaturesFrom makes features of a graph without types from its structure, as dataset.ImportOptions has it.
	FeaturesFrom string
	Progress     dataset.Progress
}

// Import reads the tables and writes a dataset to out.
func (p *Plan) Import(opt Options, out string) (dataset.Summary, error) {
	if p.Schema.Untyped {
		return p.importFlat(opt, out)
	}
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: opt.Overwrite})
	if err != nil {
		return dataset.Summary{}, err
	}
	defer w.Abort()
	b := &build{plan: p, opt: opt, w: w, notes: slices.Clone(p.Schema.Notes)}
	b.schema, b.number = p.graph()
	w.Meta.Name, w.Meta.Source = p.Schema.Name, "import schema "+filepath.Base(p.Schema.File)
	if opt.Name != "" {
		w.Meta.Name = opt.Name
	}
	if err := b.vertices(); err != nil {
		return dataset.Summary{}, err
	}
	if err := b.edges(); err != nil {
		return dataset.Summary{}, err
	}
	if err := w.Preparation(b.preparation(nil)); err != nil {
		return dataset.Summary{}, err
	}
	w.Meta.Notes = b.notes
	return dataset.Commit(w, graph.Splits{})
}

// build is an import on its way.
type build struct {
	plan   *Plan
	opt    Options
	w      *graph.Writer
	schema *graph.Schema
	number map[int]int // of relations, see Plan.graph
	types  []*typeData
	notes  []string
	known  *graph.Dataset // that the vertices are added to; nil: none
}

// typeData is what is held of a type in memory.
type typeData struct {
	plan     *nodePlan
	ids      *ids
	label    words
	split    words
	hot      []words // of each feature; unused ones are empty
	labels   *graph.Labels
	splits   graph.Splits // within the type
	prepared []graph.PrepColumn
	times    []int64
	first    int64
	masks    []uint8 // of each row: 0, or 1 + the split
	known    *ids    // of the vertices that there are already; nil: none
}

func (b *build) report(stage string, done, total int64) {
	if b.opt.Progress != nil {
		b.opt.Progress(stage, done, max(total, done))
	}
}

func (b *build) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// vertices reads the types, first ids, labels and words of all, then features.
func (b *build) vertices() error {
	var total int64
	for k, n := range b.plan.nodes {
		d, err := b.collect(n)
		if err != nil {
			return err
		}
		d.first = total
		total += int64(d.ids.n)
		b.schema.Types[k].First, b.schema.Types[k].Count = d.first, int64(d.ids.n)
		b.types = append(b.types, d)
	}
	if total > graph.MaxNodes {
		return place{b.plan.Schema.File, "nodes"}.wrong(fmt.Sprintf("%s in all", event.Tally(total, "vertex")),
			"fewer than 2^32",
			"split the graph")
	}
	b.w.Meta.Schema = b.schema
	for k, d := range b.types {
		if err := b.writeType(k, d); err != nil {
			return err
		}
	}
	return nil
}

// words are a column of text: the different ones, and for each row which one it has; -1: none.
type words struct {
	list  []string
	index map[string]int32
	of    []int32
}

func (w *words) add(b *table.Batch, v *table.Values, missing func(string) bool) {
	if w.index == nil {
		w.index = map[string]int32{}
	}
	for i := range b.Rows {
		word := v.Text[i]
		if v.IsMissing(i) || missing(word) {
			w.of = append(w.of, -1)
			continue
		}
		k, ok := w.index[word]
		if !ok {
			k = int32(len(w.list))
			w.index[word] = k
			w.list = append(w.list, word)
		}
		w.of = append(w.of, k)
	}
}

// sorted are the words in order, and for each of the list its place there.
func (w *words) sorted() (names []string, rank []int32) {
	names = slices.Sorted(slices.Values(w.list))
	rank = make([]int32, len(names))
	for i, name := range names {
		rank[w.index[name]] = int32(i)
	}
	return names, rank
}

// missing counts the rows without a word.
func (w *words) missing() (n int) {
	for _, k := range w.of {
		if k < 0 {
			n++
		}
	}
	return n
}

func never(string) bool { return false }

// pass is columns of one table, each with what takes it.
type pass struct {
	table *table.Table
	want  []table.Want
	take  []func(b *table.Batch, v *table.Values) error
}

// add adds a column to the pass over its table.
func add(list *[]pass, t *table.Table, name string, as table.Kind, take func(b *table.Batch, v *table.Values) error) {
	i := slices.IndexFunc(*list, func(p pass) bool { return p.table == t })
	if i < 0 {
		i = len(*list)
		*list = append(*list, pass{table: t})
	}
	p := &(*list)[i]
	p.want, p.take = append(p.want, table.Want{Name: name, As: as}), append(p.take, take)
}

// run reads the table once and returns its rows.
func (p *pass) run(report func(rows, total int64)) (rows int64, err error) {
	err = p.table.Read(p.want, func(b *table.Batch) error {
		for i, take := range p.take {
			if err := take(b, &b.Columns[i]); err != nil {
				return err
			}
		}
		rows = b.First + int64(b.Rows)
		report(rows, max(p.table.Rows, p.table.About))
		return nil
	})
	return rows, err
}

// collect reads ids, labels, splits and words of a type.
func (b *build) collect(n *nodePlan) (*typeData, error) {
	d := &typeData{plan: n, hot: make([]words, len(n.features))}
	if err := b.addedTo(d); err != nil {
		return nil, err
	}
	if d.ids = newIDs(); n.table == nil {
		d.ids = d.counted(int(n.Count))
	}
	for _, p := range d.passes() {
		rows, err := p.run(func(rows, total int64) { b.report("read "+cmp.Or(n.Name, "vertices"), rows, total) })
		if err != nil {
			return nil, err
		}
		if p.table == n.table {
			if rows == 0 {
				return nil, n.empty()
			}
			if n.ID == "" {
				d.ids = d.counted(int(rows))
			}
		} else if err := d.aligned(p.table, rows); err != nil {
			return nil, err
		}
	}
	if err := b.labels(d); err != nil {
		return nil, err
	}
	return d, nil
}

// passes are what collect reads, the type's own table first.
func (d *typeData) passes() (list []pass) {
	n := d.plan
	if n.table != nil {
		list = append(list, pass{table: n.table})
	}
	if n.ID != "" {
		add(&list, n.table, n.ID, table.ID, func(b *table.Batch, v *table.Values) error {
			if err := d.namedByMissing(b, v); err != nil {
				return err
			}
			if err := d.known.refuse(b, v, n.ID); err != nil {
				return err
			}
			return d.ids.add(b, v, n.ID)
		})
	}
	if n.Label != nil {
		add(&list, n.label, n.Label.Col, table.Text, func(b *table.Batch, v *table.Values) error {
			missing := never // a word such as NA may be a name
			if n.Name == "" {
				missing = table.IsMissing
			}
			d.label.add(b, v, missing)
			return nil
		})
	}
	if n.Split != nil && n.Split.Col != "" {
		add(&list, n.table, n.Split.Col, table.Text, func(b *table.Batch, v *table.Values) error {
			d.split.add(b, v, table.IsMissing)
			return nil
		})
	}
	d.addMasks(&list)
	if n.Graph != "" {
		one := &oneGraph{column: n.Graph}
		add(&list, n.table, n.Graph, table.Text, one.check)
	}
	if n.clock != nil {
		add(&list, n.table, n.Time, n.clock.As, d.takeTimes)
	}
	for i := range n.features {
		if f := &n.features[i]; f.OneHot {
			add(&list, f.table, f.col.Name, table.Text, func(b *table.Batch, v *table.Values) error {
				d.hot[i].add(b, v, table.IsMissing)
				return nil
			})
		}
	}
	return list
}

// empty is the error of a table without vertices.
func (n *nodePlan) empty() error {
	if n.Name == "" {
		return place{n.table.Pattern, ""}.wrong("no rows", "the vertices", "check the file")
	}
	return place{n.table.Pattern, ""}.wrong("no rows", "the vertices of type "+n.Name,
		"check the files, or leave the type out")
}

// namedByMissing refuses ids of a graph without types that stand for missing values.
func (d *typeData) namedByMissing(b *table.Batch, v *table.Values) error {
	for i, word := range v.Text {
		if d.plan.Name == "" && word != "" && table.IsMissing(word) {
			return place{b.File, fmt.Sprintf("%s, column %.60s", b.Place(i), d.plan.ID)}.wrong(
				fmt.Sprintf("%q, which stands for a missing value", word), "an id", "remove the row, or rename the id if it is one")
		}
	}
	return nil
}

// takeTimes reads the times of vertices.
func (d *typeData) takeTimes(b *table.Batch, v *table.Values) error {
	for i := range b.Rows {
		t, err := d.plan.clock.Time(b, v, i)
		if err != nil {
			return err
		}
		d.times = append(d.times, t)
	}
	return nil
}

// aligned refuses a table that has not one row per vertex.
func (d *typeData) aligned(t *table.Table, rows int64) error {
	if rows == int64(d.ids.n) {
		return nil
	}
	return place{t.Pattern, ""}.wrong(event.Tally(rows, "row"), fmt.Sprintf("one per vertex of type %s, %d",
		d.plan.Name, d.ids.n),
		"give a row per row of the type's own files, in the same order")
}

// labels derives classes and splits from the words that were read.
func (b *build) labels(d *typeData) (err error) {
	n := d.plan
	if n.Label == nil {
		return nil
	}
	var notes []string
	if n.like != nil && n.like.Label != nil {
		d.labels, notes, err = dataset.LabelsAs(n.label.Pattern, d.label.list, d.label.of, n.like.Label)
	} else {
		d.labels, notes, err = dataset.LabelsOf(n.label.Pattern, d.label.list, d.label.of, n.Label.Task)
	}
	if err != nil {
		return err
	}
	for _, note := range notes {
		b.note("%s%s", d.prefix(), note)
	}
	if missing := d.label.missing(); n.Name == "" && missing > 0 {
		b.note("vertices without a label (nothing, NA and the like): %d of %d", missing, d.ids.n)
	}
	d.label = words{}
	switch s := n.Split; {
	case s == nil:
		u := dataset.UsualSplit
		if b.plan.Schema.Like != nil {
			return nil
		}
		b.note("%ssplits were drawn, %g to train on, %g to validate, %g to test", d.prefix(), u.Train, u.Val, u.Test)
		return b.drawn(d, u.Train, u.Val, u.Test)
	case s.Time != nil:
		d.splits, err = s.Time.Split(d.labels, d.times)
		return err
	case s.Col != "":
		return b.byColumn(d)
	case s.masked():
		return b.byMasks(d)
	case s.Files[0] != "":
		return b.byFiles(d)
	default:
		return b.drawn(d, s.Train, s.Val, s.Test)
	}
}

func (b *build) drawn(d *typeData, train, val, test float64) (err error) {
	key := rng.New(b.opt.Seed).Fold(dataset.SplitStream).Fold(uint64(len(b.types)))
	d.splits, err = dataset.SplitByFraction(d.ids.n, d.labels, train, val, test, key)
	return err
}

// byColumn takes the splits of a column. Vertices without a label are in none.
func (b *build) byColumn(d *typeData) error {
	n := d.plan
	parts := map[string]*[]uint32{"train": &d.splits.Train, "val": &d.splits.Val, "test": &d.splits.Test,
		"": new([]uint32)}
	to := make([]*[]uint32, len(d.split.list))
	for k, word := range d.split.list {
		if to[k] = parts[dataset.SplitName(word)]; to[k] == nil {
			return n.Split.at.wrong(fmt.Sprintf("%.60q in column %s of %s", word, n.Split.Col, n.table.Pattern),
				"train, val or test (or 0, 1, 2), or nothing for none of them", "rename it")
		}
	}
	unlabelled := 0
	for v, k := range d.split.of {
		switch {
		case k < 0:
		case !d.labels.Has(v):
			unlabelled++
		default:
			*to[k] = append(*to[k], uint32(v))
		}
	}
	if unlabelled > 0 {
		b.note("%svertices of the splits without a label are left out: %d", d.prefix(), unlabelled)
	}
	d.split = words{}
	if b.plan.Schema.Like != nil && len(d.splits.Train) == 0 {
		d.splits = graph.Splits{} // nothing is to be trained on
		return nil
	}
	if len(d.splits.Train) == 0 {
		return n.Split.at.wrong("no labelled vertex to train on in column "+n.Split.Col, "some of train",
			"check the column")
	}
	return nil
}

// byFiles takes the splits of lists of ids.
func (b *build) byFiles(d *typeData) error {
	n := d.plan
	for i, to := range []*[]uint32{&d.splits.Train, &d.splits.Val, &d.splits.Test} {
		t := n.lists[i]
		if t == nil {
			continue
		}
		unlabelled := 0
		err := t.Read([]table.Want{{Name: t.Columns[0].Name, As: table.ID}}, func(x *table.Batch) error {
			for i := range x.Rows {
				v, ok := d.ids.find(&x.Columns[0], i)
				if !ok {
					return place{x.File, x.Place(i)}.wrong("an id that is not there", "ids of type "+n.Name,
						"remove the line")
				}
				if !d.labels.Has(int(v)) {
					unlabelled++
					continue
				}
				*to = append(*to, v)
			}
			return nil
		})
		if err != nil {
			return err
		}
		slices.Sort(*to)
		if unlabelled > 0 {
			b.note("%s: vertices of %s without a label are left out: %d", n.Name, filepath.Base(t.Pattern), unlabelled)
		}
	}
	return nil
}

// writeType writes what is known of a type.
func (b *build) writeType(k int, d *typeData) error {
	t := &b.schema.Types[k]
	if len(d.plan.features) > 0 {
		if err := b.writeFeatures(k, d); err != nil {
			return err
		}
	}
	for _, part := range [][]uint32{d.splits.Train, d.splits.Val, d.splits.Test} {
		for i := range part {
			part[i] += uint32(t.First)
		}
	}
	if err := b.w.Type(k, nil, d.labels, d.splits); err != nil {
		return graph.InFile(b.plan.Schema.File, err)
	}
	switch {
	case d.ids.plain:
		return nil
	case d.ids.text:
		return graph.InFile(d.plan.table.Pattern, b.w.TypeIDs(k, nil, d.ids.names()))
	}
	return b.w.TypeIDs(k, d.ids.numbers, nil)
}

// edges sorts the edges of all relations.
func (b *build) edges() error {
	var expected int64
	for _, e := range b.plan.edges {
		rows := max(e.table.Rows, e.table.About)
		if e.Reverse != "" {
			rows *= 2
		}
		expected += rows
	}
	last := b.schema.Types[len(b.schema.Types)-1]
	s := b.w.Sorter(int(last.End()), expected, false, graph.BuildOptions{})
	defer s.Close()
	s.Typed()
	a := &adder{sorter: s}
	a.start()
	var err error
	for i, e := range b.plan.edges {
		if err = b.relation(i, e, a); err != nil {
			break
		}
	}
	if stop := a.stop(); err == nil {
		err = stop
	}
	if err != nil {
		return err
	}
	return s.Finish()
}

// relation reads the edges of one relation, and adds them to the sorter with their reverse.
func (b *build) relation(i int, e *edgePlan, a *adder) error {
	from, to := b.types[b.schema.Type(e.Source)], b.types[b.schema.Type(e.Target)]
	var rows int64
	want, one := e.wants()
	err := e.table.Read(want,
		func(x *table.Batch) error {
			if err := one.last(x); err != nil {
				return err
			}
			src, dst, err := bothEnds(x, from, to, e)
			if err != nil {
				return err
			}
			rows += int64(x.Rows)
			b.report("read "+e.Name, rows, max(e.table.Rows, e.table.About))
			if err := a.add(src, dst, b.number[2*i]); err != nil || e.Reverse == "" {
				return err
			}
			return a.add(dst, src, b.number[2*i+1])
		})
	if err != nil {
		return err
	}
	if rows == 0 {
		return place{e.table.Pattern, ""}.wrong("no rows", "the edges of "+e.Source+" "+e.Name+" "+e.Target,
			"check the files, or leave the relation out")
	}
	b.schema.Relations[b.number[2*i]].Edges = rows
	if e.Reverse != "" {
		b.schema.Relations[b.number[2*i+1]].Edges = rows
	}
	return nil
}

// bothEnds are the vertices of both columns of ids, on two cores: most time is waiting for memory.
func bothEnds(x *table.Batch, from, to *typeData, e *edgePlan) (src, dst []uint32, err error) {
	var wg sync.WaitGroup
	var other error
	wg.Go(func() { dst, other = ends(x, 1, to, e.Dst) })
	src, err = ends(x, 0, from, e.Src)
	wg.Wait()
	if err == nil {
		err = other
	}
	return src, dst, err
}

// ends are the vertices of a column of ids.
func ends(x *table.Batch, column int, of *typeData, name string) ([]uint32, error) {
	out, v := make([]uint32, x.Rows), &x.Columns[column]
	for i := range out {
		at, ok := uint32(0), false
		if !v.IsMissing(i) {
			at, ok = of.ids.find(v, i)
		}
		if !ok {
			return nil, absent(x, v, i, of, name)
		}
		out[i] = at + uint32(of.first)
	}
	return out, nil
}

func absent(x *table.Batch, v *table.Values, i int, of *typeData, column string) error {
	found := shown(v, i)
	where := "its files"
	if of.plan.table != nil {
		where = of.plan.table.Pattern
	}
	if of.plan.Name == "" {
		return place{x.File, fmt.Sprintf("%s, column %s", x.Place(i), column)}.wrong(found, "an id that "+where+" has",
			"add the vertex there, or remove the edge")
	}
	return place{x.File, fmt.Sprintf("%s, column %s", x.Place(i), column)}.wrong(found,
		"an id of type "+of.plan.Name+", as "+where+" has it",
		"add the vertex there, or remove the edge")
}

// adder adds edges to a sorter on a goroutine of its own, while more are read.
type adder struct {
	sorter *graph.Sorter
	chunks chan edgeChunk
	done   chan struct{} // closed at the end, or when the sorter failed
	err    error         // once done is closed
}

type edgeChunk struct {
	src, dst []uint32
	relation int
}

func (a *adder) start() {
	a.chunks, a.done = make(chan edgeChunk, 16), make(chan struct{})
	go func() {
		defer close(a.done)
		seq := int64(0)
		for c := range a.chunks {
			if a.err = a.sorter.AddRelation(seq, c.src, c.dst, c.relation); a.err != nil {
				return
			}
			seq++
		}
	}()
}

func (a *adder) add(src, dst []uint32, relation int) error {
	select {
	case a.chunks <- edgeChunk{src, dst, relation}:
		return nil
	case <-a.done:
		return a.err
	}
}

// stop waits for the last edges.
func (a *adder) stop() error {
	close(a.chunks)
	<-a.done
	return a.err
}

var nan32 = float32(math.NaN())
