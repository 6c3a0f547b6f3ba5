package plan

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"starling/cost"
	"starling/disk"
	"starling/event"
	"starling/report"
	"starling/spec"
	"starling/train"
)

// Choices are what a run could do, best first: exact ones, then approximate ones.
type Choices struct {
	Dataset  string    `json:"dataset"`
	Model    string    `json:"model"`
	Mode     string    `json:"mode"`
	Vertices int64     `json:"vertices"`
	Edges    int64     `json:"edges"`
	Workers  int       `json:"workers"`
	Servers  int       `json:"servers"`
	Machine  string    `json:"machine"`
	Between  cost.Link `json:"between"`
	// Computing are the rates of a worker for steps of this model, as starling simulate takes them.
	Computing string `json:"computing"`
	// Seconds is what planning took, once rates were known and the graph was cut.
	Seconds float64   `json:"planning_seconds"`
	Pick    *Planned  `json:"pick,omitempty"`
	Rows    []Planned `json:"choices"`
	Dropped []Dropped `json:"dropped"`
}

// Planned is a choice with its prediction.
type Planned struct {
	Name        string          `json:"name"`
	Partitioner string          `json:"partitioner,omitempty"`
	Exact       bool            `json:"exact"`
	Published   bool            `json:"published"` // a paper's strategy as it is, without other options
	Predicted   cost.Prediction `json:"predicted"`
	Why         string          `json:"why"`
	Command     string          `json:"command"`
	Strategy    string          `json:"strategy"`
	Settings    train.Settings  `json:"settings,omitempty"`
	Flags       string          `json:"flags,omitempty"` // of training, beside its strategy's: another device, or paths
}

// Dropped is a choice that cannot be.
type Dropped struct {
	Name        string `json:"name"`
	Partitioner string `json:"partitioner,omitempty"`
	Reason      string `json:"reason"`
}

// drop lists why a choice is left out; choices with the same reason stand together.
func (c *Choices) drop(name, partitioner, reason string) {
	for i := range c.Dropped {
		if d := &c.Dropped[i]; d.Reason == reason && d.Partitioner == partitioner {
			d.Name += ", " + name
			return
		}
	}
	c.Dropped = append(c.Dropped, Dropped{name, partitioner, reason})
}

// rank sorts the choices, says why each is where it is, and picks one. Choices that take the same time
// stay in the order of strategies, plainer settings first.
func (c *Choices) rank(o *Options) {
	slices.SortStableFunc(c.Rows, func(a, b Planned) int {
		if a.Exact != b.Exact {
			if a.Exact {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Predicted.Seconds, b.Predicted.Seconds)
	})
	base := c.baseline()
	for i := range c.Rows {
		c.Rows[i].Why = why(&c.Rows[i].Predicted, base)
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if (r.Exact || o.Approximate) && (c.Pick == nil || r.Predicted.Seconds < c.Pick.Predicted.Seconds) {
			c.Pick = r
		}
	}
}

// baseline is the default strategy of the mode.
func (c *Choices) baseline() *Planned {
	d := train.DefaultOf(train.Mode(c.Mode))
	i := slices.IndexFunc(c.Rows, func(r Planned) bool { return d != nil && r.Name == d.Name })
	if i < 0 {
		return nil
	}
	return &c.Rows[i]
}

// why is what an epoch is spent on, and its bytes beside the default's.
func why(p *cost.Prediction, base *Planned) string {
	share := func(x float64) string { return report.Percent(x / max(p.Seconds, 1e-12)) }
	text := "computes " + share(p.Compute)
	if p.Exposed > p.Compute {
		text = "waits for links " + share(p.Exposed)
	}
	text += " of the epoch"
	if p.Waiting > 0.1*p.Seconds {
		text += ", for the slowest worker " + share(p.Waiting)
	}
	if base == nil {
		return text
	}
	switch times := float64(p.Between+p.Inside) / float64(max(base.Predicted.Between+base.Predicted.Inside, 1)); {
	case times > 1.05:
		text += fmt.Sprintf("; %.1fx the bytes of %s", times, base.Name)
	case times > 0 && times < 0.95:
		text += fmt.Sprintf("; %.1fx fewer bytes than %s", 1/times, base.Name)
	}
	return text
}

// shownRows is how many rows of each kind are printed: --json has all.
const shownRows = 12

// String is a table, the commands of the first choices, and what was dropped.
func (c *Choices) String() string {
	var b strings.Builder
	links := ""
	if c.Servers > 1 {
		links = rateText(c.Between.Rate) + " between servers, "
	}
	fmt.Fprintf(&b, "%s, %s: %s on %s, %splanned in %.2f s\n", c.Dataset, c.Model,
		event.Counted(c.Workers, "worker"), event.Counted(c.Servers, "server"), links, c.Seconds)
	c.table(&b, "exact: the loss curve of one worker", true)
	c.table(&b, "approximate: another loss curve; picked with --allow-approximate only", false)
	if c.Pick != nil {
		fmt.Fprintf(&b, "\npick: %s\n  %s\n", c.Pick.Name, c.Pick.Command)
	}
	if len(c.Dropped) > 0 {
		b.WriteString("\nleft out:\n")
	}
	for _, d := range c.Dropped {
		fmt.Fprintf(&b, "  %s: %s\n", named(d.Name, d.Partitioner), d.Reason)
	}
	return b.String()
}

func rateText(bytes float64) string {
	switch bits := 8 * bytes; {
	case bits >= 1e9:
		return fmt.Sprintf("%.3g Gbit/s", bits/1e9)
	default:
		return fmt.Sprintf("%.3g Mbit/s", bits/1e6)
	}
}

func named(name, partitioner string) string {
	if partitioner == "" {
		return name
	}
	return name + " on " + partitioner
}

func (c *Choices) table(b *strings.Builder, title string, exact bool) {
	shown, more := 0, 0
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Exact != exact {
			continue
		}
		if shown == 0 {
			fmt.Fprintf(b, "\n%s\n  %-34s %9s %9s %9s %10s %10s %10s  %s\n", title, "", "epoch", "compute", "exposed", "waiting",
				"between", "memory", "why")
		}
		if shown == shownRows {
			more++
			continue
		}
		shown++
		p := &r.Predicted
		fmt.Fprintf(b, "  %-34s %9s %9s %9s %10s %10s %10s  %s\n", named(r.Name, r.Partitioner), report.Seconds(p.Seconds),
			report.Seconds(p.Compute), report.Seconds(p.Exposed), report.Seconds(p.Waiting), event.Bytes(p.Between), event.Bytes(p.Memory), r.Why)
	}
	if more > 0 {
		fmt.Fprintf(b, "  and %d more: --json has all\n", more)
	}
}

