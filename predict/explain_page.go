package predict

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"sync"

	"starling/report/chart"
	"starling/serve"
)

// The page has a picture for each vertex: the vertex in the middle, what mattered around it, nearer rings for fewer
// hops, and edges as thick as their scores.

const (
	pictureSize = 560
	drawnEdges  = 25
)

//go:embed explain.html
var explainText string

var explainTemplate = sync.OnceValue(func() *template.Template { return chart.New("explain", explainText) })

// explainPage is the data of the template.
type explainPage struct {
	Title    string
	Sections []explained
}

// explained is why a vertex has its prediction.
type explained struct {
	Title, Text, Vertex string
	Edges, Columns      *chart.Table
	Size                int // of the picture
	Lines               []pictureLine
	Dots                []pictureDot
}

// pictureLine is an edge, and pictureDot a vertex, of a picture.
type pictureLine struct {
	X1, Y1, X2, Y2, Width string
	Against               bool // the prediction
}

type pictureDot struct {
	X, Y, TextX, TextY, Name string
	Left, Centre             bool // its name is to the left; it is the vertex of the prediction
}

// page writes the page, which refers to nothing elsewhere.
func (e *Explained) page(w io.Writer) error {
	p := explainPage{Title: fmt.Sprintf("%s on %s", e.Run, e.Dataset)}
	for _, x := range e.Explanations {
		p.Sections = append(p.Sections, sectionOf(x))
	}
	return explainTemplate().Execute(w, p)
}

func sectionOf(x *serve.Explanation) explained {
	s := explained{Title: fmt.Sprintf("%s: predicted %s", named(x.Type, x.Vertex), predictedOf(x)), Vertex: x.Vertex,
		Text: fmt.Sprintf("Explained by %s. Fidelity+ %.4f, fidelity- %.4f: how far the prediction moves without the "+
			"%d best edges, and with these alone. It depends on %d vertices and %d edges; %d edges were dropped one "+
			"by one.",
			x.Method, x.FidelityPlus, x.FidelityMinus, x.Kept, x.Vertices, x.AllEdges, x.Scored), Size: pictureSize}
	s.Edges = &chart.Table{Heads: []string{"edge", "score"}}
	for _, g := range x.Edges[:x.Kept] {
		s.Edges.Rows = append(s.Edges.Rows, scored(fmt.Sprintf("%s → %s%s", named(g.SourceType, g.Source),
			named(g.TargetType, g.Target), relationOf(g)), g.Score))
	}
	if len(x.Columns) > 0 {
		s.Columns = &chart.Table{Heads: []string{"column", "score"}}
	}
	for _, c := range x.Columns[:min(len(x.Columns), shown)] {
		s.Columns.Rows = append(s.Columns.Rows, scored(named(c.Type, c.Column), c.Score))
	}
	s.picture(x)
	return s
}

func scored(name string, score float64) chart.Line {
	return chart.Line{Cells: []chart.Cell{chart.Wide(name), chart.Of(score, fmt.Sprintf("%.4f", score))}}
}

// picture draws the best edges and their ends.
func (s *explained) picture(x *serve.Explanation) {
	edges := x.Edges[:min(len(x.Edges), drawnEdges)]
	hops := map[string]int{named(x.Type, x.Vertex): 0}
	for _, n := range x.Near {
		hops[named(n.Type, n.Vertex)] = n.Hops
	}
	most, rings, ring := 1e-12, map[int]int{}, map[string]int{}
	var order []string
	for _, g := range edges {
		most = math.Max(most, math.Abs(g.Score))
		for _, v := range []string{named(g.TargetType, g.Target), named(g.SourceType, g.Source)} {
			if _, seen := ring[v]; !seen {
				ring[v] = rings[hops[v]]
				rings[hops[v]]++
				order = append(order, v)
			}
		}
	}
	place := func(v string) (px, py float64) {
		h := hops[v]
		angle := 2*math.Pi*float64(ring[v])/float64(max(rings[h], 1)) + 0.4*float64(h)
		r := float64(h) * pictureSize / 2.6 / float64(max(len(rings)-1, 1))
		return pictureSize/2 + r*math.Cos(angle), pictureSize/2 + r*math.Sin(angle)
	}
	at := func(x float64) string { return fmt.Sprintf("%.1f", x) }
	for _, g := range edges {
		x1, y1 := place(named(g.SourceType, g.Source))
		x2, y2 := place(named(g.TargetType, g.Target))
		s.Lines = append(s.Lines, pictureLine{at(x1), at(y1), at(x2), at(y2), at(0.5 + 5*math.Abs(g.Score)/most),
			g.Score < 0})
	}
	for _, v := range order {
		px, py := place(v)
		d := pictureDot{X: at(px), Y: at(py), TextX: at(px + 9), TextY: at(py + 4), Name: v, Centre: hops[v] == 0}
		if px > pictureSize*3/4 { // else it would leave the picture
			d.Left, d.TextX = true, at(px-9)
		}
		s.Dots = append(s.Dots, d)
	}
}
