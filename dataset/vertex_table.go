package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"starling/dataset/table"
)

// tables are the files of labels, splits and features beside an edge list.
type tables struct {
	labels   *labelTable
	splits   *splitTable
	features *featureTable // nil also when features are an npy
	notes    []string
}

// oneTable is one of the tables.
type oneTable struct {
	path string
	ids  []string
}

func readTables(opt ImportOptions) (t tables, err error) {
	if opt.Labels != "" {
		t.labels = &labelTable{path: opt.Labels}
		if err := t.read(opt.Labels, labelNames, t.labels.add, nil); err != nil {
			return t, err
		}
	}
	if opt.Splits != "" {
		t.splits = &splitTable{path: opt.Splits}
		if err := t.read(opt.Splits, splitNames, t.splits.add, nil); err != nil {
			return t, err
		}
	}
	if opt.Features != "" && !strings.HasSuffix(opt.Features, ".npy") {
		t.features = &featureTable{path: opt.Features, missing: opt.Missing, oneHot: opt.OneHot}
		if err := t.read(opt.Features, nil, t.features.add, t.features.head); err != nil {
			return t, err
		}
	}
	return t, nil
}

// all lists the tables: labels first, then splits, then features.
func (t tables) all() (out []oneTable) {
	if t.labels != nil {
		out = append(out, oneTable{t.labels.path, t.labels.ids})
	}
	if t.splits != nil {
		out = append(out, oneTable{t.splits.path, t.splits.ids})
	}
	if t.features != nil {
		out = append(out, oneTable{t.features.path, t.features.ids})
	}
	return out
}

// ids lists every id of all tables.
func (t tables) ids() (ids []string) {
	for _, x := range t.all() {
		ids = append(ids, x.ids...)
	}
	return ids
}

// match compares the ids of every table with those of the edges, before they are joined. A
// table that shares none is written in another way; ids without an edge are noted.
func (t *tables) match(inEdges func(id string) bool, one func() string) error {
	for _, x := range t.all() {
		strange, example := 0, ""
		for _, id := range x.ids {
			if !inEdges(id) {
				if strange++; strange == 1 {
					example = id
				}
			}
		}
		switch {
		case len(x.ids) > 0 && strange == len(x.ids):
			return badFile(x.path, "id", fmt.Sprintf("%.40q and %d others, none of which is an id of the edges (as %.40q is)",
				example, strange-1, one()), "the same ids as in the edge list", "write ids the same way in both files")
		case strange > 0:
			t.notes = append(t.notes, fmt.Sprintf("ids of %s that no edge names: %d, as %.40q; they are vertices without edges",
				filepath.Base(x.path), strange, example))
		}
	}
	return nil
}

// numbers returns the ids as numbers; errNames if one is not a number.
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

// badCell is why a row cannot be used.
type badCell struct {
	at        int    // which of the fields, 0 being the id; -1: the row as a whole
	found     string // "": the field or the row itself
	want, fix string
}

// isHeader is what a table returns for a row that holds the names of its columns.
var isHeader = &badCell{at: -1, want: "the names of columns on the first line only"}

// read reads a file of id,value,… lines. A header may say which column is the id, and that
// a column called one of the words comes first among the values. head, if any, gets the names
// of the columns.
func (t *tables) read(path string, words []string, add func(id string, fields []string) *badCell,
	head func(names []string) error) error {
	in, err := table.OpenText(path)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), 16<<20)
	r := &tableReader{path: path, words: words, add: add, head: head}
	for n := 1; lines.Scan(); n++ {
		line := bytes.Trim(lines.Bytes(), " \r")
		if comment(bytes.TrimSpace(line)) {
			continue
		}
		if err := r.line(n, line); err != nil {
			return err
		}
	}
	t.notes = append(t.notes, r.notes...)
	switch err := lines.Err(); {
	case err == bufio.ErrTooLong:
		return badFile(path, "", "a line above 16 MiB", "one row per line", "this is no table of vertices")
	case err == nil && r.rows == 1:
		return r.use(r.firstLine, r.first, true)
	default:
		return err
	}
}

