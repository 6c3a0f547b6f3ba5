package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// tables are the files of labels and features that come beside an edge list.
type tables struct {
	labels   *labelTable
	features *featureTable // nil also when features are an npy
	notes    []string
}

type labelTable struct {
	path   string
	ids    []string
	labels []string
}

type featureTable struct {
	path   string
	ids    []string
	cols   int
	values []float32
}

func readTables(opt ImportOptions) (t tables, err error) {
	if opt.Labels != "" {
		t.labels = &labelTable{path: opt.Labels}
		if err := t.read(opt.Labels, labelNames, t.labels.add); err != nil {
			return t, err
		}
	}
	if opt.Features != "" && !strings.HasSuffix(opt.Features, ".npy") {
		t.features = &featureTable{path: opt.Features}
		if err := t.read(opt.Features, nil, t.features.add); err != nil {
			return t, err
		}
	}
	return t, nil
}

// ids lists every id of both tables, labels first.
func (t tables) ids() (ids []string) {
	if t.labels != nil {
		ids = append(ids, t.labels.ids...)
	}
	if t.features != nil {
		ids = append(ids, t.features.ids...)
	}
	return ids
}

// numbers is ids as numbers; errNames if one is none.
func (t tables) numbers() ([]uint32, error) {
	var out []uint32
	for _, id := range t.ids() {
		x, ok := smallNumber([]byte(id))
		if !ok {
			return nil, errNames
		}
		out = append(out, x)
	}
	return out, nil
}

// header is what a table answers when a row holds the names of its columns.
const header = "the names of columns on the first line only"

// read reads a file of id,value,… lines. A header may say where the id is, and that a
// column called one of the words comes first among the values. f answers "" or what it
// wanted.
func (t *tables) read(path string, words []string, f func(id string, fields []string) (bad string)) error {
	in, err := openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), 16<<20)
	var lay layout
	var first []string // until the second row tells whether it is a header
	headed := false
	var order []int
	use := func(n int, fields []string, mayHead bool) error {
		want := "an id and a value"
		fields = ordered(fields, len(first), order)
		if len(fields) >= 2 {
			want = f(fields[0], fields[1:])
		}
		if want == header && mayHead {
			headed, want = true, ""
		}
		if want == "" {
			return nil
		}
		return badFile(path, fmt.Sprintf("line %d", n), fmt.Sprintf("%.60q", strings.Join(fields, ", ")), want, "correct the line")
	}
	at, rows := 0, 0
	for n := 1; lines.Scan(); n++ {
		line := bytes.Trim(lines.Bytes(), " \r")
		if comment(bytes.TrimSpace(line)) {
			continue
		}
		if rows++; rows == 1 {
			lay.delim = separator(line)
			first, at = lay.split(line), n
			continue
		}
		fields := lay.split(line)
		if headed && slices.Equal(fields, first) { // files were put one behind another
			continue
		}
		if rows == 2 {
			headed = isNumber([]byte(fields[0])) && !isNumber([]byte(first[0])) || named(first, idWords) >= 0 && named(first, words) >= 0
			if !headed {
				if err := use(at, first, true); err != nil {
					return err
				}
			}
			if headed {
				if order = vertexColumns(first, words); order != nil {
					t.notes = append(t.notes, fmt.Sprintf("by their names, %.60q, ids are column %d of %s, values column %d and others", strings.Join(first, ","), order[0]+1, filepath.Base(path), order[min(1, len(order)-1)]+1))
				}
			}
		}
		if err := use(n, fields, false); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case err == bufio.ErrTooLong:
		return badFile(path, "", "a line above 16 MiB", "a row a line", "this is no table of vertices")
	case err == nil && rows == 1:
		return use(at, first, true)
	default:
		return err
	}
}

// split is all fields of a line. One after a separator that ends the line counts if it
// would be the second: the value is missing.
func (l layout) split(line []byte) (fields []string) {
	for rest := line; len(rest) > 0; {
		var field []byte
		field, rest = l.next(rest)
		fields = append(fields, string(field))
	}
	if len(fields) == 1 && l.delim != 0 && line[len(line)-1] == l.delim {
		fields = append(fields, "")
	}
	return fields
}

// namesColumn tells of what a column of ids is called, for a first line that has it.
func namesColumn(id string) bool {
	return slices.Contains([]string{"id", "node", "nodeid", "node_id", "vertex", "vertex_id", "user_id", "name"}, strings.ToLower(id))
}

func (t *labelTable) add(id string, fields []string) string {
	if len(t.ids) == 0 && namesColumn(id) {
		return header
	}
	t.ids, t.labels = append(t.ids, id), append(t.labels, fields[0])
	return ""
}

