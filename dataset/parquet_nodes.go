package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// parquetNodes is a vertex table in the order of its rows.
type parquetNodes struct {
	path   string
	ints   []int64                    // ids,
	called func([]byte, int64) []byte // their names,
	texts  []string                   // or names
	labels labelTable
	marks  []float32
	cols   int // marks per row
	split  []string
	masks  [3][]bool
	values []float32
	dim    int
	unused []string // columns

	missing string     // one of missingChoices
	oneHot  []string   // columns of words
	words   []category // their values, in the same order
	columns []string   // names of the features; nil: they are a list
}

func readParquetNodes(paths []string, opt ImportOptions) (*parquetNodes, error) {
	n := &parquetNodes{path: paths[0], missing: opt.Missing, oneHot: opt.OneHot}
	for _, name := range opt.OneHot {
		n.words = append(n.words, newCategory(name))
	}
	for _, path := range paths {
		p, err := table.OpenParquet(path)
		if err != nil {
			return nil, err
		}
		err = n.add(p)
		p.Close()
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *parquetNodes) rows() int { return max(len(n.ints), len(n.texts)) }

var featureNames = []string{"features", "feat", "feature", "x", "embedding", "embeddings"}

// add reads one table, row group by row group.
func (n *parquetNodes) add(p *table.Parquet) error {
	id, label, split := p.Find("id", "node_id", "node", "vertex", "name"), p.Find("label", "labels", "y",
		"class"), p.Find("split", "role")
	if id == nil || !id.Whole() && !id.Text() {
		return p.Bad("columns", p.Names(), "a column id of whole numbers or text")
	}
	masks := [3]*table.ParquetColumn{p.Find("train_mask"), p.Find("val_mask", "valid_mask"), p.Find("test_mask")}
	used := append([]*table.ParquetColumn{id, label, split}, masks[:]...)
	words, err := n.wordColumns(p)
	if err != nil {
		return err
	}
	features, err := n.featureColumns(p, append(used, words...))
	if err != nil {
		return err
	}
	for g := range p.File.RowGroups() {
		before := n.rows()
		if err := n.addIDs(p, g, id); err != nil {
			return err
		}
		rows := n.rows() - before
		if label != nil {
			if err := n.addLabels(p, g, label, rows); err != nil {
				return err
			}
		}
		if split != nil {
			if err := p.Cells(g, split, func(c table.Cell) error {
				n.split = append(n.split, splitName(c))
				return nil
			}); err != nil {
				return err
			}
		}
		for i, mask := range masks {
			if mask == nil {
				continue
			}
			if err := p.Cells(g, mask, func(c table.Cell) error {
				n.masks[i] = append(n.masks[i], !c.Missing && c.Real != 0)
				return nil
			}); err != nil {
				return err
			}
		}
		if err := n.addFeatures(p, g, features, rows); err != nil {
			return err
		}
		if err := n.addWords(p, g, words); err != nil {
			return err
		}
	}
	return nil
}

// wordColumns returns the columns that oneHot names.
func (n *parquetNodes) wordColumns(p *table.Parquet) (out []*table.ParquetColumn, err error) {
	for _, name := range n.oneHot {
		c := p.Find(name)
		if c == nil || c.List {
			return nil, p.Bad("--one-hot", fmt.Sprintf("no column %.40q of single values", name), "one of "+p.Names())
		}
		out = append(out, c)
	}
	return out, nil
}

// addWords reads the columns of words of a row group.
func (n *parquetNodes) addWords(p *table.Parquet, g int, cols []*table.ParquetColumn) error {
	for i, c := range cols {
		if err := p.Cells(g, c, func(x table.Cell) error {
			switch {
			case x.Missing || x.Real != x.Real:
				n.words[i].add("")
			case x.Text != nil:
				n.words[i].add(string(x.Text))
			default:
				n.words[i].add(strconv.FormatFloat(x.Real, 'f', -1, 64))
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// feature checks a number of the features. One that is missing is NaN, where that is allowed.
func (n *parquetNodes) feature(p *table.Parquet, c *table.ParquetColumn, row int, x table.Cell) (float32, error) {
	found, fix := strconv.FormatFloat(x.Real, 'g', -1, 64), "correct it"
	if x.Missing || x.Real != x.Real {
		if n.missing == missingZero || n.missing == missingMean {
			return float32(math.NaN()), nil
		}
		found, fix = "a missing value", "fill it in, or give --missing zero or --missing mean"
	} else if math.Abs(x.Real) <= math.MaxFloat32 {
		return float32(x.Real), nil
	}
	return 0, badFile(p.Path, fmt.Sprintf("row %d, column %.40s", row, c.Name), found, "a finite number", fix)
}

// featureColumns is the list of features, or every other column of numbers.
func (n *parquetNodes) featureColumns(p *table.Parquet, used []*table.ParquetColumn) (out []*table.ParquetColumn, err error) {
	if c := p.Find(featureNames...); c != nil && c.List {
		if out = append(out, c); !c.Number() {
			return nil, p.Bad(c.Name, fmt.Sprintf("lists of %s", c.Kind), "lists of numbers")
		}
	}
	listed := len(out) > 0
	n.columns = nil
	for i := range p.Cols {
		switch c := &p.Cols[i]; {
		case slices.Contains(used, c) || slices.Contains(out, c):
		case !listed && !c.List && c.Number():
			out, n.columns = append(out, c), append(n.columns, c.Name)
		case !slices.Contains(n.unused, c.Name):
			n.unused = append(n.unused, c.Name)
		}
	}
	return out, nil
}

func (n *parquetNodes) addIDs(p *table.Parquet, g int, c *table.ParquetColumn) error {
	if c.Whole() && n.texts == nil {
		n.called = c.ID
		return p.Ints(g, c, func(x []int64) error {
			n.ints = append(n.ints, x...)
			return nil
		})
	}
	if n.ints != nil || !c.Text() {
		return p.Bad(c.Name, "numbers in one table and text in another", "one kind of id")
	}
	return p.Cells(g, c, func(x table.Cell) error {
		if x.Missing || strings.ContainsRune(string(x.Text), '\n') {
			return p.Bad(c.Name, "a missing value, or a name with a line break", "an id in every row")
		}
		n.texts = append(n.texts, string(x.Text))
		return nil
	})
}

// addLabels reads classes, their names, or lists of marks. A missing one is no label.
func (n *parquetNodes) addLabels(p *table.Parquet, g int, c *table.ParquetColumn, rows int) error {
	if c.List {
		return p.Lists(g, c, rows, &n.cols, &n.marks, func(row int, x table.Cell) (float32, error) {
			if x.Missing {
				return 0, p.Bad(c.Name, fmt.Sprintf("a missing list or number in row %d", row), "lists of finite numbers")
			}
			return float32(x.Real), nil
		})
	}
	return p.Cells(g, c, func(x table.Cell) error {
		label := ""
		switch {
		case x.Missing || x.Real != x.Real:
		case x.Text != nil:
			label = string(x.Text)
		default:
			label = strconv.FormatFloat(x.Real, 'f', -1, 64)
		}
		n.labels.labels = append(n.labels.labels, label)
		return nil
	})
}

// splitName normalizes the name of a split: train, val, test, or nothing.
func splitName(c table.Cell) string {
	if c.Missing {
		return ""
	}
	if c.Text == nil {
		if name, ok := map[float64]string{0: "train", 1: "val", 2: "test"}[c.Real]; ok {
			return name
		}
		return strconv.FormatFloat(c.Real, 'g', -1, 64)
	}
	return SplitName(string(c.Text))
}

// addFeatures reads the rows of a row group: one list, or several columns.
func (n *parquetNodes) addFeatures(p *table.Parquet, g int, cols []*table.ParquetColumn, rows int) error {
	if len(cols) == 0 || rows == 0 {
		return nil
	}
	before := n.rows() - rows
	if cols[0].List {
		return p.Lists(g, cols[0], rows, &n.dim, &n.values, func(row int, x table.Cell) (float32, error) {
			return n.feature(p, cols[0], before+row, x)
		})
	}
	if n.dim != 0 && n.dim != len(cols) {
		return p.Bad("columns", fmt.Sprintf("%d of features", len(cols)), fmt.Sprintf("%d, as in other tables", n.dim))
	}
	start := len(n.values)
	n.dim = len(cols)
	n.values = append(n.values, make([]float32, rows*n.dim)...)
	for k, c := range cols {
		row := 0
		if err := p.Cells(g, c, func(x table.Cell) error {
			y, err := n.feature(p, c, before+row, x)
			if err != nil {
				return err
			}
			if row < rows {
				n.values[start+row*n.dim+k] = y
			}
			row++
			return nil
		}); err != nil {
			return err
		}
		if row != rows {
			return p.Bad(c.Name, event.Tally(row, "value"), fmt.Sprintf("one in each of %s",
				event.Tally(rows, "row")))
		}
	}
	return nil
}

// small tells whether all ids fit the numbers of edge lists.
func (n *parquetNodes) small() bool {
	return !slices.ContainsFunc(n.ints, func(x int64) bool { return uint64(x) >= math.MaxUint32 })
}

// match refuses ids none of which an edge names.
func (n *parquetNodes) match(e *edges, inEdges *ranks) error {
	if e.total == 0 || len(n.ints) == 0 ||
		slices.ContainsFunc(n.ints, func(x int64) bool { return inEdges.has(uint32(x)) }) {
		return nil
	}
	return badFile(n.path, "id", fmt.Sprintf("%d and %d others, none of which is an id of the edges (as %d is)", n.ints[0],
		len(n.ints)-1, inEdges.list()[0]), "the same ids as in the edges", "write ids the same way in both tables")
}

func (n *parquetNodes) numbers() []uint32 {
	out := make([]uint32, len(n.ints))
	for i, x := range n.ints {
		out[i] = uint32(x)
	}
	return out
}

// names is the ids as text.
func (n *parquetNodes) names() []string {
	if n.texts != nil {
		return n.texts
	}
	out := make([]string, len(n.ints))
	for i, x := range n.ints {
		out[i] = string(n.called(nil, x))
	}
	return out
}

// attach sorts rows by vertex.
func (n *parquetNodes) attach(r *read, ids *idMap, opt ImportOptions) error {
	vertex, err := n.vertices(ids)
	if err != nil {
		return err
	}
	for name, rows := range map[string]int{"label": len(n.labels.labels), "split": len(n.split),
		"train_mask": len(n.masks[0]), "val_mask": len(n.masks[1]), "test_mask": len(n.masks[2])} {
		if rows != 0 && rows != len(vertex) {
			return badFile(n.path, name, event.Tally(rows, "value"), fmt.Sprintf("one per row (%d)", len(vertex)),
				"give every table the same columns")
		}
	}
	if n.dim > 0 && len(n.values) != len(vertex)*n.dim {
		return badFile(n.path, "features", event.Tally(len(n.values), "number"), fmt.Sprintf("%d per row", n.dim),
			"give every table the same columns")
	}
	if err := n.attachFeatures(r, vertex, ids.n); err != nil {
		return err
	}
	if len(n.unused) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("columns that are not used: %.200s", strings.Join(n.unused, ", ")))
	}
	if err := n.attachLabels(r, vertex, ids.n, opt.Task); err != nil {
		return err
	}
	return n.attachSplits(r, vertex, opt)
}

func (n *parquetNodes) attachFeatures(r *read, vertex []uint32, count int) error {
	for i := range n.words {
		if len(n.words[i].codes) != len(vertex) {
			return badFile(n.path, n.oneHot[i], event.Tally(len(n.words[i].codes), "value"),
				fmt.Sprintf("one per row (%d)", len(vertex)), "give every table the same columns")
		}
	}
	switch {
	case len(n.words) > 0:
		return r.attachFeatures(n.path, n.values, n.dim, n.words, n.columns, vertex, count)
	case n.dim > 0:
		permuteRows(n.values, n.dim, vertex)
		r.features, r.columns = &graph.Features{Rows: count, Cols: n.dim, F32: n.values}, n.columns
	}
	return nil
}

// vertices is the vertex of every row; each must have exactly one.
func (n *parquetNodes) vertices(ids *idMap) ([]uint32, error) {
	vertex := make([]uint32, n.rows())
	seen := make([]bool, ids.n)
	names := n.names()
	for i := range vertex {
		name := names[i]
		v, ok := ids.find(name)
		if !ok || seen[v] {
			return nil, badFile(n.path, fmt.Sprintf("row %d", i), fmt.Sprintf("id %.40q", name), "each vertex once",
				"drop repeats from the table (or give a larger --nodes)")
		}
		vertex[i], seen[v] = v, true
	}
	return vertex, n.absent(ids, seen)
}

// absent refuses vertices without a row.
func (n *parquetNodes) absent(ids *idMap, seen []bool) error {
	missing, few := 0, []string{}
	for v, ok := range seen {
		if !ok {
			if missing++; missing <= 3 {
				few = append(few, fmt.Sprintf("%.40q", ids.name(v)))
			}
		}
	}
	if missing == 0 {
		return nil
	}
	found := fmt.Sprintf("no row for %d of the vertices that edges name, as %s", missing, strings.Join(few, ", "))
	return badFile(n.path, "id", found, "a row for every vertex", "add the rows or drop their edges")
}

// predicted tells whether lists of labels are numbers to predict.
func (n *parquetNodes) predicted(task string) bool {
	return task == regression || task == "" &&
		slices.ContainsFunc(n.marks, func(x float32) bool { return fraction(float64(x)) })
}

func (n *parquetNodes) attachLabels(r *read, vertex []uint32, count int, task string) (err error) {
	switch {
	case n.cols > 0 && n.predicted(task):
		permuteRows(n.marks, n.cols, vertex)
		if r.labels = targets(n.marks, n.cols); task == "" {
			r.notes = append(r.notes, fractions)
		}
		return nil
	case n.cols > 0:
		permuteRows(n.marks, n.cols, vertex)
		l := labelRows{file: n.path}
		if n.cols == 1 {
			return badFile(n.path, "label", "lists of one", "a number, or a list of 0/1 of several classes",
				"save the column as numbers")
		}
		if err := l.add(n.marks, n.cols, count); err != nil {
			return err
		}
		r.labels, err = l.labels(count)
		return err
	case len(n.labels.labels) == 0:
		return nil
	}
	n.labels.path = n.path
	yes, err := n.labels.regression(task, &r.notes)
	if err != nil {
		return err
	}
	if yes {
		x := n.labels.numbers()
		permuteRows(x, 1, vertex)
		r.labels = targets(x, 1)
		return nil
	}
	class, names, err := n.labels.numbering()
	if err != nil {
		return err
	}
	l := &graph.Labels{Class: make([]int32, count), Names: names}
	for i, v := range vertex {
		l.Class[v] = class[n.labels.labels[i]]
		l.Classes = max(l.Classes, int(l.Class[v])+1)
	}
	if l.Classes > 0 {
		r.labels = l
	}
	return nil
}

func (n *parquetNodes) attachSplits(r *read, vertex []uint32, opt ImportOptions) (err error) {
	in := func(v uint32) bool { return r.labels == nil || r.labels.Has(int(v)) }
	all := []*[]uint32{&r.splits.Train, &r.splits.Val, &r.splits.Test}
	for i, v := range vertex {
		for k, name := range []string{"train", "val", "test"} {
			if (len(n.split) > 0 && n.split[i] == name || len(n.masks[k]) > 0 && n.masks[k][i]) && in(v) {
				*all[k] = append(*all[k], v)
			}
		}
	}
	for _, ids := range all {
		slices.Sort(*ids)
	}
	if others := n.otherSplits(); len(others) > 0 {
		if len(r.splits.Train) == 0 {
			return badFile(n.path, "split", fmt.Sprintf("%.60q and no train", others),
				"train, val and test, or 0, 1 and 2", "rename them")
		}
		r.notes = append(r.notes, fmt.Sprintf("vertices of split %.60q are in none", others))
	}
	if r.splits.Empty() && r.labels != nil {
		r.splits, err = opt.Split.or(UsualSplit).split(r.labels, opt.Seed)
	}
	return err
}

// otherSplits are values of the column of splits that are not known.
func (n *parquetNodes) otherSplits() (others []string) {
	for _, s := range n.split {
		if s != "train" && s != "val" && s != "test" && s != "" && !slices.Contains(others, s) && len(others) < 5 {
			others = append(others, s)
		}
	}
	return others
}

// permuteRows moves row i to row to[i], following each cycle.
func permuteRows(x []float32, cols int, to []uint32) {
	if slices.IsSorted(to) {
		return
	}
	to = slices.Clone(to)
	row := func(i uint32) []float32 { return x[int(i)*cols : (int(i)+1)*cols] }
	held := make([]float32, cols)
	for i := range to {
		for to[i] != uint32(i) {
			j := to[i]
			copy(held, row(j))
			copy(row(j), row(uint32(i)))
			copy(row(uint32(i)), held)
			to[i], to[j] = to[j], j
		}
	}
}
