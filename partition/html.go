package partition

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"
	"sync"
)

// HTML is the report as one page that needs nothing else: sizes of the parts, the
// traffic between them as a heat map, and what other methods would have given.
func (r *Report) HTML() []byte {
	var b bytes.Buffer
	if err := page().Execute(&b, r.view()); err != nil {
		panic(err) // a bug: the template and its data are part of the program
	}
	return b.Bytes()
}

type view struct {
	*Report
	Balances []balanceRow
	PartRows []partRow
	Cells    [][]cell
	Others   []otherRow
	Compact  bool // too many parts for numbers in the cells
	Axis     []string
	Scale    []scaleStep
	Left     []leftOut
}

// scaleStep is one colour of the heat map's scale.
type scaleStep struct {
	Shade  template.CSS
	Strong bool
	Text   string
}

// leftOut is a method that the page has no figures of, and why.
type leftOut struct{ Method, Why string }

type balanceRow struct {
	Name  string
	Value float64
}

type partRow struct {
	Part, Server                 int
	Core, Edges, Remote          int64
	CoreBar, EdgesBar, RemoteBar float64 // percent of the largest
	Sent                         int64
	Memory                       string
}

type cell struct {
	Title, Text string
	Shade       template.CSS // the share of the most, for the style sheet
	Strong      bool         // the text is on a strong colour
}

// axisLabel is the number of a part where it fits.
func (v *view) axisLabel(part int) string {
	if v.Compact && part%8 != 0 {
		return ""
	}
	return fmt.Sprint(part)
}

type otherRow struct {
	Compared
	Chosen   bool
	Bytes    string
	Balances []string // in the order of the report's own
}

func (r *Report) view() *view {
	v := &view{Report: r, Compact: r.Parts > 24}
	for _, name := range r.Constraints() {
		v.Balances = append(v.Balances, balanceRow{name, r.Balance[name]})
	}
	sent := make([]int64, r.Parts)
	for _, row := range r.Traffic {
		for q, rows := range row {
			sent[q] += rows
		}
	}
	each := max(r.Parts/max(r.Servers, 1), 1)
	for k := range r.Parts {
		v.PartRows = append(v.PartRows, partRow{Part: k, Server: k / each, Core: r.Core[k], Edges: r.CoreEdges[k],
			Remote:  r.Remote[k],
			CoreBar: percent(r.Core[k], r.Core), EdgesBar: percent(r.CoreEdges[k], r.CoreEdges),
			RemoteBar: percent(r.Remote[k], r.Remote),
			Sent:      sent[k], Memory: size(r.Plan.Memory[k])})
	}
	v.Cells, v.Scale = r.cells(), r.scale()
	for k := range r.Parts {
		v.Axis = append(v.Axis, v.axisLabel(k))
	}
	v.Left = r.leftOut()
	for _, c := range r.Compared {
		o := otherRow{Compared: c, Chosen: c.Method == r.Method, Bytes: size(c.EpochBytes)}
		for _, b := range v.Balances {
			o.Balances = append(o.Balances, fmt.Sprintf("%.3f", c.Balance[b.Name]))
		}
		v.Others = append(v.Others, o)
	}
	return v
}

// cells shades each pair of parts by its rows, on a square-root scale so that light traffic
// is visible. One hue, further from the page's background is more, for readers with colour blindness
// and in dark mode.
func (r *Report) cells() [][]cell {
	var most int64 = 1
	for _, row := range r.Traffic {
		most = max(most, slices.Max(row))
	}
	out := make([][]cell, r.Parts)
	for p, row := range r.Traffic {
		for q, rows := range row {
			c := cell{Title: fmt.Sprintf("part %d needs %s rows from part %d", p, grouped(rows), q), Text: short(rows)}
			if p == q {
				c.Title, c.Text = "itself", ""
			}
			share := math.Sqrt(float64(rows) / float64(most))
			c.Shade, c.Strong = template.CSS(fmt.Sprintf("--share:%.2f", share)), share > 0.6
			out[p] = append(out[p], c)
		}
	}
	return out
}

