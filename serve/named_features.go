package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"starling/graph"
)

// newFeatures are a new vertex's: a list of numbers, or the cells of a row of the table that the dataset was read
// from, by the names of its columns:
//
//	{"age": 34, "city": "Oslo", "emb": [0.1, 0.2]}
//
// A column that is left out, or null, is missing, and a word that the table did not have is a row of zeros, as
// graph.Preparation says.
type newFeatures struct {
	list[number]
	cells map[string]json.RawMessage
}

// UnmarshalJSON takes a list of numbers, or an object.
func (f *newFeatures) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return f.list.UnmarshalJSON(b)
	}
	if n := elements(b); n > f.most {
		return refuse(http.StatusBadRequest, "features: found %d, want at most %d in a request", n, f.most)
	}
	return json.Unmarshal(b, &f.cells)
}

// numbers are the features of a vertex of a type before they are standardized; the type has no name where the graph has
// no types.
func (f *newFeatures) numbers(p *graph.Preparation, kind string) ([]float32, error) {
	if f.cells == nil {
		return floats(f.all), nil
	}
	t := p.Type(kind)
	if t == nil {
		return nil, refuse(http.StatusBadRequest, "features: found names, want a list of numbers: the model's dataset was not "+
			"read from tables by import table or import schema")
	}
	for name := range f.cells {
		if graph.Named(t.Features, name) == nil {
			return nil, refuse(http.StatusBadRequest, "features: found %.80q, want columns of the table: %s", name, t.Columns())
		}
	}
	out := make([]float32, 0, t.Width())
	for i := range t.Features {
		c := &t.Features[i]
		row := make([]float32, c.Width)
		if err := takeCell(c, f.cells[c.Column], row); err != nil {
			return nil, refuse(http.StatusBadRequest, "features.%s: %v", c.Column, err)
		}
		out = append(out, row...)
	}
	return out, nil
}

// takeCell reads one cell.
func takeCell(c *graph.PrepColumn, b json.RawMessage, row []float32) error {
	missing := len(b) == 0 || string(b) == "null"
	switch {
	case c.Words != nil:
		word := ""
		if !missing && json.Unmarshal(b, &word) != nil {
			word = string(b) // a number may be a word of the table
		}
		if !missing && (b[0] == '{' || b[0] == '[') {
			return fmt.Errorf("found %.40s, want a word", b)
		}
		c.SetWord(row, strings.TrimSpace(word))
		return nil
	case missing && c.Fill == nil:
		return fmt.Errorf("found nothing, want %s, as the table had in every row", want(c.Width))
	case missing:
		copy(row, c.Fill)
		return nil
	case c.Width == 1:
		return takeNumbers(append(append([]byte{'['}, b...), ']'), row)
	}
	return takeNumbers(b, row)
}

func takeNumbers(b []byte, row []float32) error {
	var x []float64
	if err := json.Unmarshal(b, &x); err != nil || len(x) != len(row) {
		return fmt.Errorf("found %.60s, want %s", strings.Trim(string(b), "[]"), want(len(row)))
	}
	if slices.ContainsFunc(x, func(y float64) bool { return math.Abs(y) > math.MaxFloat32 }) {
		return fmt.Errorf("found %.60s, want numbers that a float32 can hold", b)
	}
	for k, y := range x {
		row[k] = float32(y)
	}
	return nil
}

func want(width int) string {
	if width == 1 {
		return "a number"
	}
	return fmt.Sprintf("a list of %d numbers", width)
}
