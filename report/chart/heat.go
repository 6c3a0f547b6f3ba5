package chart

import (
	"fmt"
	"math"
	"strings"
)

// Heat is a square of numbers, the darker the larger.
type Heat struct {
	Caption, Down, Across string
	Most                  string // what the darkest is
	Unit                  string // how numbers are shown under the pointer: bytes, seconds or rows
	Size                  int
	Shades                []Shade
	Values                string  // row by row
	Letter                float64 // height of letters, in cells
	Labels                []Label
}

// Label is a number in a cell, or of a row or a column.
type Label struct {
	Kind, Text string
	X, Y       float64
}

// Shade is the cells of about one number.
type Shade struct {
	Share int // percent of the largest
	D     string
}

const shades = 10

// NewHeat draws rows of numbers; nil: all are 0. text is how a number is written.
func NewHeat(caption, down, across, unit string, rows [][]float64, text func(float64) string) *Heat {
	return newHeat(caption, down, across, unit, rows, text, func(share float64) float64 { return share })
}

// NewRootHeat shades by the root of numbers, so that small ones are visible.
func NewRootHeat(caption, down, across, unit string, rows [][]float64, text func(float64) string) *Heat {
	return newHeat(caption, down, across, unit, rows, text, math.Sqrt)
}

func newHeat(caption, down, across, unit string, rows [][]float64, text func(float64) string,
	scale func(share float64) float64) *Heat {
	h := &Heat{Caption: caption, Down: down, Across: across, Unit: unit, Size: len(rows)}
	most := 0.0
	for _, row := range rows {
		for _, x := range row {
			most = max(most, x)
		}
	}
	if most == 0 {
		return nil
	}
	h.Most = text(most)
	h.label(rows, text)
	var cells [shades + 1]strings.Builder
	var values []string
	for y, row := range rows {
		for x, v := range row {
			if shade := int(shades*scale(v/most) + 0.999); shade > 0 {
				fmt.Fprintf(&cells[shade], "M%d %dh1v1h-1z", x, y)
			}
			values = append(values, compact(v))
		}
	}
	for k := range cells {
		if cells[k].Len() > 0 {
			h.Shades = append(h.Shades, Shade{100 * k / shades, cells[k].String()})
		}
	}
	h.Values = strings.Join(values, " ")
	return h
}

const (
	// mostNumbered rows have their numbers in the cells, and mostLabelled theirs beside them.
	mostNumbered, mostLabelled = 5, 24
	// letterShare is the height of letters, as a share of the whole.
	letterShare = 0.042
)

// label adds the numbers of rows and columns, and of cells where these are large.
func (h *Heat) label(rows [][]float64, text func(float64) string) {
	n := float64(len(rows))
	h.Letter = letterShare * n
	if len(rows) > mostLabelled {
		return
	}
	for i := range rows {
		number := fmt.Sprint(i)
		h.Labels = append(h.Labels, Label{"of-row", number, -h.Letter / 2, float64(i) + 0.5},
			Label{"of-column", number, float64(i) + 0.5, n + h.Letter})
		for j, x := range rows[i] {
			if len(rows) <= mostNumbered && x > 0 {
				h.Labels = append(h.Labels, Label{"of-cell", text(x), float64(j) + 0.5, float64(i) + 0.5})
			}
		}
	}
}