// tableReader reads the rows of one table. The first row waits until the second shows
// whether it is a header.
type tableReader struct {
	path  string
	words []string
	add   func(id string, fields []string) *badCell
	head  func(names []string) error // may be nil

	layout    layout
	rows      int
	first     []string
	firstLine int
	headed    bool
	order     []int // of the columns; nil: as in the file
	notes     []string
}

func (r *tableReader) line(n int, line []byte) error {
	if r.rows++; r.rows == 1 {
		r.layout.delim = separator(line)
		r.first, r.firstLine = r.layout.split(line), n
		return nil
	}
	fields := r.layout.split(line)
	if r.headed && slices.Equal(fields, r.first) { // the file was concatenated from several
		return nil
	}
	if r.rows == 2 {
		if err := r.settleHeader(fields); err != nil {
			return err
		}
	}
	return r.use(n, fields, false)
}

// settleHeader decides from the second row whether the first is a header, and uses it if not.
func (r *tableReader) settleHeader(second []string) error {
	r.headed = isNumber([]byte(second[0])) && !isNumber([]byte(r.first[0])) ||
		named(r.first, idWords) >= 0 && named(r.first, r.words) >= 0 || wordsAboveNumbers(r.first, second)
	if err := r.plainValue(); err != nil {
		return err
	}
	if !r.headed {
		if err := r.use(r.firstLine, r.first, true); err != nil {
			return err
		}
	}
	if !r.headed {
		return nil
	}
	if r.order = vertexColumns(r.first, r.words); r.order != nil {
		r.notes = append(r.notes, fmt.Sprintf("by their names, %.60q, ids are column %d of %s, values column %d and others",
			strings.Join(r.first, ","), r.order[0]+1, filepath.Base(r.path), r.order[min(1, len(r.order)-1)]+1))
	}
	return r.announce()
}

// plainValue refuses a file of labels or splits that has several columns beside the id, none of which is called so.
func (r *tableReader) plainValue() error {
	beside := len(r.first) - 1
	if beside > 0 && r.first[0] == "" {
		beside--
	}
	if r.words == nil || beside < 2 || r.headed && named(r.first, r.words) >= 0 {
		return nil
	}
	return badFile(r.path, fmt.Sprintf("line %d", r.firstLine), fmt.Sprintf("%.200q, several columns beside the id, none of them called %s",
		strings.Join(r.first, ", "), r.words[0]), "an id and one value per line",
		"say which column it is: starling import table EDGES --vertices "+r.path+" --id COLUMN --label COLUMN")
}

// announce hands the names of the columns on.
func (r *tableReader) announce() error {
	if r.head == nil {
		return nil
	}
	return inPath(r.path, r.head(ordered(r.first, len(r.first), r.order)))
}

// use adds a row to the table. A row that may be a header, and is, is left out.
func (r *tableReader) use(n int, fields []string, mayHead bool) error {
	bad := &badCell{at: -1, want: "an id and a value"}
	fields = ordered(fields, len(r.first), r.order)
	if len(fields) >= 2 {
		bad = r.add(fields[0], fields[1:])
	}
	switch {
	case bad == nil:
		return nil
	case bad == isHeader && mayHead:
		r.headed = true
		return r.announce()
	}
	return r.refuse(n, fields, bad)
}

// refuse names the line, and the column by its place in the file and its name.
func (r *tableReader) refuse(n int, fields []string, bad *badCell) error {
	place, found := fmt.Sprintf("line %d", n), bad.found
	if bad.at >= 0 {
		column := bad.at
		if r.order != nil && column < len(r.order) {
			column = r.order[column]
		}
		place += fmt.Sprintf(", column %d", column+1)
		if r.headed && column < len(r.first) {
			place += fmt.Sprintf(" (%.40s)", r.first[column])
		}
		if found == "" {
			found = fmt.Sprintf("%.60q", fields[bad.at])
		}
	}
	if found == "" {
		found = fmt.Sprintf("%.60q", strings.Join(fields, ", "))
	}
	return badFile(r.path, place, found, bad.want, cmp.Or(bad.fix, "correct the line"))
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

// namesColumn tells whether a word is a name of a column of ids.
func namesColumn(id string) bool {
	return slices.Contains([]string{"id", "node", "nodeid", "node_id", "vertex", "vertex_id", "user_id", "name"},
		strings.ToLower(id))
}