// scale is what the shades stand for.
func (r *Report) scale() (steps []scaleStep) {
	var most int64
	for _, row := range r.Traffic {
		most = max(most, slices.Max(row))
	}
	for i := range 5 {
		share := float64(i) / 4
		steps = append(steps, scaleStep{template.CSS(fmt.Sprintf("--share:%.2f", share)), share > 0.6,
			short(int64(math.Round(share * share * float64(most))))})
	}
	return steps
}

// leftOut names the methods that were not run for the page.
func (r *Report) leftOut() (list []leftOut) {
	if len(r.Compared) == 0 {
		return nil
	}
	for _, e := range entries() {
		has := func(c Compared) bool { return c.Method == e.name }
		if slices.ContainsFunc(r.Compared, has) {
			continue
		}
		why := "takes longer than the methods above; cut with --method " + e.name + " to see it"
		if e.name == "metis" {
			why = "needs the library METIS; cut with --method metis to see it"
		}
		list = append(list, leftOut{e.name, why})
	}
	return list
}

func percent(x int64, all []int64) float64 {
	return 100 * float64(x) / float64(max(slices.Max(all), 1))
}

// grouped writes a number with thousands separators.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes a number in few characters: 12, 3.4k, 5.6M.
func short(n int64) string {
	switch x := float64(n); {
	case n >= 1e9:
		return fmt.Sprintf("%.1fG", x/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", x/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.0fk", x/1e3)
	case n >= 1e3:
		return fmt.Sprintf("%.1fk", x/1e3)
	}
	return fmt.Sprint(n)
}

