package predict

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"starling/serve"
)

// The page has a picture for each vertex: the vertex in the middle, what mattered around it, nearer rings for fewer
// hops, and edges as thick as their scores.

const (
	pictureSize = 560
	drawnEdges  = 25
)

// page writes the page, which refers to nothing elsewhere.
func (e *Explained) page(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`<!doctype html><meta charset="utf-8"><title>Explanations</title><style>body{font:15px sans-serif;` +
		`max-width:960px;margin:2em auto;padding:0 1em}td,th{padding:2px 12px 2px 0;text-align:left}` +
		`td:first-child{text-align:right;font-variant-numeric:tabular-nums}svg{max-width:100%}</style>`)
	fmt.Fprintf(&b, "<h1>%s on %s</h1>\n", html.EscapeString(e.Run), html.EscapeString(e.Dataset))
	for _, x := range e.Explanations {
		section(&b, x)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func section(b *strings.Builder, x *serve.Explanation) {
	text := html.EscapeString
	fmt.Fprintf(b, "<h2>%s: predicted %s</h2>\n<p>Explained by %s. Fidelity+ %.4f, fidelity- %.4f: how far the "+
		"prediction moves without the %d best edges, and with these alone. It depends on %d vertices and %d edges; %d edges "+
		"were dropped one by one.</p>\n", text(named(x.Type, x.Vertex)), text(predictedOf(x)), text(x.Method),
		x.FidelityPlus, x.FidelityMinus, x.Kept, x.Vertices, x.AllEdges, x.Scored)
	picture(b, x)
	b.WriteString("<table><tr><th>score<th>edge</tr>\n")
	for _, g := range x.Edges[:x.Kept] {
		fmt.Fprintf(b, "<tr><td>%.4f<td>%s → %s%s</tr>\n", g.Score, text(named(g.SourceType, g.Source)),
			text(named(g.TargetType, g.Target)), text(relationOf(g)))
	}
	b.WriteString("</table>\n<table><tr><th>score<th>column</tr>\n")
	for _, c := range x.Columns[:min(len(x.Columns), shown)] {
		fmt.Fprintf(b, "<tr><td>%.4f<td>%s</tr>\n", c.Score, text(named(c.Type, c.Column)))
	}
	b.WriteString("</table>\n")
}

// picture draws the best edges and their ends.
func picture(b *strings.Builder, x *serve.Explanation) {
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
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %d" width="%d" role="img"><title>what mattered around %s</title>`, pictureSize,
		pictureSize, pictureSize, html.EscapeString(x.Vertex))
	for _, g := range edges {
		x1, y1 := place(named(g.SourceType, g.Source))
		x2, y2 := place(named(g.TargetType, g.Target))
		color := "#2a78b8"
		if g.Score < 0 {
			color = "#c0504d"
		}
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f" `+
			`stroke-opacity="0.7"/>`,
			x1, y1, x2, y2, color, 0.5+5*math.Abs(g.Score)/most)
	}
	for _, v := range order {
		px, py := place(v)
		fill := "#888"
		if hops[v] == 0 {
			fill = "#e09a2b"
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="7" fill="%s"/>`+
			`<text x="%.1f" y="%.1f" font-size="11">%s</text>`, px, py, fill, px+9, py+4, html.EscapeString(v))
	}
	b.WriteString("</svg>\n<p>Blue edges support the prediction, red ones speak against it.</p>\n")
}
