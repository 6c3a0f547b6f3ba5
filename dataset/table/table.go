package table

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"starling/event"
)

// Kind is what cells of a column are.
type Kind int

// The kinds. ID is only wanted, and never found: an id is text, or a whole number where the file stores it as one.
const (
	Text Kind = iota
	Whole
	Real
	Vector
	Time // a date or a time that a file stores as such
	ID
)

// String names a kind for people.
func (k Kind) String() string {
	return []string{"text", "whole numbers", "numbers", "vectors", "times", "ids"}[k]
}

// Column is one column of a table.
type Column struct {
	Name  string
	Kind  Kind // of text files by their first rows
	Width int  // of vectors; 0: it varies, or is not known before reading
}

// String is what a column holds, for people.
func (c *Column) String() string {
	if c.Kind == Vector && c.Width > 0 {
		return fmt.Sprintf("vectors of %d", c.Width)
	}
	return c.Kind.String()
}

// Options say how files are read.
type Options struct {
	Format string   // csv, tsv, parquet or npy; "": as the files look
	Header string   // yes, no or "" to look (text)
	Names  []string // columns that there will be, which tell a header
	// Separator is what stands between the cells of text; 0: found by looking.
	Separator rune
	// Columns: an npy of two dimensions is as many columns, called 1, 2, …; else its rows are vectors.
	Columns bool
	// Rows is how many each file has, as RowsBy says; nil: any.
	Rows   []int64
	RowsBy string
}

// Table is one or more files of the same columns.
type Table struct {
	Pattern string // as they were given
	Files   []string
	Columns []Column
	Rows    int64 // -1: not known before reading
	About   int64 // rows, by the size of the files; 0: not known

	parts  []part
	want   []int64 // rows of each part; nil: any
	wantBy string
}

// part is one file.
type part interface {
	columns() []Column
	rows() (exact, about int64)
	read(want []Want, each func(*Batch) error) error
}

// Want is a column to read, as a kind. The name * is all columns of a text file as one vector.
type Want struct {
	Name string
	As   Kind
}

// All is the name of all columns as one vector.
const All = "*"

// Open finds the files of patterns (a file, a glob, a folder) and reads their heads.
func Open(opt Options, patterns ...string) (*Table, error) {
	t := &Table{Pattern: strings.Join(patterns, ", "), want: opt.Rows, wantBy: opt.RowsBy}
	for _, pattern := range patterns {
		files, err := find(pattern)
		if err != nil {
			return nil, err
		}
		t.Files = append(t.Files, files...)
	}
	if opt.Rows != nil && len(opt.Rows) != len(t.Files) {
		return nil, bad(t.Pattern, "", event.Tally(len(t.Files), "file"), fmt.Sprintf("%d, as %s says", len(opt.Rows), opt.RowsBy),
			"list every file")
	}
	for i, path := range t.Files {
		p, err := openPart(path, opt)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			if err := sameColumns(path, p, t.Files[0], t.Columns); err != nil {
				return nil, err
			}
		} else {
			t.Columns = p.columns()
		}
		t.count(p)
		t.parts = append(t.parts, p)
		if exact, _ := p.rows(); exact >= 0 {
			if err := t.checkRows(i, exact); err != nil {
				return nil, err
			}
		}
	}
	return t, t.widths()
}

// errEnough ends a pass early.
var errEnough = errors.New("enough")

// widths reads the first vector of columns that do not tell their width.
func (t *Table) widths() error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind != Vector || c.Width != 0 {
			continue
		}
		err := t.parts[0].read([]Want{{c.Name, Vector}}, func(b *Batch) error {
			c.Width = b.Columns[0].Width
			return errEnough
		})
		if err != nil && err != errEnough {
			return err
		}
	}
	return nil
}

func (t *Table) count(p part) {
	exact, about := p.rows()
	if exact < 0 || t.Rows < 0 {
		t.Rows = -1
	} else {
		t.Rows += exact
	}
	t.About += about
}

// checkRows refuses a file with another number of rows than it is said to have.
func (t *Table) checkRows(i int, rows int64) error {
	if t.want == nil || t.want[i] == rows {
		return nil
	}
	return bad(t.Files[i], "", event.Tally(rows, "row"), fmt.Sprintf("%d, as %s says", t.want[i], t.wantBy),
		"write the files again, or correct the number")
}

// sameColumns refuses a shard without a column of the first, or with one of another kind. A file of text may have
// only whole numbers in its first rows where another has fractions.
func sameColumns(path string, p part, first string, want []Column) error {
	have := p.columns()
	if _, npy := p.(*npyTable); npy && len(want) == 1 && len(have) == 1 {
		if want[0].Width != have[0].Width {
			return bad(path, "shape", have[0].String(), want[0].String()+", as in "+first, "save the shards alike")
		}
		return nil
	}
	for _, c := range want {
		if i := slices.IndexFunc(have, func(h Column) bool { return h.Name == c.Name }); i < 0 {
			return bad(path, "columns", "no column "+fmt.Sprintf("%.60q", c.Name), "the columns of "+first,
				"write all shards of a table with the same columns")
		}
	}
	return nil
}

// Find is the column of a name; nil: there is none.
func (t *Table) Find(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// Names lists the columns for messages.
func (t *Table) Names() string {
	var names []string
	for _, c := range t.Columns[:min(len(t.Columns), 20)] {
		names = append(names, fmt.Sprintf("%.60s", c.Name))
	}
	if len(t.Columns) > 20 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// Read streams the wanted columns. A batch is good until each returns.
func (t *Table) Read(want []Want, each func(*Batch) error) error {
	var row int64
	for i, p := range t.parts {
		before := row
		if err := p.read(want, func(b *Batch) error {
			b.First = row
			row += int64(b.Rows)
			return each(b)
		}); err != nil {
			return err
		}
		if err := t.checkRows(i, row-before); err != nil {
			return err
		}
	}
	return nil
}

// Batch is consecutive rows of one file.
type Batch struct {
	File    string
	First   int64 // the row of the table that the first one is
	Rows    int
	Columns []Values // as they were wanted

	lines []int // of each row, in a text file
	row   int64 // of the first in its file
}

// Place is where a row is in its file.
func (b *Batch) Place(i int) string {
	if b.lines != nil {
		return fmt.Sprintf("line %d", b.lines[i])
	}
	return fmt.Sprintf("row %d", b.row+int64(i))
}

// Values are one column of a batch, in the slice of its kind.
type Values struct {
	Text    []string
	Whole   []int64 // also of ids, where the file stores whole numbers; Text is nil then
	Real    []float64
	Vector  []float32 // Width numbers per row
	Width   int
	Missing []bool // nil: none is. A missing number is also NaN, a missing vector of NaN
}

// IsMissing tells whether the cell of row i is.
func (v *Values) IsMissing(i int) bool { return v.Missing != nil && v.Missing[i] }

func (v *Values) reset() {
	v.Text, v.Whole, v.Real, v.Vector = v.Text[:0], v.Whole[:0], v.Real[:0], v.Vector[:0]
	v.Missing = v.Missing[:0]
}

// done drops marks where nothing is missing.
func (v *Values) done() {
	if !slices.Contains(v.Missing, true) {
		v.Missing = nil
	}
}

// missingWords are what programs write for a missing number, in lower case.
var missingWords = []string{"", "nan", "na", "n/a", "<na>", "null", "none"}

// IsMissing tells whether a word stands for a missing value. Among names it may be a name.
func IsMissing(word string) bool {
	return len(word) <= 4 && slices.Contains(missingWords, strings.ToLower(word))
}

var nan = math.NaN()
