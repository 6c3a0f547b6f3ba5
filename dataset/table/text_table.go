package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"starling/event"
)

const (
	sampleRows  = 200      // looked at for header and kinds
	sampleBytes = 4 << 20  // and no more than that
	maxRecord   = 64 << 20 // bytes of one row, with lines inside quotes
	batchRows   = 4096
	wideNumbers = 1 << 18 // of vectors, per batch, about
)

// textTable is a file of text.
type textTable struct {
	path  string
	comma rune
	names []string // of all columns
	kinds []Column
	skip  bool    // the first row, which is the header
	lines float64 // rows, about
	exact int64   // -1: the sample has not all of them
	cut   bool    // the sample is not the whole file
}

// head reads what is looked at: a sample, that has the first rows however long they are.
func (t *textTable) head(in io.Reader) (head []byte, err error) {
	for most := sampleBytes; ; most *= 4 {
		more, err := io.ReadAll(io.LimitReader(in, int64(most-len(head))))
		if head = append(head, more...); err != nil {
			return nil, err
		}
		t.cut = len(head) == most
		if !t.cut || bytes.Count(head, []byte{'\n'}) > 2 || most > maxRecord {
			return head, nil
		}
	}
}

func openText(path string, opt Options) (part, error) {
	if opt.Header != "" && opt.Header != "yes" && opt.Header != "no" {
		return nil, bad(path, "header", strconv.Quote(opt.Header), "yes, no, or nothing to look", "correct it")
	}
	in, err := OpenText(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t := &textTable{path: path}
	head, err := t.head(in)
	if err != nil {
		return nil, err
	}
	switch t.comma = opt.Separator; {
	case opt.Format == "tsv":
		t.comma = '\t'
	case t.comma == 0:
		t.comma = commaOf(head)
	}
	rows, err := t.sample(head)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, bad(path, "", "no rows", "a table", "it was cut off: write it again")
	}
	t.skip = opt.Header == "yes" || opt.Header == "" && isHeader(rows[0], rows[1:], opt.Names)
	t.describe(rows)
	if info, err := os.Stat(path); err == nil {
		t.estimate(head, len(rows), info.Size())
	}
	return t, t.checkNames()
}

// estimate sets about how many rows there are, by the length of the first ones. What is packed may have any number.
func (t *textTable) estimate(head []byte, rows int, size int64) {
	if !t.cut && int64(len(head)) >= size {
		t.lines = float64(strings.Count(string(head), "\n"))
		if head[len(head)-1] != '\n' {
			t.lines++
		}
	} else if int64(len(head)) <= size {
		t.lines = float64(strings.Count(string(head), "\n")) * float64(size) / float64(len(head))
	}
	if t.skip && t.lines > 0 {
		t.lines--
	}
	if t.exact = -1; !t.cut && rows < sampleRows {
		if t.exact = int64(rows); t.skip {
			t.exact--
		}
	}
}