// size writes bytes with their unit.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, u := float64(n), 0
	for x >= 1024 && u < len(units)-1 {
		x /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

// page is parsed on first use, to keep the program's start fast.
var page = sync.OnceValue(func() *template.Template {
	share := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
	return template.Must(template.New("page").Funcs(template.FuncMap{"size": size, "count": grouped,
		"share": share}).Parse(pageText))
})

const pageText = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{{.Dataset}} in {{.Parts}} parts</title>
<style>
:root{--text:#223;--quiet:#567;--line:#e4e8ef;--page:#fff;--chosen:#fff7e0;--bar:#4a7fb5}
@media(prefers-color-scheme:dark){:root{--text:#dde3ea;--quiet:#9ab;--line:#333c48;--page:#14181e;--chosen:#3a3217;--bar:#6aa0d8}}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:var(--text);background:var(--page)}
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2.2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}th:first-child,td:first-child{text-align:left;padding-left:0}
.row th:first-child,.row td:first-child{text-align:right;padding-left:.6rem}
thead th{color:var(--quiet);font-weight:600}.chosen{background:var(--chosen);font-weight:600}
.bar{display:block;height:.3em;background:var(--bar);margin:.1em 0 .2em auto}
.facts td{white-space:normal}.facts td:first-child{color:var(--quiet)}.scroll{overflow-x:auto}
.heat td,.heat th{padding:{{if .Compact}}0;min-width:10px;height:10px;font-size:9px;line-height:10px{{else}}.25rem .4rem;font-size:12px{{end}};text-align:center;border:1px solid var(--page)}
.shade{--light:calc(96% - 62% * var(--share));background:hsl(212 55% var(--light));color:#123}.shade.strong{color:#fff}
@media(prefers-color-scheme:dark){.shade{--light:calc(14% + 62% * var(--share));color:#e6eef8}.shade.strong{color:#0b1420}}
.scale span{display:inline-block;padding:.1rem .6rem;min-width:2rem;text-align:center}
small{color:var(--quiet);font-weight:400;font-size:.85em}
</style></head><body>
<h1>{{.Dataset}}: {{.Parts}} parts by {{.Method}}</h1>
<table class="facts">
<tr><td>vertices, edges</td><td>{{count .Vertices}}, {{count .Edges}}</td></tr>
<tr><td>edge cut</td><td>{{count .EdgeCut}} ({{share .EdgeCutShare}} of all)</td></tr>
<tr><td>communication volume</td><td>{{count .CommVolume}} rows</td></tr>
<tr><td>remote vertices, most and fewest</td><td>{{count .RemoteMax}}, {{count .RemoteMin}} ({{printf "%.3f" .RemoteMaxOverMin}} times)</td></tr>
{{if gt .Servers 1}}<tr><td>rows between servers</td><td>{{count .BetweenServers}}</td></tr>{{end}}
<tr><td>feature rows of all halos</td><td>{{size .HaloBytes}}</td></tr>
<tr><td>sent in an epoch of {{with .Plan.Trained}}{{.}}{{else}}{{len .Plan.Layers}}-layer {{.Plan.Model}}{{end}} on the full graph</td><td>{{size .Plan.EpochBytes}}</td></tr>
{{with .Plan.Sampled}}<tr><td>pulled in an epoch of batches of {{.BatchSize}}, neighbours {{.Fanout}}</td><td>about {{size .EpochBytes}}; {{share .RemoteShare}} of rows are remote</td></tr>{{end}}
<tr><td>found in</td><td>{{printf "%.2f" .Seconds}} s</td></tr>
</table>
{{range .Notes}}<p><b>Note:</b> {{.}}</p>{{end}}
<h2>Balance <small>heaviest part over the mean</small></h2>
<div class="scroll"><table class="row"><thead><tr>{{range .Balances}}<th>{{.Name}}</th>{{end}}</tr></thead><tr>{{range .Balances}}<td>{{printf "%.3f" .Value}}</td>{{end}}</tr></table></div>
<h2>Traffic <small>rows that the part on the left needs from the part above, in each layer; stronger is more</small></h2>
<div class="scroll"><table class="heat"><tr><th></th>{{range .Axis}}<th>{{.}}</th>{{end}}</tr>
{{range $p, $row := .Cells}}<tr><th>{{index $.Axis $p}}</th>{{range $row}}<td title="{{.Title}}" class="shade{{if .Strong}} strong{{end}}" style="{{.Shade}}">{{if not $.Compact}}{{.Text}}{{end}}</td>{{end}}</tr>
{{end}}</table></div>
<p class="scale">rows: {{range .Scale}}<span class="shade{{if .Strong}} strong{{end}}" style="{{.Shade}}">{{.Text}}</span>{{end}}</p>
<h2>Parts <small>bars: of the largest part</small></h2>
<div class="scroll"><table><thead><tr><th>part</th>{{if gt .Servers 1}}<th>server</th>{{end}}<th>vertices</th><th>in-edges</th><th>remote vertices</th><th>rows sent</th><th>memory, about</th></tr></thead>
{{range .PartRows}}<tr><td>{{.Part}}</td>{{if gt $.Servers 1}}<td>{{.Server}}</td>{{end}}
<td>{{count .Core}}<span class="bar" style="width:{{printf "%.1f" .CoreBar}}%"></span></td>
<td>{{count .Edges}}<span class="bar" style="width:{{printf "%.1f" .EdgesBar}}%"></span></td>
<td>{{count .Remote}}<span class="bar" style="width:{{printf "%.1f" .RemoteBar}}%"></span></td>
<td>{{count .Sent}}</td><td>{{.Memory}}</td></tr>
{{end}}</table></div>
{{if .Others}}<h2>What each method gives <small>the last columns: balance, heaviest part over the mean</small></h2>
<div class="scroll"><table><thead><tr><th>method</th><th>edge cut</th><th>volume</th><th>remote max/min</th><th>sent in an epoch</th><th>found in</th>{{range .Balances}}<th>{{.Name}}</th>{{end}}</tr></thead>
{{range .Others}}<tr{{if .Chosen}} class="chosen"{{end}}><td>{{.Method}}</td><td>{{count .EdgeCut}}</td><td>{{count .CommVolume}}</td><td>{{printf "%.3f" .RemoteMaxOverMin}}</td><td>{{.Bytes}}</td><td>{{printf "%.2f" .Seconds}} s</td>{{range .Balances}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table></div>
{{if .Left}}<p>Not compared:</p><ul>{{range .Left}}<li>{{.Method}}: {{.Why}}</li>{{end}}</ul>{{end}}{{end}}
</body></html>
`
