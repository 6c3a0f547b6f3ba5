package chart

import "strconv"

// Table is rows that a reader may sort.
type Table struct {
	ID    string // of the page, so that its order outlives an update; "": none
	Heads []string
	Rows  []Line
}

// Line is a row.
type Line struct {
	Kind  string
	Cells []Cell
}

// Cell is a text, with what it is sorted by where that is not the text.
type Cell struct {
	Text, Value, Kind string
	Share             int // percent of a bar under it; 0: none
}

// Text is a cell of words.
func Text(s string) Cell { return Cell{Text: s} }

// Wide is a cell of words that may take several lines.
func Wide(s string) Cell { return Cell{Text: s, Kind: "text"} }

// Of is a cell of a number, as it is written.
func Of(x float64, text string) Cell {
	return Cell{Text: text, Value: strconv.FormatFloat(x, 'g', 8, 64)}
}
