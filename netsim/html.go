package netsim

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
	"sync"
)

// HTML is the result as one page that needs nothing else: the tiers of links, and the charted
// ports' queue and utilisation over time.
func (r *Result) HTML() []byte { return Page([]Section{{Result: r}}) }

// Section is a result on a page of several.
type Section struct {
	Title string // "": none
	*Result
}

// Page is results as one page, one below the other.
func Page(list []Section) []byte {
	var views []*view
	for _, s := range list {
		views = append(views, s.view())
	}
	var b bytes.Buffer
	if err := page().Execute(&b, views); err != nil {
		panic(err) // a bug: the template and its data are part of the program
	}
	return b.Bytes()
}

// view is a result and its charts.
type view struct {
	Section
	Plots []plot
}

// plot is one quantity of all charted ports over time.
type plot struct {
	Title, Top, End string
	Lines           []line
}

type line struct {
	Name, Points string
	Colour       int
}

const plotWidth, plotHeight, plotColours = 900, 220, 8

func (r Section) view() *view {
	v := &view{Section: r}
	if len(r.Charts) == 0 {
		return v
	}
	var end float64
	var peak int64
	for _, c := range r.Charts {
		peak = max(peak, c.PeakQueue)
		if k := len(c.Samples); k > 0 {
			end = max(end, c.Samples[k-1].Seconds)
		}
	}
	if peak > 0 {
		v.Plots = append(v.Plots, r.plot("Queue, peak in each interval", size(peak), end,
			func(s *Sample) float64 { return float64(s.PeakQueue) / float64(peak) }))
	}
	v.Plots = append(v.Plots, r.plot("Utilisation", "100%", end, func(s *Sample) float64 { return s.Utilisation }))
	return v
}

// plot draws one line per port; height is between 0 and 1.
func (r *Result) plot(title, top string, end float64, height func(*Sample) float64) plot {
	p := plot{Title: title, Top: top, End: seconds(end)}
	for i, c := range r.Charts {
		var points strings.Builder
		for k := range c.Samples {
			s := &c.Samples[k]
			fmt.Fprintf(&points, "%.1f,%.1f ", s.Seconds/max(end, 1e-12)*plotWidth, plotHeight*(1-height(s)))
		}
		p.Lines = append(p.Lines, line{c.Name, points.String(), i % plotColours})
	}
	return p
}

// size writes bytes with their unit.
func size(n int64) string {
	x, units := float64(n), []string{"B", "KB", "MB", "GB", "TB"}
	for x >= 1000 && len(units) > 1 {
		x, units = x/1000, units[1:]
	}
	return fmt.Sprintf("%.3g %s", x, units[0])
}

// seconds writes a time with its unit.
func seconds(s float64) string {
	for _, u := range []struct {
		factor float64
		name   string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}} {
		if s >= u.factor {
			return fmt.Sprintf("%.4g %s", s/u.factor, u.name)
		}
	}
	return fmt.Sprintf("%.4g ns", s*1e9)
}

// page is parsed on first use, to keep the program's start fast.
var page = sync.OnceValue(func() *template.Template {
	share := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
	mean := func(x float64) string { return size(int64(x)) }
	return template.Must(template.New("page").Funcs(template.FuncMap{"size": size, "seconds": seconds, "share": share,
		"mean": mean}).Parse(pageText))
})

const pageText = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Simulated workers</title>
<style>
:root{--text:#223;--quiet:#567;--line:#e4e8ef;--page:#fff}
@media(prefers-color-scheme:dark){:root{--text:#dde3ea;--quiet:#9ab;--line:#333c48;--page:#14181e}}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:var(--text);
background:var(--page)}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2.2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}.scroll{overflow-x:auto}
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}thead th{color:var(--quiet);font-weight:600}
.facts td{white-space:normal;text-align:left}.facts td:first-child{color:var(--quiet)}
svg{width:100%;height:auto;border:1px solid var(--line)}polyline{fill:none;stroke-width:1.5}
text{font-size:12px;fill:var(--quiet)}.key span{display:inline-block;margin-right:1.2em}
.c0{stroke:#4a7fb5;color:#4a7fb5}.c1{stroke:#d1743c;color:#d1743c}.c2{stroke:#4f9d69;color:#4f9d69}
.c3{stroke:#b5489a;color:#b5489a}.c4{stroke:#8a7a2f;color:#8a7a2f}.c5{stroke:#6a5acd;color:#6a5acd}
.c6{stroke:#2a9d9d;color:#2a9d9d}.c7{stroke:#c0504d;color:#c0504d}
</style></head><body>
{{range .}}<h1>{{with .Title}}{{.}}: {{end}}{{.Workers}} workers on a simulated network</h1>
<table class="facts">
<tr><td>network</td><td>{{.Topology}}</td></tr>
<tr><td>hosts, level</td><td>{{.Hosts}}, {{.Level}}</td></tr>
<tr><td>virtual time</td><td>{{seconds .Seconds}}</td></tr>
<tr><td>packets arrived, dropped, marked, sent again</td>
<td>{{.Packets}}, {{.Drops}}, {{.Marks}}, {{.Resent}}</td></tr>
{{with .Background}}<tr><td>background traffic</td>
<td>load {{share .Load}}, seed {{.Seed}}: {{.Begun}} transfers, {{size .Bytes}};
slowdown {{printf "%.2f" .Median}} (median), {{printf "%.2f" .P99}} (99%)</td></tr>{{end}}
</table>
<h2>Links</h2>
<div class="scroll"><table><thead><tr><th>links</th><th>number</th><th>bytes</th><th>utilisation, mean</th>
<th>largest</th><th>queue, mean</th><th>peak</th><th>drops</th><th>marks</th></tr></thead>
{{range .Tiers}}<tr><td>{{.Name}}</td><td>{{.Links}}</td><td>{{size .Bytes}}</td><td>{{share .MeanUtilisation}}</td>
<td>{{share .MaxUtilisation}}</td><td>{{mean .MeanQueue}}</td><td>{{size .PeakQueue}}</td><td>{{.Drops}}</td>
<td>{{.Marks}}</td></tr>
{{end}}</table></div>
{{range .Plots}}<h2>{{.Title}}</h2>
<svg viewBox="0 -6 900 246" role="img" aria-label="{{.Title}}">{{range .Lines}}<polyline class="c{{.Colour}}"
points="{{.Points}}"><title>{{.Name}}</title></polyline>{{end}}
<text x="4" y="8">{{.Top}}</text><text x="4" y="236">0</text>
<text x="896" y="236" text-anchor="end">{{.End}}</text></svg>
<p class="key">{{range .Lines}}<span class="c{{.Colour}}">■ {{.Name}}</span>{{end}}</p>
{{end}}{{end}}</body></html>
`
