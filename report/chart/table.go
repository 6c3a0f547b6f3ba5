package chart

import "strconv"

// Table is rows that a reader may sort.
type Table struct {
	ID    string // of the page, so that its order outlives an update; "": none
	Heads []string
	Rows  []Line
}

// Left reports whether a column begins at the left, as its words do.
func (t *Table) Left(i int) bool {
	return len(t.Rows) > 0 && i < len(t.Rows[0].Cells) && t.Rows[0].Cells[i].Kind != ""
}

// Line is a row.
type Line struct {
	Kind  string
	Cells []Cell
}

// Cell is a text, with what it is sorted by where that is not the text.
type Cell struct {
	Text, Value, Kind string
	Share             int    // percent of a bar under it; 0: none
	Parts             []Part // of a bar under it, side by side
	More              string // a command that a click on the text shows
}

// Part is a piece of a bar, in percent of the longest.
type Part struct {
	Kind      string
	At, Width float64
}

// Bar is pieces side by side.
func Bar(kinds []string, widths []float64) (list []Part) {
	at := 0.0
	for i, w := range widths {
		list = append(list, Part{kinds[i], at, w})
		at += w
	}
	return list
}

// Fact is a number or word of note, and its name.
type Fact struct{ Name, Value string }

// Text is a cell of words.
func Text(s string) Cell { return Cell{Text: s} }

// Wide is a cell of words that may take several lines.
func Wide(s string) Cell { return Cell{Text: s, Kind: "text"} }

// Folded is a cell with a command that a click on its text shows.
func Folded(text, command string) Cell { return Cell{Text: text, More: command, Kind: "text more"} }

// Of is a cell of a number, as it is written.
func Of(x float64, text string) Cell {
	return Cell{Text: text, Value: strconv.FormatFloat(x, 'g', 8, 64)}
}