// JSON writes all of it.
func (c *Choices) JSON(path string, stdout io.Writer) error { return report.WriteJSON(c, path, stdout) }

// WriteHTML draws bars of computing, exposed transfers and waiting.
func (c *Choices) WriteHTML(path string) error {
	return disk.Write(path, func(w io.Writer) error { return planPage.Execute(w, c) })
}

// Width is a part of a bar, in percent of the slowest choice.
func (c *Choices) Width(seconds float64) float64 {
	most := 0.0
	for i := range c.Rows {
		most = max(most, c.Rows[i].Predicted.Seconds)
	}
	return 100 * seconds / max(most, 1e-12)
}

var planPage = template.Must(template.New("plan").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1" />
<title>Plan of {{.Dataset}}</title><style>
:root { color-scheme: light dark; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
.bar { display: flex; height: 14px; } .bar i { display: block; height: 100%; }
.c { background: #4477aa; } .x { background: #ee7733; } .w { background: #999999; }
td { padding: 0.3rem 0.6rem; vertical-align: top; } td.b { width: 24rem; } code { font-size: 0.85rem; overflow-wrap: anywhere; }
</style></head><body>
<h1>{{.Dataset}}, {{.Model}}, {{.Workers}} workers on {{.Servers}} servers</h1>
<p><i class="c">&emsp;</i> computing <i class="x">&emsp;</i> exposed transfers <i class="w">&emsp;</i> waiting for the slowest</p>
<table>{{range .Rows}}<tr><td><b>{{.Name}}</b> {{.Partitioner}}<br>{{if .Exact}}exact{{else}}approximate{{end}}</td>
<td class="b"><div class="bar"><i class="c" style="width:{{printf "%.2f" ($.Width .Predicted.Compute)}}%"></i>` +
	`<i class="x" style="width:{{printf "%.2f" ($.Width .Predicted.Exposed)}}%"></i>` +
	`<i class="w" style="width:{{printf "%.2f" ($.Width .Predicted.Waiting)}}%"></i></div>{{printf "%.3g" .Predicted.Seconds}} s; {{.Why}}</td>
<td><code>{{.Command}}</code></td></tr>
{{end}}</table>
{{if .Dropped}}<h2>Left out</h2><ul>{{range .Dropped}}<li>{{.Name}} {{.Partitioner}}: {{.Reason}}</li>{{end}}</ul>{{end}}
</body></html>
`))

// Told is a run that was given the choice.
func (p *Planned) Told(s spec.Spec) spec.Spec {
	s.Strategy, s.Settings = p.Strategy, p.Settings
	return s
}

// StrategyWords are the flags of a choice.
func StrategyWords(p *Planned) string { return p.Command[strings.Index(p.Command, "--strategy"):] }

// reason is an error in one line.
func reason(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
