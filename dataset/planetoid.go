package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// Planetoid files (Cora, CiteSeer, PubMed): a folder with ind.NAME.*.
//
//	x, tx, allx     scipy CSR features: training, test, all but test
//	y, ty, ally     one-hot labels of the same
//	graph           {vertex: [neighbours]}
//	test.index      row i of tx belongs to the vertex on line i
//
// Vertices 0..len(allx)-1 are the rows of allx. The first len(y) train, the next 500
// validate, those in test.index test. CiteSeer has vertices in neither: they get
// zero features and no label.
//
// Z. Yang, W. Cohen, R. Salakhutdinov: Revisiting semi-supervised learning with
// graph embeddings, 2016.

const (
	planetoidVal   = 500
	maxPickleBytes = 4 << 30
	planetoidFix   = "the file is damaged or of another dataset: download it again"
)

func readPlanetoid(dir string, opt ImportOptions) (*read, error) {
	name, err := planetoidName(dir, opt.Name)
	if err != nil {
		return nil, err
	}
	p := planetoid{dir: dir, name: name}
	r := &read{name: name}
	test, err := p.testIndex()
	if err != nil {
		return nil, err
	}
	var x, tx, allx *graph.Features
	var y, ty, ally []int32
	var classes [3]int
	for i, part := range []struct {
		suffix string
		f      **graph.Features
		l      *[]int32
	}{{"x", &x, &y}, {"tx", &tx, &ty}, {"allx", &allx, &ally}} {
		if *part.f, err = p.features(part.suffix); err != nil {
			return nil, err
		}
		labelFile := strings.Replace(part.suffix, "x", "y", 1)
		if *part.l, classes[i], err = p.labels(labelFile); err != nil {
			return nil, err
		}
		if a, b := (*part.f).Rows, len(*part.l); a != b {
			return nil, p.bad(labelFile, event.Tally(b, "row"),
				fmt.Sprintf("%d, as in ind.%s.%s", a, name, part.suffix))
		}
		if (*part.f).Cols != x.Cols || classes[i] != classes[0] {
			return nil, p.bad(part.suffix, fmt.Sprintf("%s and %s", event.Tally((*part.f).Cols, "feature"),
				event.Tally(classes[i], "class")),
				"as many as in the other files")
		}
	}
	n, err := p.place(test, tx.Rows, allx.Rows)
	if err != nil {
		return nil, err
	}
	r.features = stackRows(n, allx, tx, test)
	r.labels = &graph.Labels{Classes: classes[0], Class: stackLabels(n, ally, ty, test)}
	if r.splits, err = p.splits(len(y), allx.Rows, test); err != nil {
		return nil, err
	}
	src, dst, err := p.edges(n)
	if err != nil {
		return nil, err
	}
	opt.Symmetrize = true
	return r, r.build(n, src, dst, nil, opt)
}

// planetoidName is the given name, or the name of the only dataset in the folder.
func planetoidName(dir, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	found := matching(dir, "ind.*.graph")
	if len(found) != 1 {
		return "", badFile(dir, "name", fmt.Sprintf("%s ind.NAME.graph", event.Tally(len(found), "file")),
			"one, or a name to choose by", "give --name cora, citeseer or pubmed")
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "ind."), ".graph"), nil
}

type planetoid struct{ dir, name string }

func (p planetoid) path(suffix string) string { return filepath.Join(p.dir, "ind."+p.name+"."+suffix) }

func (p planetoid) bad(suffix, found, want string) error {
	return badFile(p.path(suffix), "", found, want, planetoidFix)
}

