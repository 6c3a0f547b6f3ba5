package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// parquetNodes is a vertex table in the order of its rows.
type parquetNodes struct {
	path   string
	ints   []int64  // ids,
	texts  []string // or names
	labels labelTable
	marks  []float32
	cols   int // marks a row
	split  []string
	masks  [3][]bool
	values []float32
	dim    int
}

func readParquetNodes(paths []string) (*parquetNodes, error) {
	n := &parquetNodes{path: paths[0]}
	for _, path := range paths {
		p, err := openParquet(path)
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
func (n *parquetNodes) add(p *parquetFile) error {
	id, label, split := p.find("id", "node_id", "node", "vertex", "name"), p.find("label", "labels", "y", "class"), p.find("split", "role")
	if id == nil || !id.whole() && !id.text() {
		return p.bad("columns", p.names(), "a column id of whole numbers or text")
	}
	masks := [3]*parquetColumn{p.find("train_mask"), p.find("val_mask", "valid_mask"), p.find("test_mask")}
	features := n.featureColumns(p, append([]*parquetColumn{id, label, split}, masks[:]...))
	for g := range p.pf.RowGroups() {
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
			if err := p.cells(g, split, func(c parquetCell) error {
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
			if err := p.cells(g, mask, func(c parquetCell) error {
				n.masks[i] = append(n.masks[i], c.whole != 0)
				return nil
			}); err != nil {
				return err
			}
		}
		if err := n.addFeatures(p, g, features, rows); err != nil {
			return err
		}
	}
	return nil
}

// featureColumns is the list of features, or every other column of numbers.
func (n *parquetNodes) featureColumns(p *parquetFile, used []*parquetColumn) (out []*parquetColumn) {
	if c := p.find(featureNames...); c != nil && c.list && c.number() {
		return []*parquetColumn{c}
	}
	for i := range p.cols {
		if c := &p.cols[i]; !c.list && c.number() && !slices.Contains(used, c) {
			out = append(out, c)
		}
	}
	return out
}

func (n *parquetNodes) addIDs(p *parquetFile, g int, c *parquetColumn) error {
	if c.whole() && n.texts == nil {
		return p.ints(g, c, func(x []int64) error {
			n.ints = append(n.ints, x...)
			return nil
		})
	}
	if n.ints != nil || !c.text() {
		return p.bad(c.name, "numbers in one table and text in another", "one kind of id")
	}
	return p.cells(g, c, func(x parquetCell) error {
		if x.missing || strings.ContainsRune(string(x.text), '\n') {
			return p.bad(c.name, "a missing value, or a name with a line break", "an id in every row")
		}
		n.texts = append(n.texts, string(x.text))
		return nil
	})
}

// addLabels reads classes, their names, or lists of marks. A missing one is no label.
func (n *parquetNodes) addLabels(p *parquetFile, g int, c *parquetColumn, rows int) error {
	if c.list {
		marks := len(n.marks)
		if err := p.cells(g, c, func(x parquetCell) error {
			if x.missing {
				return p.bad(c.name, "a missing list", "0 or 1 for each class, in every row")
			}
			n.marks = append(n.marks, float32(x.real))
			return nil
		}); err != nil {
			return err
		}
		got := len(n.marks) - marks
		if rows > 0 && (got%rows != 0 || n.cols != 0 && got/rows != n.cols || got == 0) {
			return p.bad(c.name, fmt.Sprintf("%d marks in %d rows", got, rows), "as many in every row")
		}
		n.cols = max(n.cols, got/max(rows, 1))
		return nil
	}
	return p.cells(g, c, func(x parquetCell) error {
		label := ""
		switch {
		case x.missing || x.real != x.real:
		case x.text != nil:
			label = string(x.text)
		default:
			label = strconv.FormatFloat(x.real, 'f', -1, 64)
		}
		n.labels.labels = append(n.labels.labels, label)
		return nil
	})
}

// splitName spells splits one way: train, val, test, or nothing.
func splitName(c parquetCell) string {
	if c.missing {
		return ""
	}
	if c.text == nil {
		return map[int64]string{0: "train", 1: "val", 2: "test"}[c.whole]
	}
	switch s := strings.ToLower(string(c.text)); s {
	case "valid", "validation", "dev", "va":
		return "val"
	case "tr":
		return "train"
	case "te":
		return "test"
	default:
		return s
	}
}

// addFeatures reads the rows of a row group: one list, or columns side by side.
func (n *parquetNodes) addFeatures(p *parquetFile, g int, cols []*parquetColumn, rows int) error {
	if len(cols) == 0 || rows == 0 {
		return nil
	}
	finite := func(c *parquetColumn, x parquetCell) error {
		if x.missing || math.IsNaN(x.real) || math.IsInf(x.real, 0) || math.Abs(x.real) > math.MaxFloat32 {
			return p.bad(c.name, "a missing value, NaN or infinity", "finite numbers")
		}
		return nil
	}
	start := len(n.values)
	if cols[0].list {
		row, width := -1, 0
		if err := p.cells(g, cols[0], func(x parquetCell) error {
			if x.first {
				if row++; row > 0 && n.dim == 0 {
					n.dim = width
				}
				if row > 0 && width != n.dim {
					return p.bad(cols[0].name, fmt.Sprintf("a list of %d", width), fmt.Sprintf("%d, as in the first row", n.dim))
				}
				width = 0
			}
			width++
			n.values = append(n.values, float32(x.real))
			return finite(cols[0], x)
		}); err != nil {
			return err
		}
		if n.dim == 0 {
			n.dim = width
		}
	} else {
		n.dim = len(cols)
		n.values = append(n.values, make([]float32, rows*n.dim)...)
		for k, c := range cols {
			row := 0
			if err := p.cells(g, c, func(x parquetCell) error {
				if row < rows {
					n.values[start+row*n.dim+k] = float32(x.real)
				}
				row++
				return finite(c, x)
			}); err != nil {
				return err
			}
			if row != rows {
				return p.bad(c.name, fmt.Sprintf("%d values", row), fmt.Sprintf("one in each of %d rows", rows))
			}
		}
	}
	if len(n.values)-start != rows*n.dim {
		return p.bad(cols[0].name, fmt.Sprintf("%d numbers in %d rows", len(n.values)-start, rows), fmt.Sprintf("%d a row", n.dim))
	}
	return nil
}

// small tells whether all ids fit the numbers of edge lists.
func (n *parquetNodes) small() bool {
	return !slices.ContainsFunc(n.ints, func(x int64) bool { return uint64(x) >= math.MaxUint32 })
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
		out[i] = strconv.FormatInt(x, 10)
	}
	return out
}

// attach puts rows in the order of the vertices.
func (n *parquetNodes) attach(r *read, ids *idMap, opt ImportOptions) error {
	vertex, err := n.vertices(ids)
	if err != nil {
		return err
	}
	for name, rows := range map[string]int{"label": len(n.labels.labels), "split": len(n.split), "train_mask": len(n.masks[0]), "val_mask": len(n.masks[1]), "test_mask": len(n.masks[2])} {
		if rows != 0 && rows != len(vertex) {
			return badFile(n.path, name, fmt.Sprintf("%d values", rows), fmt.Sprintf("one a row (%d)", len(vertex)), "give every table the same columns")
		}
	}
	if n.dim > 0 && len(n.values) != len(vertex)*n.dim {
		return badFile(n.path, "features", fmt.Sprintf("%d numbers", len(n.values)), fmt.Sprintf("%d a row", n.dim), "give every table the same columns")
	}
	if n.dim > 0 {
		permuteRows(n.values, n.dim, vertex)
		r.features = &graph.Features{Rows: ids.n, Cols: n.dim, F32: n.values}
	}
	if err := n.attachLabels(r, vertex, ids.n, opt.Task); err != nil {
		return err
	}
	return n.attachSplits(r, vertex, opt)
}

// vertices is the vertex of every row; each must have exactly one.
func (n *parquetNodes) vertices(ids *idMap) ([]uint32, error) {
	vertex := make([]uint32, n.rows())
	seen := make([]bool, ids.n)
	for i := range vertex {
		var name string
		if n.texts != nil {
			name = n.texts[i]
		} else {
			name = strconv.FormatInt(n.ints[i], 10)
		}
		v, ok := ids.find(name)
		if !ok || seen[v] {
			return nil, badFile(n.path, fmt.Sprintf("row %d", i), fmt.Sprintf("id %.40q", name), "each vertex once", "drop repeats from the table (or give a larger --nodes)")
		}
		vertex[i], seen[v] = v, true
	}
	if v := slices.Index(seen, false); v >= 0 {
		name := fmt.Sprint(v)
		if ids.ints != nil {
			name = fmt.Sprint(ids.ints[v])
		} else if ids.texts != nil {
			name = ids.texts[v]
		}
		return nil, badFile(n.path, "id", fmt.Sprintf("no row for %.40q, which an edge names", name), "a row for every vertex", "add the row or drop its edges")
	}
	return vertex, nil
}

// predicted tells whether lists of labels are numbers to predict.
func (n *parquetNodes) predicted(task string) bool {
	return task == regression || task == "" && slices.ContainsFunc(n.marks, func(x float32) bool { return fraction(float64(x)) })
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
			return badFile(n.path, "label", "lists of one", "a number, or a list of 0/1 of several classes", "save the column as numbers")
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
	class, err := n.labels.numbering(&r.notes)
	if err != nil {
		return err
	}
	l := &graph.Labels{Class: make([]int32, count)}
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
	if r.splits.Empty() && r.labels != nil {
		r.splits, err = opt.Split.or(edgeSplit).split(r.labels, opt.Seed)
	}
	return err
}

// permuteRows moves row i to row to[i], following each circle.
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
