package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"starling/cost"
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
	// Cores of a worker, as it was planned.
	Cores int `json:"cores"`
	// Seconds is what planning took, once rates were known and the graph was cut.
	Seconds float64   `json:"planning_seconds"`
	Pick    *Planned  `json:"pick,omitempty"`
	Rows    []Planned `json:"choices"`
	Dropped []Dropped `json:"dropped"`
	All     bool      `json:"-"` // are printed: none is folded
}

// Planned is a choice with its prediction.
type Planned struct {
	Name        string          `json:"name"`
	Aliases     []string        `json:"aliases,omitempty"` // the same run by other names
	Partitioner string          `json:"partitioner,omitempty"`
	Exact       bool            `json:"exact"`
	Published   bool            `json:"published"` // a paper's strategy as it is, without other options
	Predicted   cost.Prediction `json:"predicted"`
	Why         string          `json:"why"`
	Command     string          `json:"command"`
	Strategy    string          `json:"strategy"`
	Settings    train.Settings  `json:"settings,omitempty"`
	Flags       string          `json:"flags,omitempty"` // of training, beside its strategy's: another device, or paths

	counted cost.Prediction // as it follows from counts and rates, before what was learnt of the strategy
}

// Dropped is a choice that cannot be.
type Dropped struct {
	Name        string `json:"name"`
	Partitioner string `json:"partitioner,omitempty"`
	Reason      string `json:"reason"`

	choices int
}

// drop lists why a choice is left out; choices with the same reason stand together.
func (c *Choices) drop(name, partitioner, reason string) {
	for i := range c.Dropped {
		if d := &c.Dropped[i]; d.Reason == reason && d.Partitioner == partitioner {
			d.Name += ", " + name
			d.choices++
			return
		}
	}
	c.Dropped = append(c.Dropped, Dropped{name, partitioner, reason, 1})
}

// baseline is the default strategy of the mode.
func (c *Choices) baseline() *Planned {
	d := train.DefaultOf(train.Mode(c.Mode))
	i := slices.IndexFunc(c.Rows, func(r Planned) bool { return d != nil && r.goesBy(d.Name) })
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

// Rows that are printed of exact and of approximate choices; --all prints the others too.
const (
	shownExact       = 8
	shownApproximate = 4
)

// columns is the width that the text fits.
const columns = 100

// String is what may be read last at the bottom of a terminal: the approximate choices, the exact ones, what was left
// out, and the pick.
func (c *Choices) String() string {
	var b strings.Builder
	links := ""
	if c.Servers > 1 {
		links = rateText(c.Between.Rate) + " between servers, "
	}
	fmt.Fprintf(&b, "%s, %s: %s on %s, %splanned in %s\n", c.Dataset, c.Model,
		event.Counted(c.Workers, "worker"), event.Counted(c.Servers, "server"), links, report.Seconds(c.Seconds))
	c.table(&b, "approximate: another loss curve; picked with --allow-approximate only", false, shownApproximate)
	c.table(&b, "exact: the loss curve of one worker", true, shownExact)
	c.leftOut(&b)
	if c.Pick != nil {
		fmt.Fprintf(&b, "\npick: %s, %s per epoch predicted; it %s\n", c.Pick.names(), report.Seconds(c.Pick.Predicted.Seconds),
			c.Pick.Why)
	}
	if c.Pick != nil && c.Workers > 1 {
		fmt.Fprintf(&b, "a worker in Kubernetes: %s\n", requests(c.Cores, &c.Pick.Predicted))
	}
	text := event.Wrap(b.String(), columns)
	if c.Pick != nil {
		text += commandLines(c.Pick.Command)
	}
	return text
}

// leftOut lists what was left out and why, or how much that is.
func (c *Choices) leftOut(b *strings.Builder) {
	if len(c.Dropped) == 0 {
		return
	}
	if !c.All && len(c.Rows) > 0 {
		n := 0
		for _, d := range c.Dropped {
			n += d.choices
		}
		fmt.Fprintf(b, "\nleft out: %s; --all says why\n", event.Counted(n, "choice"))
		return
	}
	b.WriteString("\nleft out:\n")
	for _, d := range c.Dropped {
		fmt.Fprintf(b, "  %s: %s\n", named(d.Name, d.Partitioner), d.Reason)
	}
}

// commandLines is a command in lines that a shell takes for one.
func commandLines(command string) string {
	lines := strings.Split(strings.TrimSuffix(event.Wrap("  "+command, columns-2), "\n"), "\n")
	return strings.Join(lines, " \\\n") + "\n"
}

func rateText(bytes float64) string {
	if bits := 8 * bytes; bits < 1e9 {
		return report.Digits(bits/1e6, 3) + " Mbit/s"
	}
	return report.Digits(8*bytes/1e9, 3) + " Gbit/s"
}

func named(name, partitioner string) string {
	if partitioner == "" {
		return name
	}
	return name + " on " + partitioner
}

// table prints the choices of a kind, most of them at most unless all are wanted.
func (c *Choices) table(b *strings.Builder, title string, exact bool, most int) {
	const form = "  %-34s %9s %9s %9s %9s %10s %10s\n"
	shown, more := 0, 0
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Exact != exact {
			continue
		}
		if shown == most && !c.All {
			more++
			continue
		}
		if shown == 0 {
			fmt.Fprintf(b, "\n%s\n"+form, title, "", "epoch", "compute", "exposed", "waiting", "between", "memory")
		}
		shown++
		p := &r.Predicted
		name, rest := r.cell(34)
		fmt.Fprintf(b, form, name, report.Seconds(p.Seconds), report.Seconds(p.Compute), report.Seconds(p.Exposed),
			report.Seconds(p.Waiting), event.Bytes(p.Between), event.Bytes(p.Memory))
		if c.All {
			rest = strings.TrimPrefix(rest+"; "+r.Why, "; ")
		}
		if rest != "" {
			fmt.Fprintf(b, "      %s\n", rest)
		}
	}
	if more > 0 {
		fmt.Fprintf(b, "  and %d more: --all\n", more)
	}
}

// cell is the name of a row with its aliases, or where these do not fit, the two apart.
func (p *Planned) cell(width int) (name, rest string) {
	if name = p.names(); len([]rune(name)) <= width {
		return name, ""
	}
	if len(p.Aliases) == 0 {
		return name, ""
	}
	return named(p.Name, p.Partitioner), "= " + strings.Join(p.Aliases, " = ")
}

// names are all that a choice goes by.
func (p *Planned) names() string {
	return named(strings.Join(append([]string{p.Name}, p.Aliases...), " = "), p.Partitioner)
}

// goesBy reports whether a choice has a name.
func (p *Planned) goesBy(name string) bool { return p.Name == name || slices.Contains(p.Aliases, name) }

// JSON writes all of it.
func (c *Choices) JSON(path string, stdout io.Writer) error { return report.WriteJSON(c, path, stdout) }

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