func (p planetoid) pickle(suffix string) (any, error) {
	path := p.path(suffix)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, badFile(path, "", "no such file", "the eight files ind."+p.name+".*", "check the folder and --name")
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPickleBytes {
		return nil, p.bad(suffix, fmt.Sprintf("%s of %s", info.Mode().Type(), event.Tally(info.Size(), "byte")),
			"a file of at most 4 GiB")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v, err := unpickle(b)
	if err != nil {
		return nil, p.bad(suffix, graph.Sentence(err.Error()), "a pickle as Planetoid writes it")
	}
	return v, nil
}

func (p planetoid) features(suffix string) (*graph.Features, error) {
	v, err := p.pickle(suffix)
	if err != nil {
		return nil, err
	}
	f, err := asCSR(v)
	if err != nil {
		return nil, table.Because(p.path(suffix), "", err, "a scipy csr_matrix of numbers", planetoidFix)
	}
	return f, nil
}

// asCSR reads a pickled scipy matrix: an object whose state is its __dict__.
func asCSR(v any) (*graph.Features, error) {
	o, ok := v.(*object)
	if !ok || o.class != "csr" {
		return nil, errShape
	}
	state, ok := o.state.(*dict)
	if !ok {
		return nil, errShape
	}
	shape, ok := state.get("_shape").(tuple)
	if !ok || len(shape) != 2 {
		return nil, errShape
	}
	rows, ok1 := shape[0].(int64)
	cols, ok2 := shape[1].(int64)
	if !ok1 || !ok2 {
		return nil, errShape
	}
	var parts [3]*ndarray
	for i, name := range []string{"indptr", "indices", "data"} {
		a, err := asArray(state.get(name))
		if err != nil {
			return nil, err
		}
		parts[i] = a
	}
	return sparse(parts[0], parts[1], parts[2], rows, cols)
}

// labels reads one-hot rows; a row of zeros is no label.
func (p planetoid) labels(suffix string) (class []int32, classes int, err error) {
	v, err := p.pickle(suffix)
	if err != nil {
		return nil, 0, err
	}
	a, err := asArray(v)
	var hot []int64
	if err == nil {
		hot, err = a.int64s()
	}
	if err == nil && (len(a.shape) != 2 || a.shape[1] == 0) {
		err = errShape
	}
	if err != nil {
		return nil, 0, p.bad(suffix, graph.Sentence(err.Error()), "a two-dimensional integer array")
	}
	classes = int(a.shape[1])
	class = make([]int32, a.shape[0])
	for i := range class {
		if class[i], err = oneHot(hot[i*classes : (i+1)*classes]); err != nil {
			return nil, 0, p.bad(suffix, fmt.Sprintf("%v in row %d", err, i), "rows of zeros with at most one 1")
		}
	}
	return class, classes, nil
}

// oneHot is the position of the 1 among zeros; -1: there is none.
func oneHot(row []int64) (class int32, err error) {
	class = -1
	for c, x := range row {
		switch {
		case x == 1 && class >= 0:
			return 0, errors.New("two classes")
		case x == 1:
			class = int32(c)
		case x != 0:
			return 0, fmt.Errorf("%d", x)
		}
	}
	return class, nil
}

func (p planetoid) testIndex() ([]uint32, error) {
	in, err := table.OpenText(p.path("test.index"))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var ids []uint32
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		id, err := strconv.ParseUint(strings.TrimSpace(lines.Text()), 10, 32)
		if err != nil {
			return nil, badFile(p.path("test.index"), fmt.Sprintf("line %d", len(ids)+1),
				fmt.Sprintf("%.40q", lines.Text()), "a vertex number", "download the file again")
		}
		ids = append(ids, uint32(id))
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, p.bad("test.index", "no lines", "a test vertex a line")
	}
	return ids, nil
}

