package predict

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/serve"
	"starling/spec"
	"starling/train"
)

// ExplainOptions are the options of starling explain.
type ExplainOptions struct {
	Run, Dataset string
	Vertices     []string // by their names before import
	File         string   // of more of them, one per line
	Top          int      // how many of the file's are explained; 0: all
	Page         string   // a page to write; empty: none
	serve.ExplainOptions
}

// ExplainMethods are the methods there are.
var ExplainMethods = serve.ExplainMethods

// DefaultExplain learns masks.
func DefaultExplain() ExplainOptions {
	return ExplainOptions{ExplainOptions: serve.ExplainOptions{Method: serve.Masks, Epochs: 100, Keep: 10, Most: 500}}
}

// Explained is what starling explain tells.
type Explained struct {
	Run          string               `json:"run"`
	Dataset      string               `json:"dataset"`
	Explanations []*serve.Explanation `json:"explanations"`
}

// Explain explains the predictions for some vertices.
func Explain(o ExplainOptions) (*Explained, error) {
	names, err := o.settle()
	if err != nil {
		return nil, err
	}
	t, err := serve.Open(o.Run)
	if err != nil {
		return nil, err
	}
	if partition.IsPartition(o.Dataset) {
		return nil, spec.Mistake("DIR", o.Dataset+", a partition", "the dataset that it was cut from", "")
	}
	d, err := openForPrediction(o.Dataset, t)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	find := t.Finder(d)
	out := &Explained{Run: o.Run, Dataset: d.Meta.Name}
	for _, name := range names {
		v, ok := find(name)
		if !ok {
			return nil, spec.Mistake("--vertex", fmt.Sprintf("%.80q", name), "a vertex of "+o.Dataset,
				"vertices have the names they had before import")
		}
		x, err := t.Explain(d, v, o.ExplainOptions)
		if err != nil {
			return nil, err
		}
		out.Explanations = append(out.Explanations, x)
	}
	if o.Page != "" {
		return out, serve.WritePage(o.Page, out.page)
	}
	return out, nil
}

// settle checks the options and reads the names of vertices.
func (o *ExplainOptions) settle() ([]string, error) {
	switch {
	case !slices.Contains(ExplainMethods, o.Method):
		return nil, spec.Mistake("--method", fmt.Sprintf("%q", o.Method), "one of "+strings.Join(ExplainMethods, ", "),
			train.Suggest(o.Method, ExplainMethods))
	case o.Epochs < 1 || o.Epochs > 100000:
		return nil, spec.Mistake("--epochs", fmt.Sprint(o.Epochs), "1 to 100000", "")
	case o.Keep < 1:
		return nil, spec.Mistake("--edges", fmt.Sprint(o.Keep), "1 or more", "")
	case o.Most < o.Keep:
		return nil, spec.Mistake("--drop", fmt.Sprint(o.Most), fmt.Sprintf("%d or more, as --edges says", o.Keep), "")
	case o.Top < 0 || o.Top > 0 && o.File == "":
		return nil, spec.Mistake("--top", fmt.Sprint(o.Top), "1 or more, of --vertices FILE", "")
	}
	if o.Page != "" {
		if err := spec.CheckFile("--html", o.Page); err != nil {
			return nil, err
		}
	}
	names := slices.Clone(o.Vertices)
	if o.File != "" {
		more, err := readNames(o.File)
		if err != nil {
			return nil, err
		}
		if o.Top > 0 {
			more = more[:min(len(more), o.Top)]
		}
		names = append(names, more...)
	}
	if len(names) == 0 {
		return nil, spec.Mistake("--vertex", "nothing", "the name of a vertex, or --vertices FILE with one per line",
			"")
	}
	return names, nil
}

func readNames(path string) (names []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, spec.Mistake("--vertices", graph.Sentence(err.Error()), "a file of vertices, one per line", "")
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" {
			names = append(names, name)
		}
	}
	return names, lines.Err()
}

// shown is how many vertices and columns the text shows.
const shown = 10

// String is the explanations for people.
func (e *Explained) String() string {
	var b strings.Builder
	for i, x := range e.Explanations {
		if i > 0 {
			b.WriteByte('\n')
		}
		describe(&b, x)
	}
	return b.String()
}

func describe(b *strings.Builder, x *serve.Explanation) {
	fmt.Fprintf(b, "vertex %s: predicted %s\n", named(x.Type, x.Vertex), predictedOf(x))
	fmt.Fprintf(b, "depends on %s and %s, of which %d were dropped one by one\n", event.Counted(x.Vertices, "vertex"),
		event.Counted(x.AllEdges, "edge"), x.Scored)
	fmt.Fprintf(b, "fidelity+ %.4f: how far the prediction moves without the %s below\n", x.FidelityPlus,
		event.Counted(x.Kept, "edge"))
	fmt.Fprintf(b, "fidelity- %.4f: how far it moves with these alone\n", x.FidelityMinus)
	for _, g := range x.Edges[:x.Kept] {
		fmt.Fprintf(b, "  edge    %9.4f  %s -> %s%s\n", g.Score, named(g.SourceType, g.Source),
			named(g.TargetType, g.Target), relationOf(g))
	}
	for _, n := range x.Near[:min(len(x.Near), shown)] {
		fmt.Fprintf(b, "  vertex  %9.4f  %s, %s away\n", n.Score, named(n.Type, n.Vertex), event.Counted(n.Hops, "hop"))
	}
	for _, c := range x.Columns[:min(len(x.Columns), shown)] {
		fmt.Fprintf(b, "  column  %9.4f  %s\n", c.Score, named(c.Type, c.Column))
	}
}

func relationOf(g serve.ExplainedEdge) string {
	if g.Relation == "" {
		return ""
	}
	return " (" + g.Relation + ")"
}

// named is a vertex or a column with its type, where it has one.
func named(kind, name string) string {
	if kind == "" {
		return name
	}
	return kind + " " + name
}

// predictedOf is the prediction in words.
func predictedOf(x *serve.Explanation) string {
	values := x.Numbers()
	if x.Class != "" {
		return fmt.Sprintf("%s, probability %.4f", x.Class, slices.Max(values))
	}
	return fmt.Sprintf("%.4g", values)
}
