package chart

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestLongLinesKeepPeaks: of a line of many points few are drawn, and its extremes are among them.
func TestLongLinesKeepPeaks(t *testing.T) {
	s := Series{Name: "loss"}
	for i := range 50000 {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, math.Sin(float64(i)/3000))
	}
	s.Y[31234], s.Y[40001] = 9, -7
	d := s.drawn()
	if len(d.X) > mostPoints+2 || d.X[0] != 0 || d.X[len(d.X)-1] != 49999 {
		t.Fatalf("%d points, from %v to %v", len(d.X), d.X[0], d.X[len(d.X)-1])
	}
	low, high := 0.0, 0.0
	for i, y := range d.Y {
		low, high = min(low, y), max(high, y)
		if i > 0 && d.X[i] <= d.X[i-1] {
			t.Fatalf("%v after %v", d.X[i], d.X[i-1])
		}
	}
	if low != -7 || high != 9 {
		t.Errorf("from %v to %v", low, high)
	}
	p := NewLines("t", "a", []Series{s}, func(float64) string { return "" })
	p.Mark(25000, "lost", "x")
	p.Mark(60000, "lost", "beyond")
	if len(p.Marks) != 1 || math.Abs(p.Marks[0].At-50) > 0.1 {
		t.Errorf("%+v", p.Marks)
	}
}

// TestRow: shares are areas on each other, equal neighbours one area, and each column can be read back.
func TestRow(t *testing.T) {
	c := Column{Parts: []float64{0.75, 0.25}, Line: 0.5, For: 3}
	r := Row("rank 0", "", []Column{c, c, {For: -1}, {Parts: []float64{1, 0}, For: -1}}, []string{"a", "b"}, "l")
	if want := "2*75,25,50,3;,;100,,,"; r.Values != want {
		t.Errorf("%q, want %q", r.Values, want)
	}
	if len(r.Paths) != 3 || r.Paths[0].D != "M0 100h2v-75h-2zM3 100h1v-100h-1z" || r.Paths[1].D != "M0 25h2v-25h-2z" {
		t.Errorf("%+v", r.Paths)
	}
}

// TestHeat: every cell has its number, and the largest the strongest shade.
func TestHeat(t *testing.T) {
	h := NewHeat("c", "down", "across", "bytes", [][]float64{{0, 10}, {1, 0}}, func(float64) string { return "ten" })
	if h.Values != "0 10 1 0" || h.Most != "ten" || len(h.Shades) != 2 || h.Shades[1] != (Shade{100,
		"M1 0h1v1h-1z"}) {
		t.Errorf("%+v", h)
	}
	if NewHeat("c", "", "", "", [][]float64{{0}}, nil) != nil {
		t.Error("of nothing")
	}
}

// TestNamesAreText: no name becomes markup, wherever it is shown.
func TestNamesAreText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	page := New("p",
		`{{define "p"}}{{template "plot" .P}}{{template "strip" .S}}`+
			`{{template "table" .T}}{{template "heat" .H}}{{end}}`)
	p := NewLines(evil, evil, []Series{{Name: evil, X: []float64{1, 2}, Y: []float64{1, 2}}},
		func(float64) string { return evil })
	p.Mark(1, evil, evil)
	var b strings.Builder
	err := page.ExecuteTemplate(&b, "p", map[string]any{"P": p,
		"S": &Strip{Columns: 1, Labels: evil, Rows: []StripRow{Row(evil, evil, []Column{{For: -1}}, nil, evil)},
			Marks: []Mark{{Kind: evil}},
			Keys:  []Key{{evil, evil}}, Left: evil},
		"T": &Table{ID: evil, Heads: []string{evil}, Rows: []Line{{Kind: evil, Cells: []Cell{Text(evil), {Text: evil,
			Value: evil, Kind: evil}}}}},
		"H": &Heat{Caption: evil, Down: evil, Across: evil, Most: evil, Size: 1,
			Labels: []Label{{Kind: evil, Text: evil}}}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script") || strings.Contains(b.String(), "<img") {
		t.Error(b.String())
	}
}

// TestTicksDoNotMeet: texts on the horizontal axis are round numbers, with space between them.
func TestTicksDoNotMeet(t *testing.T) {
	inEpochs := func(x float64) string { return fmt.Sprintf("epoch %.0f", x) }
	for right, want := range map[float64]string{2: "", 10: "4 6 8", 60: "20 30 40 50", 100000: "40000 60000"} {
		p := NewLines("t", "a", []Series{{X: []float64{1, right}, Y: []float64{1, 2}}}, inEpochs)
		var got []string
		for _, tick := range p.Across {
			got = append(got, tick.Text)
		}
		if s := strings.Join(got, " "); s != want || p.Left != "epoch 1" || p.Right != fmt.Sprintf("%.0f", right) {
			t.Errorf("to %v: %q from %s to %s, want %q", right, s, p.Left, p.Right, want)
		}
	}
}
