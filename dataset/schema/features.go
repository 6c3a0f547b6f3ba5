package schema

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"starling/dataset"
	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// layout is where the features of a type's columns are in a row.
type layout struct {
	features []featurePlan
	at       []int // first number of each feature
	width    []int
	dim      int
	rank     [][]int32  // of one-hot words; -1: the preparation does not know it
	names    [][]string // of these
	rows     func() *zip
	hot      func(feature, row int) int32 // the word of a row
}

// mostVague bounds the words of a column that was not called one_hot.
const mostVague = 1000

func newLayout(features []featurePlan, hot []words) (*layout, error) {
	l := &layout{features: features}
	for i := range features {
		f := &features[i]
		width := 1
		var names []string
		var rank []int32
		switch {
		case f.OneHot && f.like != nil:
			names, rank = f.like.Words, hot[i].among(f.like.Words)
			width = len(names)
		case f.OneHot:
			names, rank = hot[i].sorted()
			if width = len(names); width == 0 {
				return nil, f.at.wrong("column "+f.col.Name+" without a word", "some words", "leave the column out")
			}
			if f.Vague && width > mostVague {
				return nil, f.at.wrong(fmt.Sprintf("%s of %s, each of which would be a feature", event.Tally(width, "different word"),
					f.col.Name), fmt.Sprintf("at most %d", mostVague),
					"leave the column out, or say --one-hot "+f.col.Name+" to take them all")
			}
		case f.col.Kind == table.Vector:
			width = f.col.Width
		}
		l.at, l.width, l.dim = append(l.at, l.dim), append(l.width, width), l.dim+width
		l.rank, l.names = append(l.rank, rank), append(l.names, names)
	}
	return l, nil
}

// among are the places of the words in a sorted list; -1: not there.
func (w *words) among(list []string) (rank []int32) {
	rank = make([]int32, len(w.list))
	for i, word := range w.list {
		k, ok := slices.BinarySearch(list, word)
		if rank[i] = int32(k); !ok {
			rank[i] = -1
		}
	}
	return rank
}

// columns are names of the features; nil: they are one vector.
func (l *layout) columns() (out []string) {
	if len(l.at) == 1 && l.names[0] == nil && l.width[0] > 1 {
		return nil
	}
	return graph.ColumnNames(l.prepared(nil, nil))
}

// prepared are the columns with what becomes of their numbers.
func (l *layout) prepared(fill []float32, scale *graph.Scale) (out []graph.PrepColumn) {
	for i := range l.at {
		f := &l.features[i]
		if f.like != nil {
			out = append(out, *f.like)
			continue
		}
		c := graph.PrepColumn{Column: f.col.Name, File: len(f.Table.Files) > 0, Width: l.width[i], Words: l.names[i]}
		at, end := l.at[i], l.at[i]+l.width[i]
		if fill != nil && c.Words == nil && fill[at] == fill[at] {
			c.Fill = slices.Clone(fill[at:end])
		}
		if scale != nil && f.Standardize {
			c.Mean, c.Deviation = slices.Clone(scale.Mean[at:end]), slices.Clone(scale.Deviation[at:end])
		}
		out = append(out, c)
	}
	return out
}

// writeFeatures streams the features of a type to the disk, after a pass for means and deviations where they are
// needed.
func (b *build) writeFeatures(k int, d *typeData) error {
	l, err := newLayout(d.plan.features, d.hot)
	if err != nil {
		return err
	}
	l.rows = func() *zip { return newZip(d) }
	l.hot = func(feature, row int) int32 { return d.hot[feature].of[row] }
	fill, scale, err := b.prepare(l, d)
	if err != nil {
		return err
	}
	a, err := b.startFeatures(k, d, l, scale)
	if err != nil {
		return err
	}
	d.prepared = l.prepared(fill, scale)
	filled := int64(0)
	err = b.rows(l, d.ids.n, "write "+cmp.Or(d.plan.Name, "vertices"), func(x []float32, place func(i int) error) error {
		for i, y := range x {
			if y == y {
				continue
			}
			if fill == nil || fill[i%l.dim] != fill[i%l.dim] {
				return place(i)
			}
			x[i] = fill[i%l.dim]
			filled++
		}
		scale.Apply(x)
		return graph.WriteSlice(a, x)
	})
	if err != nil {
		a.Abort()
		return err
	}
	if filled > 0 {
		b.note("%smissing features were filled in: %d", d.prefix(), filled)
	}
	if strange := l.strange(d.hot); strange > 0 {
		b.note("%swords that the preparation does not know, which are rows of zeros: %d", d.prefix(), strange)
	}
	return a.Close()
}

// strange counts the words that a preparation does not know.
func (l *layout) strange(hot []words) (n int) {
	for i := range l.features {
		if l.rank[i] == nil {
			continue
		}
		for _, k := range hot[i].of {
			if k >= 0 && l.rank[i][k] < 0 {
				n++
			}
		}
	}
	return n
}