// sample reads the first rows, up to one that may be cut off.
func (t *textTable) sample(head []byte) (rows [][]string, err error) {
	cut := t.cut
	r := t.reader(strings.NewReader(string(head)))
	r.FieldsPerRecord = 0
	for len(rows) < sampleRows {
		row, err := r.Read()
		if err == io.EOF || err != nil && cut && len(rows) > 0 {
			break
		}
		if err != nil {
			return nil, t.refuse(err, r)
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	if cut && len(rows) > 1 && len(rows) < sampleRows {
		rows = rows[:len(rows)-1]
	}
	return rows, nil
}

// describe names the columns and finds their kinds.
func (t *textTable) describe(rows [][]string) {
	for c, name := range rows[0] {
		if !t.skip {
			name = strconv.Itoa(c + 1)
		}
		t.names = append(t.names, name)
	}
	if t.skip {
		rows = rows[1:]
	}
	for c, name := range t.names {
		col := Column{Name: name, Kind: kindOf(rows, c)}
		if col.Kind == Vector {
			col.Width = widthOf(rows, c)
		}
		t.kinds = append(t.kinds, col)
	}
}

// widthOf is the width that all vectors of a column have; 0: they differ.
func widthOf(rows [][]string, c int) (width int) {
	for _, row := range rows {
		if IsMissing(row[c]) {
			continue
		}
		n := listWidth(row[c])
		if width != 0 && n != width {
			return 0
		}
		width = n
	}
	return width
}

// checkNames refuses two columns of one name.
func (t *textTable) checkNames() error {
	seen := make(map[string]int, len(t.names))
	for i, name := range t.names {
		if j, twice := seen[name]; twice && name != "" {
			return bad(t.path, "header", fmt.Sprintf("%.60q as the name of columns %d and %d", name, j+1, i+1),
				"a name of its own for every column", "rename one of the two")
		}
		seen[name] = i
	}
	return nil
}

func (t *textTable) columns() []Column { return t.kinds }

func (t *textTable) rows() (exact, about int64) { return t.exact, int64(t.lines) }

// reader reads rows. In files with tabs a name may begin with a quote.
func (t *textTable) reader(r io.Reader) *csv.Reader {
	c := csv.NewReader(r)
	c.Comma, c.ReuseRecord, c.LazyQuotes = t.comma, false, t.comma == '\t'
	return c
}

// commaOf is the separator: a tab, semicolon, comma or bar that is in every row equally often, else the first that the
// first row has. Blanks separate nothing.
func commaOf(head []byte) rune {
	rows := outsideQuotes(head)
	for _, comma := range "\t;,|" {
		n := strings.Count(rows[0], string(comma))
		same := func(row string) bool { return strings.Count(row, string(comma)) == n }
		if n > 0 && !slices.ContainsFunc(rows, func(row string) bool { return !same(row) }) {
			return comma
		}
	}
	if at := strings.IndexAny(rows[0], "\t;,|"); at >= 0 {
		return rune(rows[0][at])
	}
	return ','
}

// outsideQuotes are the first rows, without what is in quotes; one at least.
func outsideQuotes(head []byte) (rows []string) {
	var row []byte
	quoted, before := false, byte('\n')
	for _, c := range head {
		start := bytes.IndexByte([]byte("\t;,|\n"), before) >= 0 // of a field
		before = c
		switch {
		case c == '"' && (quoted || start):
			quoted = !quoted
		case quoted || c == '\r':
		case c == '\n' && len(row) > 0:
			if rows = append(rows, string(row)); len(rows) == 20 {
				return rows
			}
			row = row[:0]
		case c != '\n':
			row = append(row, c)
		}
	}
	if len(rows) == 0 {
		rows = append(rows, string(row))
	}
	return rows
}

// refuse says what is wrong with a row.
func (t *textTable) refuse(err error, r *csv.Reader) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return err
	}
	place, want, fix := fmt.Sprintf("line %d", p.StartLine), "quotes around whole fields",
		"double the quotes that are part of a field, and put it into quotes"
	found := "a quote inside a field"
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		found, want, fix = "another number of fields than in the first row", "as many fields in every row",
			"correct the row"
		if n := len(t.names); n > 0 {
			want = fmt.Sprintf("%s in every row", event.Tally(n, "field"))
		}
	case errors.Is(err, csv.ErrQuote) && p.Line != p.StartLine, errors.Is(err, errLongRecord):
		found = "a quote that does not end"
	}
	return bad(t.path, place, found, want, fix)
}

// errLongRecord ends a row that has more bytes than a row can have.
var errLongRecord = errors.New("a row without end")

// bounded stops a reader after maxRecord bytes without a row.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRecord
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}

