package graph

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"starling/event"
)

// A Preparation says how tables became the numbers of a dataset: which columns, what was done to each, and by which
// words, means and classes. It stands in preparation.json of the dataset, which meta.json lists with its checksum, and
// in config.json of every run, so that new tables, and new vertices of a server, become numbers in exactly that way.
//
//	a word that the preparation does not know    is a row of zeros, as a missing one
//	a missing number                             becomes Fill, if there is one, and is refused else
type Preparation struct {
	Format  string     `json:"format"`
	Version int        `json:"version"`
	Types   []PrepType `json:"types"`           // of vertices; one without a name: the graph has no types
	Edges   *PrepEdges `json:"edges,omitempty"` // of a graph without types
	CRC32C  string     `json:"crc32c,omitempty"`
}

// PrepType is how the table of a type of vertices was read.
type PrepType struct {
	Name     string       `json:"name,omitempty"`
	ID       string       `json:"id,omitempty"`      // column; "": rows are counted, or edges name them
	IDKind   string       `json:"id_kind,omitempty"` // number or text
	Features []PrepColumn `json:"features,omitempty"`
	Label    *PrepLabel   `json:"label,omitempty"`
	Split    string       `json:"split,omitempty"` // column
	Time     *PrepTime    `json:"time,omitempty"`
	Dropped  []string     `json:"dropped,omitempty"`
}

// PrepColumn is what became of a column of features: one number, a vector of Width, or a number of 0 and 1 per word.
type PrepColumn struct {
	Column string   `json:"column"`
	File   bool     `json:"file,omitempty"`  // in a file of its own, a row per vertex
	Width  int      `json:"width"`           // numbers in the dataset
	Words  []string `json:"words,omitempty"` // in the order of the numbers; nil: it is no column of words
	// Fill is what missing numbers become, before they are standardized; nil: they are refused.
	Fill []float32 `json:"fill,omitempty"`
	// Mean and Deviation standardize; nil: the numbers stay as they are.
	Mean      []float64 `json:"mean,omitempty"`
	Deviation []float64 `json:"deviation,omitempty"`
}

// PrepLabel is the column that is learnt.
type PrepLabel struct {
	Column  string   `json:"column"`
	Task    string   `json:"task"`              // SingleLabel or Regression
	Classes []string `json:"classes,omitempty"` // their names; none: they are numbers
	Count   int      `json:"count"`             // of classes
}

// PrepTime is a column of times. Dates are in one of the forms that importing knows, others are whole numbers.
type PrepTime struct {
	Column string `json:"column"`
	Dates  bool   `json:"dates,omitempty"`
	Form   string `json:"form,omitempty"` // of dates that are text
}

// PrepEdges is how the table of edges was read.
type PrepEdges struct {
	Source     string       `json:"source"`
	Target     string       `json:"target"`
	Weight     string       `json:"weight,omitempty"`
	Time       *PrepTime    `json:"time,omitempty"`
	Features   []PrepColumn `json:"features,omitempty"`
	Repeats    Repeats      `json:"repeats"`
	Symmetrize bool         `json:"symmetrize,omitempty"`
	SelfLoops  bool         `json:"self_loops,omitempty"`
	Negative   bool         `json:"negative_weights,omitempty"`
	Dropped    []string     `json:"dropped,omitempty"`
}

const (
	preparationFile   = "preparation.json"
	preparationFormat = "starling-preparation"
)