// startFeatures starts the array of a type's features.
func (b *build) startFeatures(k int, d *typeData, l *layout, scale *graph.Scale) (*graph.ArrayWriter, error) {
	m := &graph.FeatureMeta{Columns: l.columns(), Scale: scale}
	if b.plan.Schema.Untyped {
		b.w.Meta.Features = m
		return b.w.DenseFeatures(graph.Dense, d.ids.n, l.dim)
	}
	b.schema.Types[k].Features = m
	return b.w.TypeFeatureRows(k, graph.Dense, l.dim)
}

// prefix begins notes of a type that has a name.
func (d *typeData) prefix() string {
	if d.plan.Name == "" {
		return ""
	}
	return d.plan.Name + ": "
}

// prepare finds what missing numbers become, NaN where they are refused, and the scale.
func (b *build) prepare(l *layout, d *typeData) (fill []float32, scale *graph.Scale, err error) {
	if fill, scale = l.given(); fill != nil {
		return fill, scale, nil
	}
	if fill = l.refusals(); !l.reads() {
		return fill, nil, nil
	}
	stats, err := b.stats(l, d)
	if err != nil {
		return nil, nil, err
	}
	return fill, l.derive(fill, stats), nil
}

// given are fill and scale of a preparation; nil: there is none.
func (l *layout) given() (fill []float32, scale *graph.Scale) {
	if len(l.features) == 0 || l.features[0].like == nil {
		return nil, nil
	}
	fill = make([]float32, l.dim)
	for i := range l.features {
		c := l.features[i].like
		for k := range l.width[i] {
			at := l.at[i] + k
			if c.Words == nil {
				if fill[at] = nan32; c.Fill != nil {
					fill[at] = c.Fill[k]
				}
			}
			if c.Mean != nil {
				if scale == nil {
					scale = graph.NewScale(l.dim)
				}
				scale.Mean[at], scale.Deviation[at] = c.Mean[k], c.Deviation[k]
			}
		}
	}
	return fill, scale
}

// refusals are NaN for features that may not be missing, and 0 for the others.
func (l *layout) refusals() (fill []float32) {
	fill = make([]float32, l.dim)
	for i := range l.features {
		if m := l.features[i].Missing; (m == "" || m == "error") && l.rank[i] == nil {
			for c := range l.width[i] {
				fill[l.at[i]+c] = nan32
			}
		}
	}
	return fill
}

// reads tells whether something of all rows is to be known before they are written.
func (l *layout) reads() bool {
	return slices.ContainsFunc(l.features, func(f featurePlan) bool { return f.Standardize || f.Missing == "mean" })
}

// derive sets fills that are means, and returns the scale.
func (l *layout) derive(fill []float32, stats *dataset.ColumnStats) (scale *graph.Scale) {
	all := stats.Scale(l.dim)
	for i := range l.features {
		for c := l.at[i]; c < l.at[i]+l.width[i]; c++ {
			if l.features[i].Missing == "mean" && l.rank[i] == nil {
				fill[c] = float32(stats.Mean[c])
			}
			if l.features[i].Standardize {
				if scale == nil {
					scale = graph.NewScale(l.dim)
				}
				scale.Mean[c], scale.Deviation[c] = all.Mean[c], all.Deviation[c]
			}
		}
	}
	return scale
}

// stats are means and deviations over the training vertices, or all where none are.
func (b *build) stats(l *layout, d *typeData) (*dataset.ColumnStats, error) {
	s := dataset.NewColumnStats(l.dim)
	train := d.splits.Train
	v := uint32(0)
	err := b.rows(l, d.ids.n, "read "+cmp.Or(d.plan.Name, "vertices"), func(x []float32, _ func(int) error) error {
		for ; len(x) > 0; x, v = x[l.dim:], v+1 {
			_, chosen := slices.BinarySearch(train, v)
			s.Add(x[:l.dim], chosen || len(train) == 0)
		}
		return nil
	})
	return s, err
}

// rowsAtOnce bounds the numbers that are held.
const rowsAtOnce = 1 << 18

// rows streams the rows of a type, one-hot words among them; missing numbers are NaN. place is the error of a number
// that is missing and must not be.
func (b *build) rows(l *layout, n int, stage string, use func(x []float32, place func(i int) error) error) error {
	z := l.rows()
	defer z.close()
	x := make([]float32, max(1, rowsAtOnce/l.dim)*l.dim)
	for v := 0; v < n; {
		step, err := z.step(min(len(x)/l.dim, n-v))
		if err != nil {
			return err
		}
		if err := l.fill(x[:step*l.dim], v, step, z); err != nil {
			return err
		}
		if err := use(x[:step*l.dim], func(i int) error { return l.missing(z, i/l.dim, i%l.dim) }); err != nil {
			return err
		}
		z.advance(step)
		v += step
		b.report(stage, int64(v), int64(n))
	}
	return z.ended()
}