// classes turns labels into class numbers: numbers stay, names are numbered in
// alphabetical order. Vertices without a line, and those labelled -1 or with
// nothing, have none.
func (t *labelTable) classes(ids *idMap, notes *[]string) (*graph.Labels, error) {
	l := &graph.Labels{Class: make([]int32, ids.n)}
	for v := range l.Class {
		l.Class[v] = -1
	}
	class, err := t.numbering(notes)
	if err != nil {
		return nil, err
	}
	for i, id := range t.ids {
		v, ok := ids.find(id)
		if !ok {
			return nil, badFile(t.path, "id", fmt.Sprintf("%q", id), "an id of the graph", "remove it or give a larger --nodes")
		}
		c := class[t.labels[i]]
		if l.Class[v] >= 0 && l.Class[v] != c {
			return nil, badFile(t.path, "id", fmt.Sprintf("%q with two labels", id), "one", "keep one of its lines")
		}
		l.Class[v] = c
		l.Classes = max(l.Classes, int(c)+1)
	}
	if l.Classes == 0 {
		return nil, badFile(t.path, "", "no label", "a label for some vertices", "check the file")
	}
	return l, nil
}

// wholeNumber reads also 3.0, as tables with missing values have it for 3.
func wholeNumber(s string) (int64, error) {
	whole, zeros, _ := strings.Cut(s, ".")
	if strings.Trim(zeros, "0") != "" {
		whole = s
	}
	return strconv.ParseInt(whole, 10, 64)
}

func (t *labelTable) numbering(notes *[]string) (map[string]int32, error) {
	class := map[string]int32{}
	numbers := true
	for _, s := range t.labels {
		if s == "" { // no label
			continue
		}
		x, err := wholeNumber(s)
		if numbers = numbers && err == nil; numbers && (x < -1 || x > maxClasses) {
			return nil, badFile(t.path, "label", s, fmt.Sprintf("-1 to %d", maxClasses), "number classes from 0")
		}
		class[s] = int32(x)
	}
	if numbers {
		class[""] = -1
		return class, nil
	}
	var names []string
	for s := range class {
		names = append(names, s)
	}
	slices.Sort(names)
	for i, s := range names {
		class[s] = int32(i)
	}
	class[""] = -1
	*notes = append(*notes, "classes from 0: "+strings.Join(names[:min(len(names), 1000)], ", "))
	return class, nil
}

func (t *featureTable) add(id string, fields []string) string {
	if t.cols == 0 {
		if namesColumn(id) || fields[0] != "" && !isNumber([]byte(fields[0])) {
			return header
		}
		t.cols = len(fields)
	}
	if len(fields) != t.cols {
		return fmt.Sprintf("as many numbers as in the first row (%d)", t.cols)
	}
	t.ids = append(t.ids, id)
	for _, s := range fields {
		x, err := strconv.ParseFloat(s, 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return "finite numbers"
		}
		t.values = append(t.values, float32(x))
	}
	return ""
}

// matrix puts the rows in the order of the vertices; a vertex without one is an error.
func (t *featureTable) matrix(ids *idMap) (*graph.Features, error) {
	if t.cols == 0 {
		return nil, badFile(t.path, "", "no rows", "an id and numbers a line", "check the file")
	}
	seen, vertex := make([]bool, ids.n), make([]uint32, len(t.ids))
	for i, id := range t.ids {
		v, ok := ids.find(id)
		if !ok || seen[v] {
			return nil, badFile(t.path, "id", fmt.Sprintf("%q", id), "each id of the graph once", "correct the file")
		}
		seen[v], vertex[i] = true, v
	}
	if v := slices.Index(seen, false); v >= 0 {
		return nil, badFile(t.path, "rows", fmt.Sprintf("none for %q", ids.name(v)), fmt.Sprintf("one for each of %d vertices", ids.n), "add the missing rows")
	}
	f := &graph.Features{Rows: ids.n, Cols: t.cols, F32: make([]float32, ids.n*t.cols)}
	for i, v := range vertex {
		copy(f.F32[int(v)*t.cols:], t.values[i*t.cols:(i+1)*t.cols])
	}
	return f, nil
}

// readMatrix reads dense features from an npy with a row a vertex.
func readMatrix(path string, rows int) (*graph.Features, error) {
	f, err := os.Open(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, badFile(path, "", "no such file", "features", "check the path")
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	const fix = "save a [vertices, features] array with numpy.save"
	a, err := readArray(io.Reader(f), info.Size())
	if err != nil {
		return nil, because(path, "", err, "an npy of numbers", fix)
	}
	x, err := a.float32s()
	if err != nil {
		return nil, badFile(path, "", err.Error(), "an npy of numbers", fix)
	}
	if len(a.shape) != 2 || a.shape[0] != int64(rows) || a.shape[1] == 0 {
		return nil, badFile(path, "shape", fmt.Sprint(a.shape), fmt.Sprintf("[%d, features]", rows), fix)
	}
	m := &graph.Features{Rows: rows, Cols: int(a.shape[1]), F32: x}
	return m, inPath(path, m.CheckFinite())
}