// place checks that the test vertices follow those of allx, and counts vertices.
func (p planetoid) place(test []uint32, rows, before int) (n int, err error) {
	sorted := slices.Clone(test)
	slices.Sort(sorted)
	last := int(sorted[len(sorted)-1])
	switch {
	case len(test) != rows:
		return 0, p.bad("test.index", event.Tally(len(test), "line"),
			fmt.Sprintf("%d, the rows of ind.%s.tx", rows, p.name))
	case len(slices.Compact(sorted)) != rows:
		return 0, p.bad("test.index", "a vertex twice", "each once")
	case int(sorted[0]) != before:
		return 0, p.bad("test.index", fmt.Sprintf("vertices from %d", sorted[0]),
			fmt.Sprintf("from %d, after the rows of ind.%s.allx", before, p.name))
	case last >= before+16*rows+1024:
		return 0, p.bad("test.index", fmt.Sprintf("vertex %d", last), "few vertices without a row")
	}
	return last + 1, nil
}

// stackRows puts the rows of all first and row i of tx at vertex test[i].
func stackRows(n int, all, tx *graph.Features, test []uint32) *graph.Features {
	row := make([]int, n) // of tx, by vertex; -1: none
	for v := range row {
		row[v] = -1
	}
	for i, v := range test {
		row[v] = i
	}
	f := &graph.Features{Rows: n, Cols: all.Cols, Indptr: append([]int64(nil), all.Indptr...),
		Indices: append([]uint32(nil), all.Indices...), Values: append([]float32(nil), all.Values...)}
	for v := all.Rows; v < n; v++ {
		if i := row[v]; i >= 0 {
			a, b := tx.Indptr[i], tx.Indptr[i+1]
			f.Indices, f.Values = append(f.Indices, tx.Indices[a:b]...), append(f.Values, tx.Values[a:b]...)
		}
		f.Indptr = append(f.Indptr, int64(len(f.Indices)))
	}
	return f
}

func stackLabels(n int, all, ty []int32, test []uint32) []int32 {
	class := make([]int32, n)
	for v := copy(class, all); v < n; v++ {
		class[v] = -1
	}
	for i, v := range test {
		class[v] = ty[i]
	}
	return class
}

func (p planetoid) splits(train, labelled int, test []uint32) (s graph.Splits, err error) {
	if labelled < planetoidVal {
		return s, p.bad("allx", event.Tally(labelled, "row"),
			fmt.Sprintf("more than the %d that are for validation", planetoidVal))
	}
	if train+planetoidVal > labelled {
		return s, p.bad("y", event.Tally(train, "row"),
			fmt.Sprintf("at most %d, to leave %d of ind.%s.allx for validation", labelled-planetoidVal, planetoidVal,
				p.name))
	}
	for v := range uint32(train + planetoidVal) {
		if v < uint32(train) {
			s.Train = append(s.Train, v)
		} else {
			s.Val = append(s.Val, v)
		}
	}
	s.Test = slices.Sorted(slices.Values(test))
	return s, nil
}

// edges lists every neighbour of every vertex.
func (p planetoid) edges(n int) (src, dst []uint32, err error) {
	v, err := p.pickle("graph")
	if err != nil {
		return nil, nil, err
	}
	d, ok := v.(*dict)
	if !ok {
		return nil, nil, p.bad("graph", graph.Sentence(errShape.Error()), "a dict of lists")
	}
	vertex := func(v any) (uint32, error) {
		x, ok := v.(int64)
		if !ok {
			// Only the type: a pickle can nest a value so that its text is endless.
			return 0, p.bad("graph", fmt.Sprintf("a %T as a vertex", v), "a number")
		}
		if x < 0 || x >= int64(n) {
			return 0, p.bad("graph", fmt.Sprintf("vertex %d", x), fmt.Sprintf("0 to %d", n-1))
		}
		return uint32(x), nil
	}
	for i, k := range d.keys {
		u, err := vertex(k)
		if err != nil {
			return nil, nil, err
		}
		to, ok := d.values[i].(*list)
		if !ok {
			return nil, nil, p.bad("graph", fmt.Sprintf("no list at vertex %d", u), "a dict of lists")
		}
		for _, x := range to.items {
			v, err := vertex(x)
			if err != nil {
				return nil, nil, err
			}
			src, dst = append(src, u), append(dst, v)
		}
	}
	return src, dst, nil
}
