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
	ints   []int64                    // ids,
	called func([]byte, int64) []byte // what they are called,
	texts  []string                   // or names
	labels labelTable
	marks  []float32
	cols   int // marks a row
	split  []string
	masks  [3][]bool
	values []float32
	dim    int
	unused []string // columns
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
	features, err := n.featureColumns(p, append([]*parquetColumn{id, label, split}, masks[:]...))
	if err != nil {
		return err
	}
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
				n.masks[i] = append(n.masks[i], !c.missing && c.real != 0)
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
func (n *parquetNodes) featureColumns(p *parquetFile, used []*parquetColumn) (out []*parquetColumn, err error) {
	if c := p.find(featureNames...); c != nil && c.list {
		if out = append(out, c); !c.number() {
			return nil, p.bad(c.name, fmt.Sprintf("lists of %s", c.kind), "lists of numbers")
		}
	}
	listed := len(out) > 0
	for i := range p.cols {
		switch c := &p.cols[i]; {
		case slices.Contains(used, c) || slices.Contains(out, c):
		case !listed && !c.list && c.number():
			out = append(out, c)
		case !slices.Contains(n.unused, c.name):
			n.unused = append(n.unused, c.name)
		}
	}
	return out, nil
}

func (n *parquetNodes) addIDs(p *parquetFile, g int, c *parquetColumn) error {
	if c.whole() && n.texts == nil {
		n.called = c.id
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

// lists reads a column of lists, rows of them and each of dim numbers, which is that of
// the first if it is 0.
func (p *parquetFile) lists(g int, c *parquetColumn, rows int, dim *int, values *[]float32, ok func(x parquetCell) bool) error {
	row, width := 0, 0
	end := func() error {
		if *dim == 0 {
			*dim = width
		}
		if width != *dim {
			return p.bad(c.name, fmt.Sprintf("a list of %d", width), fmt.Sprintf("%d, as in the first row", *dim))
		}
		width = 0
		return nil
	}
	err := p.cells(g, c, func(x parquetCell) error {
		if x.first {
			if row++; row > 1 {
				if err := end(); err != nil {
					return err
				}
			}
		}
		width++
		if *values = append(*values, float32(x.real)); x.missing || !ok(x) {
			return p.bad(c.name, "a missing list or number, NaN or infinity", "lists of finite numbers")
		}
		return nil
	})
	if err == nil && row > 0 {
		err = end()
	}
	if err == nil && row != rows {
		err = p.bad(c.name, fmt.Sprintf("%d lists", row), fmt.Sprintf("one in each of %d rows", rows))
	}
	return err
}

// addLabels reads classes, their names, or lists of marks. A missing one is no label.
func (n *parquetNodes) addLabels(p *parquetFile, g int, c *parquetColumn, rows int) error {
	if c.list {
		return p.lists(g, c, rows, &n.cols, &n.marks, func(parquetCell) bool { return true })
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
		if name, ok := map[float64]string{0: "train", 1: "val", 2: "test"}[c.real]; ok {
			return name
		}
		return strconv.FormatFloat(c.real, 'g', -1, 64)
	}
	switch s := strings.ToLower(string(c.text)); s {
	case "valid", "validation", "dev", "va":
		return "val"
	case "tr", "training":
		return "train"
	case "te", "testing":
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
	finite := func(x parquetCell) bool { return math.Abs(x.real) <= math.MaxFloat32 }
	if cols[0].list {
		return p.lists(g, cols[0], rows, &n.dim, &n.values, finite)
	}
	if n.dim != 0 && n.dim != len(cols) {
		return p.bad("columns", fmt.Sprintf("%d of features", len(cols)), fmt.Sprintf("%d, as in other tables", n.dim))
	}
	start := len(n.values)
	n.dim = len(cols)
	n.values = append(n.values, make([]float32, rows*n.dim)...)
	for k, c := range cols {
		row := 0
		if err := p.cells(g, c, func(x parquetCell) error {
			if x.missing || !finite(x) {
				return p.bad(c.name, "a missing value, NaN or infinity", "finite numbers")
			}
			if row < rows {
				n.values[start+row*n.dim+k] = float32(x.real)
			}
			row++
			return nil
		}); err != nil {
			return err
		}
		if row != rows {
			return p.bad(c.name, fmt.Sprintf("%d values", row), fmt.Sprintf("one in each of %d rows", rows))
		}
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
		out[i] = string(n.called(nil, x))
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
	if len(n.unused) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("columns that are not used: %.200s", strings.Join(n.unused, ", ")))
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
	names := n.names()
	for i := range vertex {
		name := names[i]
		v, ok := ids.find(name)
		if !ok || seen[v] {
			return nil, badFile(n.path, fmt.Sprintf("row %d", i), fmt.Sprintf("id %.40q", name), "each vertex once", "drop repeats from the table (or give a larger --nodes)")
		}
		vertex[i], seen[v] = v, true
	}
	if v := slices.Index(seen, false); v >= 0 {
		return nil, badFile(n.path, "id", fmt.Sprintf("no row for %.40q, which an edge names", ids.name(v)), "a row for every vertex", "add the row or drop its edges")
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
	if others := n.otherSplits(); len(others) > 0 {
		if len(r.splits.Train) == 0 {
			return badFile(n.path, "split", fmt.Sprintf("%.60q and no train", others), "train, val and test, or 0, 1 and 2", "rename them")
		}
		r.notes = append(r.notes, fmt.Sprintf("vertices of split %.60q are in none", others))
	}
	if r.splits.Empty() && r.labels != nil {
		r.splits, err = opt.Split.or(edgeSplit).split(r.labels, opt.Seed)
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