// Validate checks that widths, words, fills and scales agree.
func (p *Preparation) Validate() error {
	if p == nil {
		return nil
	}
	if p.Format != preparationFormat || p.Version != 1 {
		return badPreparation("format", fmt.Sprintf("%.40q, version %d", p.Format, p.Version), preparationFormat+", version 1")
	}
	columns := []PrepColumn{}
	for i := range p.Types {
		columns = append(columns, p.Types[i].Features...)
	}
	if e := p.Edges; e != nil {
		columns = append(columns, e.Features...)
		if !slices.Contains(AllRepeats, e.Repeats) {
			return badPreparation("edges.repeats", fmt.Sprintf("%.40q", e.Repeats), "sum, mean, count, keep or first")
		}
	}
	if len(p.Types) == 0 {
		return badPreparation("types", "none", "one at least")
	}
	for i := range columns {
		if err := columns[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func badPreparation(field, found, want string) error {
	return &InputError{File: preparationFile, Field: field, Found: found, Want: want,
		Fix: "the file is damaged: copy the folder again, or import the tables again"}
}

func (c *PrepColumn) validate() error {
	one := c.Width >= 1 && (c.Words == nil || len(c.Words) == c.Width && slices.IsSorted(c.Words)) && (c.Fill == nil || len(c.Fill) == c.Width) &&
		(c.Mean == nil || len(c.Mean) == c.Width) && len(c.Mean) == len(c.Deviation)
	if !one {
		return badPreparation(fmt.Sprintf("column %.60q", c.Column), fmt.Sprintf("%s, %s, %s, %s and %s",
			event.Tally(c.Width, "number"), event.Tally(len(c.Words), "word"), event.Tally(len(c.Fill), "fill"),
			event.Tally(len(c.Mean), "mean"), event.Tally(len(c.Deviation), "deviation")), "as many of each, or none")
	}
	for k := range c.Mean {
		if m, d := c.Mean[k], c.Deviation[k]; math.IsNaN(m) || math.IsInf(m, 0) || !(d > 0) || math.IsInf(d, 0) {
			return badPreparation(fmt.Sprintf("column %.60q", c.Column), fmt.Sprintf("mean %g and deviation %g", m, d),
				"finite numbers, the deviation above 0")
		}
	}
	return nil
}

// NewPreparation is an empty one.
func NewPreparation() *Preparation { return &Preparation{Format: preparationFormat, Version: 1} }

// Type is the type of a name; nil: there is none.
func (p *Preparation) Type(name string) *PrepType {
	if p == nil {
		return nil
	}
	for i := range p.Types {
		if p.Types[i].Name == name {
			return &p.Types[i]
		}
	}
	return nil
}

// Width is how many numbers the features of a vertex are.
func (t *PrepType) Width() int { return widthOf(t.Features) }

// Width is how many numbers the features of an edge are.
func (e *PrepEdges) Width() int { return widthOf(e.Features) }

func widthOf(columns []PrepColumn) (n int) {
	for i := range columns {
		n += columns[i].Width
	}
	return n
}

// ColumnNames are the names of the numbers that columns became: age, city=Oslo, emb[0]. FeatureMeta.Columns
// has them too.
func ColumnNames(columns []PrepColumn) (out []string) {
	for i := range columns {
		c := &columns[i]
		switch {
		case c.Words != nil:
			for _, word := range c.Words {
				out = append(out, c.Column+"="+word)
			}
		case c.Width == 1:
			out = append(out, c.Column)
		default:
			for k := range c.Width {
				out = append(out, fmt.Sprintf("%s[%d]", c.Column, k))
			}
		}
	}
	return out
}

// Named is the column of a name; nil: there is none.
func Named(columns []PrepColumn, name string) *PrepColumn {
	for i := range columns {
		if columns[i].Column == name {
			return &columns[i]
		}
	}
	return nil
}

// SetWord makes row, of Width numbers, those of a word; "" or an unknown one: zeros. known tells whether it was there.
func (c *PrepColumn) SetWord(row []float32, word string) (known bool) {
	clear(row)
	k, known := slices.BinarySearch(c.Words, word)
	if known {
		row[k] = 1
	}
	return known
}

// Finish fills in missing numbers (NaN) and standardizes. It returns the first that may not be missing, else -1.
func (c *PrepColumn) Finish(row []float32) (missing int) {
	for k, x := range row {
		if x != x {
			if c.Fill == nil {
				return k
			}
			x = c.Fill[k]
		}
		if c.Mean != nil {
			x = float32((float64(x) - c.Mean[k]) / c.Deviation[k])
		}
		row[k] = x
	}
	return -1
}

// Preparation writes preparation.json.
func (w *Writer) Preparation(p *Preparation) error {
	if err := p.Validate(); err != nil {
		return inFile(w.dir, err)
	}
	b, err := SealJSON(p, &p.CRC32C)
	if err != nil {
		return err
	}
	p.CRC32C = ""
	a, err := w.open(preparationFile)
	if err != nil {
		return err
	}
	if _, err := a.Write(b); err != nil {
		a.Abort()
		return err
	}
	return a.Close()
}

// loadPreparation reads preparation.json, if meta.json lists it.
func (d *Dataset) loadPreparation() error {
	if !d.has(preparationFile) {
		return nil
	}
	b, err := d.mapName(preparationFile)
	if err != nil {
		return err
	}
	p := &Preparation{}
	if err = UnsealJSON(b, p, &p.CRC32C); err == nil {
		err = p.Validate()
	}
	p.CRC32C = ""
	d.Meta.Preparation = p
	return InFile(filepath.Join(d.Dir, preparationFile), err)
}

// ReadPreparation reads preparation.json of a dataset folder; nil: it has none.
func ReadPreparation(dir string) (*Preparation, error) {
	m, err := ReadMeta(dir)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Dir: dir, Meta: *m, maps: map[string][]byte{}}
	defer d.Close()
	if err := d.loadPreparation(); err != nil || d.Meta.Preparation == nil {
		return nil, err
	}
	return d.Meta.Preparation, d.checkSum(preparationFile)
}

// Columns are the names of the columns that a type was read from, for messages.
func (t *PrepType) Columns() string {
	var names []string
	for i := range t.Features {
		names = append(names, fmt.Sprintf("%.60s", t.Features[i].Column))
	}
	return strings.Join(names, ", ")
}
