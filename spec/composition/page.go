package composition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/graph"
)

const head = `# What goes together

Made by the test of package run from the strategies' descriptors and the validation of specs, which refuse
a run before anything is started: "go test ./run -run TestCompositionPage -update" writes it anew. What
is left at its default goes together with everything, and has no column. A pair that has no strategy in it
goes together if some strategy has both. That runs of pairs that are not refused give the losses of one worker,
or learn where they are approximate, is a test too: TestEveryPairTrains.

`

// Page is docs/composition.md: a table for every two dimensions of which something is refused, with the
// reasons, and the names of the others.
func Page(dims []Dimension) string {
	var tables strings.Builder
	var free []string
	for a := range dims {
		for b := a + 1; b < len(dims); b++ {
			if t := newTable(dims, a, b); len(t.reasons) > 0 {
				tables.WriteString(t.String())
			} else {
				free = append(free, fmt.Sprintf("%s and %s", dims[a].Name, dims[b].Name))
			}
		}
	}
	return head + "Every value goes together with every one of the other, of " + joined(free) + ".\n" + tables.String()
}

func joined(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + "; and " + list[len(list)-1]
}

// table is what goes together of two dimensions.
type table struct {
	a, b    Dimension
	cells   [][]int  // by value of each: 0 they do, n the reason why not
	reasons []string // from the first on
}

func newTable(dims []Dimension, a, b int) *table {
	if len(dims[a].Values) < len(dims[b].Values) && dims[a].Name != Strategy {
		a, b = b, a // more rows than columns
	}
	t := &table{a: dims[a], b: dims[b], cells: make([][]int, len(dims[a].Values))}
	Each(dims, a, b, func(p Pair) {
		n := 0
		if err := p.Refused(dims); err != nil {
			n = t.number(reason(err))
		}
		t.cells[p.U] = append(t.cells[p.U], n)
	})
	return t
}

// number is the number of a reason.
func (t *table) number(text string) int {
	if i := slices.Index(t.reasons, text); i >= 0 {
		return i + 1
	}
	t.reasons = append(t.reasons, text)
	return len(t.reasons)
}

// reason is an error without the names of the two settings, which the table has.
func reason(err error) string {
	var in *graph.InputError
	if !errors.As(err, &in) {
		return err.Error()
	}
	unnamed := *in
	unnamed.Field = ""
	return strings.TrimPrefix(unnamed.Error(), "found ")
}

func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s (`%s`) and %s (`%s`)\n\n| |", capital(t.a.Name), t.a.Flag, t.b.Name, t.b.Flag)
	for _, v := range t.b.Values {
		fmt.Fprintf(&b, " %s |", v.Name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(t.b.Values)) + "\n")
	for u, row := range t.cells {
		fmt.Fprintf(&b, "| %s |", t.a.Values[u].Name)
		for _, n := range row {
			if n == 0 {
				b.WriteString(" yes |")
			} else {
				fmt.Fprintf(&b, " no (%d) |", n)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, r := range t.reasons {
		fmt.Fprintf(&b, "%d. %s.\n", i+1, capital(r))
	}
	return b.String()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