// fill puts the features of step rows, from vertex v on, into x.
func (l *layout) fill(x []float32, v, step int, z *zip) error {
	clear(x)
	for i := range l.at {
		if l.rank[i] != nil {
			for r := range step {
				if k := l.hot(i, v+r); k >= 0 && l.rank[i][k] >= 0 {
					x[r*l.dim+l.at[i]+int(l.rank[i][k])] = 1
				}
			}
			continue
		}
		c, column := z.of(i)
		values := &c.batch.Columns[column]
		if l.width[i] == 1 && values.Vector == nil {
			for r := range step {
				if x[r*l.dim+l.at[i]] = float32(values.Real[c.at+r]); math.Abs(values.Real[c.at+r]) > math.MaxFloat32 {
					return l.refuse(c, r, i, fmt.Sprint(values.Real[c.at+r]), "a number that a float32 can hold",
						"correct it")
				}
			}
			continue
		}
		if values.Width != l.width[i] {
			return l.refuse(c, 0, i, fmt.Sprintf("vectors of %d", values.Width), fmt.Sprintf("%d, as in the first row",
				l.width[i]),
				"write vectors of one width")
		}
		for r := range step {
			copy(x[r*l.dim+l.at[i]:], values.Vector[(c.at+r)*l.width[i]:(c.at+r+1)*l.width[i]])
		}
	}
	return nil
}

func (l *layout) refuse(c *cursor, row, feature int, found, want, fix string) error {
	name := l.features[feature].col.Name
	return place{c.batch.File, fmt.Sprintf("%s, column %s", c.batch.Place(c.at+row), name)}.wrong(found, want, fix)
}

// missing is the error of a number that is missing.
func (l *layout) missing(z *zip, row, at int) error {
	i, found := slices.BinarySearch(l.at, at)
	if !found {
		i--
	}
	c, _ := z.of(i)
	return l.refuse(c, row, i, "a missing value", "a finite number",
		"fill it in, or add missing: zero or missing: mean to the column or the type")
}

// zip reads the tables of a type's features side by side.
type zip struct {
	d       *typeData
	cursors []*cursor
	place   [][2]int // of each feature: cursor, and column in its batches
}

// cursor is a place in a table.
type cursor struct {
	table *table.Table
	want  []table.Want
	next  func() (*table.Batch, error, bool)
	stop  func()
	batch *table.Batch
	at    int
	rows  int64
}

func newZip(d *typeData) *zip {
	z := &zip{d: d, place: make([][2]int, len(d.plan.features))}
	for i := range d.plan.features {
		f := &d.plan.features[i]
		if f.OneHot {
			continue
		}
		at := slices.IndexFunc(z.cursors, func(c *cursor) bool { return c.table == f.table })
		if at < 0 {
			at = len(z.cursors)
			z.cursors = append(z.cursors, &cursor{table: f.table})
		}
		c := z.cursors[at]
		z.place[i] = [2]int{at, len(c.want)}
		c.want = append(c.want, table.Want{Name: f.col.Name, As: f.as()})
	}
	for _, c := range z.cursors {
		c.next, c.stop = iter.Pull2(c.batches())
	}
	return z
}

// batches are a table's, in order; the error is with the last.
func (c *cursor) batches() iter.Seq2[*table.Batch, error] {
	return func(yield func(*table.Batch, error) bool) {
		err := c.table.Read(c.want, func(b *table.Batch) error {
			if !yield(b, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(nil, err)
		}
	}
}

var errStopped = fmt.Errorf("stopped")

func (z *zip) of(feature int) (*cursor, int) {
	p := z.place[feature]
	return z.cursors[p[0]], p[1]
}

// step is how many rows all tables have at hand, at most most.
func (z *zip) step(most int) (int, error) {
	for _, c := range z.cursors {
		for c.batch == nil || c.at == c.batch.Rows {
			b, err, ok := c.next()
			if err != nil {
				return 0, err
			}
			if !ok {
				return 0, z.d.aligned(c.table, c.rows)
			}
			c.batch, c.at = b, 0
		}
		most = min(most, c.batch.Rows-c.at)
	}
	return most, nil
}

func (z *zip) advance(rows int) {
	for _, c := range z.cursors {
		c.at += rows
		c.rows += int64(rows)
	}
}

// ended refuses tables with more rows than vertices.
func (z *zip) ended() error {
	for _, c := range z.cursors {
		if c.at < c.batch.Rows {
			return z.d.aligned(c.table, c.rows+int64(c.batch.Rows-c.at))
		}
		if b, err, ok := c.next(); err != nil || ok {
			if err != nil {
				return err
			}
			return z.d.aligned(c.table, c.rows+int64(b.Rows))
		}
	}
	return nil
}

func (z *zip) close() {
	for _, c := range z.cursors {
		c.stop()
	}
}
