package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Strip is what each of several workers does over time: a row per worker, each column divided by shares.
type Strip struct {
	Rows        []StripRow
	Columns     int
	From, Step  float64 // seconds of the first column, and of each
	Left, Right string
	Marks       []Mark // At in columns
	Keys        []Key
	Labels      string // of the parts, for the values under the pointer
}

// StripRow is a worker.
type StripRow struct {
	Name, About string
	At          int // its place, from 1; Add sets it
	Paths       []Path
	Values      string // whole percents of each column, and the worker that was waited for: 80,20,,,,3
}

// Path is an area of one colour.
type Path struct{ Kind, D string }

// Add appends a row.
func (s *Strip) Add(r StripRow) {
	r.At = len(s.Rows) + 1
	s.Rows = append(s.Rows, r)
}

// Mark adds a moment, in columns, unless another one is there.
func (s *Strip) Mark(at float64, kind, text string) {
	near := float64(s.Columns) / 200
	if !slices.ContainsFunc(s.Marks, func(m Mark) bool { return m.Kind == kind && math.Abs(m.At-at) < near }) {
		s.Marks = append(s.Marks, Mark{at, kind, text})
	}
}

// Key explains a colour.
type Key struct{ Kind, Text string }

// Column is what a worker did in a stretch of time, in shares of it: the parts add up to at most 1, and the rest is
// unknown. Line is drawn over the others. For is a worker, or -1.
type Column struct {
	Parts []float64
	Line  float64
	For   int
}

// Row draws the columns of a worker. kinds are the classes of parts, and of the line.
func Row(name, about string, columns []Column, kinds []string, line string) StripRow {
	r := StripRow{Name: name, About: about}
	paths := make([]strings.Builder, len(kinds)+1)
	var values []string
	for i := 0; i < len(columns); {
		n := 1 // columns that look the same
		text := columns[i].text()
		for i+n < len(columns) && columns[i+n].text() == text {
			n++
		}
		if n > 1 {
			text = fmt.Sprintf("%d*%s", n, text)
		}
		values = append(values, text)
		columns[i].draw(paths, i, n)
		i += n
	}
	for k, b := range paths {
		if b.Len() > 0 {
			kind := line
			if k < len(kinds) {
				kind = kinds[k]
			}
			r.Paths = append(r.Paths, Path{kind, b.String()})
		}
	}
	r.Values = strings.Join(values, ";")
	return r
}

// text is the column in whole percents.
func (c *Column) text() string {
	var b strings.Builder
	for _, p := range append(c.Parts[:len(c.Parts):len(c.Parts)], c.Line) {
		if n := percent(p); n > 0 {
			fmt.Fprint(&b, n)
		}
		b.WriteByte(',')
	}
	if c.For >= 0 {
		fmt.Fprint(&b, c.For)
	}
	return b.String()
}

func percent(x float64) int { return int(100*min(max(x, 0), 1) + 0.5) }

// draw adds n equal columns to the areas, from below.
func (c *Column) draw(paths []strings.Builder, at, n int) {
	y := 100
	for k, p := range c.Parts {
		if h := min(percent(p), y); h > 0 {
			fmt.Fprintf(&paths[k], "M%d %dh%dv-%dh-%dz", at, y, n, h, n)
			y -= h
		}
	}
	if h := percent(c.Line); h > 0 {
		fmt.Fprintf(&paths[len(c.Parts)], "M%d 100h%dv-%dh-%dz", at, n, max(h/6, 4), n)
	}
}