func (t *textTable) read(want []Want, each func(*Batch) error) error {
	in, err := OpenText(t.path)
	if err != nil {
		return err
	}
	defer in.Close()
	s := &textStream{t: t, limit: &bounded{in, maxRecord}}
	if s.at, err = t.places(want); err != nil {
		return err
	}
	s.r, s.want = t.reader(s.limit), want
	s.r.FieldsPerRecord, s.r.ReuseRecord = len(t.names), true
	if t.skip {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return s.run(each)
}

// places are the columns' numbers; -1: all of them.
func (t *textTable) places(want []Want) (at []int, err error) {
	for _, w := range want {
		i := slices.Index(t.names, w.Name)
		if i < 0 && w.Name != All {
			return nil, bad(t.path, "columns", fmt.Sprintf("no column %.60q", w.Name), "one", "check the name")
		}
		at = append(at, i)
	}
	return at, nil
}

// textStream reads batches of one file.
type textStream struct {
	t     *textTable
	r     *csv.Reader
	limit *bounded
	want  []Want
	at    []int
	row   int64
}

func (s *textStream) next() ([]string, error) {
	s.limit.left = maxRecord
	row, err := s.r.Read()
	if err != nil && err != io.EOF {
		if errors.Is(err, errLongRecord) {
			return nil, bad(s.t.path, fmt.Sprintf("after row %d", s.row), "a quote that does not end",
				"quotes around whole fields", "correct the row")
		}
		return nil, s.t.refuse(err, s.r)
	}
	return row, err
}

func (s *textStream) run(each func(*Batch) error) error {
	b := &Batch{File: s.t.path, Columns: make([]Values, len(s.want))}
	for {
		b.Rows, b.lines, b.row = 0, b.lines[:0], s.row
		for i := range b.Columns {
			b.Columns[i].reset()
		}
		end, err := s.fill(b)
		if err != nil {
			return err
		}
		for i := range b.Columns {
			b.Columns[i].done()
		}
		if b.Rows > 0 {
			if err := each(b); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// fill reads rows until a batch is full.
func (s *textStream) fill(b *Batch) (end bool, err error) {
	for wide := 0; b.Rows < batchRows && wide < wideNumbers; {
		row, err := s.next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if s.t.repeats(row) {
			continue
		}
		line, _ := s.r.FieldPos(0)
		b.lines = append(b.lines, line)
		for i, w := range s.want {
			v := &b.Columns[i]
			if s.at[i] < 0 {
				err = v.addAll(row, b.Rows)
			} else {
				err = v.addText(strings.TrimSpace(row[s.at[i]]), w.As, b.Rows)
			}
			if err != nil {
				return false, s.cell(err, line, w.Name)
			}
			wide += v.Width
		}
		b.Rows++
		s.row++
	}
	return false, nil
}

// repeats tells whether a row is the header again, as in files that were concatenated.
func (t *textTable) repeats(row []string) bool {
	if !t.skip {
		return false
	}
	for i, name := range t.names {
		if strings.TrimSpace(row[i]) != name {
			return false
		}
	}
	return true
}

// cell names the place of a cell that does not convert.
func (s *textStream) cell(err error, line int, column string) error {
	c := err.(*cellError)
	place := fmt.Sprintf("line %d, column %.60s", line, column)
	if column == All {
		place = fmt.Sprintf("line %d", line)
	}
	return bad(s.t.path, place, c.found, c.want, "correct it")
}

// cellError is why a cell does not convert.
type cellError struct{ found, want string }

func (c *cellError) Error() string { return c.found }

// addText appends a cell of text as a kind. An empty cell is missing; of numbers so are the usual words.
func (v *Values) addText(s string, as Kind, row int) error {
	switch as {
	case Text, ID:
		v.Text, v.Missing = append(v.Text, s), append(v.Missing, s == "")
		return nil
	case Vector:
		return v.addList(s, row)
	}
	missing := IsMissing(s)
	v.Missing = append(v.Missing, missing)
	if as == Whole {
		x, err := strconv.ParseInt(s, 10, 64)
		v.Whole = append(v.Whole, x)
		if err != nil && !missing {
			return &cellError{fmt.Sprintf("%.60q", s), "a whole number"}
		}
		return nil
	}
	x := nan
	if !missing {
		var err error
		if x, err = strconv.ParseFloat(s, 64); err != nil || math.IsInf(x, 0) {
			return &cellError{fmt.Sprintf("%.60q", s), "a finite number"}
		}
	}
	v.Real = append(v.Real, x)
	return nil
}

// addList appends a cell that lists the numbers of a vector.
func (v *Values) addList(s string, row int) error {
	if IsMissing(s) && v.Width == 0 && row == 0 {
		return &cellError{"a missing vector in the first row", "numbers, which tell the width"}
	}
	if IsMissing(s) {
		v.Missing = append(v.Missing, true)
		for range v.Width {
			v.Vector = append(v.Vector, float32(nan))
		}
		return nil
	}
	return v.addNumbers(listFields(s), row)
}

// addAll appends a row of text as one vector.
func (v *Values) addAll(fields []string, row int) error { return v.addNumbers(fields, row) }

func (v *Values) addNumbers(fields []string, row int) error {
	if v.Width == 0 && row == 0 {
		v.Width = len(fields)
	}
	if len(fields) != v.Width {
		return &cellError{event.Tally(len(fields), "number"), fmt.Sprintf("%d, as in the first row", v.Width)}
	}
	v.Missing = append(v.Missing, false)
	for _, f := range fields {
		f = strings.TrimSpace(f)
		x, err := strconv.ParseFloat(f, 32)
		switch {
		case IsMissing(f):
			x, v.Missing[row] = nan, true
		case err != nil || math.IsInf(x, 0):
			return &cellError{fmt.Sprintf("%.60q", f), "a finite number that a float32 can hold"}
		}
		v.Vector = append(v.Vector, float32(x))
	}
	return nil
}
