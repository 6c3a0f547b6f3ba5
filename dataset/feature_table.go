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

// The values of ImportOptions.Missing.
const (
	missingError = "error"
	missingZero  = "zero"
	missingMean  = "mean"
)

var missingChoices = []string{missingError, missingZero, missingMean}

// featureTable is a file of id,x,y,… lines. Columns of words become one column per word where
// oneHot names them, behind the columns of numbers.
type featureTable struct {
	path    string
	missing string   // one of missingChoices, or "": error
	oneHot  []string // columns, by their names or numbers

	ids     []string
	columns int        // fields after the id; 0: no row yet
	names   []string   // of these fields; nil: there is no header
	words   []category // by field; nil name: a field of numbers
	values  []float32  // of the fields of numbers, row by row; NaN: missing
}

// head takes the names of the columns, the id's first.
func (t *featureTable) head(names []string) error {
	t.names = names[1:]
	return nil
}

// settle finds the columns that oneHot names, at the first row.
func (t *featureTable) settle(fields int) *badCell {
	t.columns = fields
	t.words = make([]category, fields)
	for _, name := range t.oneHot {
		at := named(t.names, []string{strings.ToLower(name)})
		if n, err := strconv.Atoi(name); at < 0 && err == nil {
			at = n - 2 // column 1 is the id
		}
		if at < 0 || at >= fields {
			return &badCell{at: -1, found: fmt.Sprintf("no column %q", name),
				want: "--one-hot with columns of this file: " + t.listed(), fix: "columns have the names of the first line, or numbers from 2 on"}
		}
		t.words[at] = newCategory(t.columnName(at))
	}
	return nil
}

// listed names the columns for people.
func (t *featureTable) listed() string {
	if t.names == nil {
		return fmt.Sprintf("2 to %d", t.columns+1)
	}
	return fmt.Sprintf("%.200s", strings.Join(t.names, ", "))
}

func (t *featureTable) columnName(at int) string {
	if at < len(t.names) && t.names[at] != "" {
		return t.names[at]
	}
	return strconv.Itoa(at + 2)
}

// heading tells whether the first row holds names: no number where one should be.
func (t *featureTable) heading(id string, fields []string) bool {
	if t.names != nil {
		return false
	}
	if namesColumn(id) {
		return true
	}
	for i, s := range fields {
		if !slices.Contains(t.oneHot, strconv.Itoa(i+2)) {
			return !table.IsMissing(s) && !isNumber([]byte(s))
		}
	}
	return false
}

func (t *featureTable) add(id string, fields []string) *badCell {
	if t.columns == 0 {
		if t.heading(id, fields) {
			return isHeader
		}
		if bad := t.settle(len(fields)); bad != nil {
			return bad
		}
	}
	if len(fields) != t.columns {
		return &badCell{at: -1, found: fmt.Sprintf("%s after the id", event.Tally(len(fields), "value")),
			want: fmt.Sprintf("as many as in the first row (%d)", t.columns)}
	}
	t.ids = append(t.ids, id)
	for i, s := range fields {
		if t.words[i].index != nil {
			t.words[i].add(s)
			continue
		}
		x, bad := t.number(s)
		if bad != nil {
			bad.at = i + 1
			return bad
		}
		t.values = append(t.values, x)
	}
	return nil
}

// number reads one value; a missing one is NaN where that is allowed.
func (t *featureTable) number(s string) (float32, *badCell) {
	if table.IsMissing(s) {
		if t.missing == "" || t.missing == missingError {
			return 0, &badCell{want: "a finite number",
				fix: "fill it in, or give --missing zero or --missing mean"}
		}
		return float32(math.NaN()), nil
	}
	x, err := strconv.ParseFloat(s, 32)
	switch {
	case err != nil && !isNumber([]byte(s)):
		return 0, &badCell{want: "a finite number",
			fix: "correct it; a column of words becomes numbers with --one-hot COLUMN"}
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0):
		return 0, &badCell{want: "a finite number that a float32 can hold", fix: "correct it"}
	}
	return float32(x), nil
}

// matrix sorts the rows by vertex. A vertex without one is an error, or a row of NaN where
// missing values are to be filled in.
func (t *featureTable) matrix(r *read, ids *idMap) error {
	if t.columns == 0 {
		return badFile(t.path, "", "no rows", "an id and numbers per line", "check the file")
	}
	seen, vertex := make([]bool, ids.n), make([]uint32, len(t.ids))
	for i, id := range t.ids {
		v, ok := ids.find(id)
		if !ok || seen[v] {
			return badFile(t.path, "id", fmt.Sprintf("%q", id), "each id of the graph once", "correct the file")
		}
		seen[v], vertex[i] = true, v
	}
	if err := t.absent(ids, seen); err != nil {
		return err
	}
	var numeric []string
	var words []category
	for i, c := range t.words {
		if c.index != nil {
			words = append(words, c)
		} else {
			numeric = append(numeric, t.columnName(i))
		}
	}
	if t.names == nil {
		numeric = nil
	}
	return r.attachFeatures(t.path, t.values, t.columns-len(words), words, numeric, vertex, ids.n)
}

// absent refuses vertices without a row, unless they are to be filled in.
func (t *featureTable) absent(ids *idMap, seen []bool) error {
	n, few := 0, []string{}
	for v, ok := range seen {
		if !ok {
			if n++; n <= 3 {
				few = append(few, fmt.Sprintf("%.40q", ids.name(v)))
			}
		}
	}
	if n == 0 || t.missing == missingZero || t.missing == missingMean {
		return nil
	}
	found := "none for " + strings.Join(few, ", ")
	if n > len(few) {
		found += fmt.Sprintf(" and %d more", n-len(few))
	}
	return badFile(t.path, "rows", found, fmt.Sprintf("one for each of %s (%d have none)",
		event.Tally(ids.n, "vertex"), n),
		"add the missing rows, or give --missing zero or --missing mean")
}

// attachFeatures joins columns of numbers, row i of vertex[i], and columns of words to a
// dense matrix. Vertices without a row get NaN for numbers and no word.
func (r *read) attachFeatures(path string, values []float32, dim int, words []category, numeric []string,
	vertex []uint32, n int) error {
	cols := dim
	for i := range words {
		cols += words[i].settle()
	}
	if cols == 0 {
		return badFile(path, "columns", "none with a value", "numbers, or words with --one-hot", "check the file")
	}
	f := &graph.Features{Rows: n, Cols: cols, F32: make([]float32, n*cols)}
	if len(vertex) < n {
		for v := range n {
			for c := range dim {
				f.F32[v*cols+c] = float32(math.NaN())
			}
		}
	}
	for i, v := range vertex {
		row := f.F32[int(v)*cols : (int(v)+1)*cols]
		copy(row, values[i*dim:(i+1)*dim])
		at := dim
		for k := range words {
			if code := words[k].codes[i]; code >= 0 {
				row[at+int(words[k].rank[code])] = 1
			}
			at += len(words[k].words)
		}
	}
	r.features, r.oneHot = f, cols-dim
	if numeric != nil || len(words) > 0 {
		r.columns = columnNames(numeric, dim, words)
	}
	return nil
}

// columnNames returns the names of the columns of numbers, or their positions, and then of every word.
func columnNames(numeric []string, dim int, words []category) (out []string) {
	if out = slices.Clone(numeric); out == nil {
		for c := range dim {
			out = append(out, strconv.Itoa(c))
		}
	}
	for _, c := range words {
		for _, word := range c.words {
			out = append(out, c.name+"="+word)
		}
	}
	return out
}
