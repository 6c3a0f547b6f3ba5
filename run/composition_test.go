package run

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

var update = flag.Bool("update", false, "write docs/composition.md anew")

// TestCompositionPage: docs/composition.md is what validation and descriptors say, and what they refuse
// says what to do.
func TestCompositionPage(t *testing.T) {
	page := filepath.Join("..", "docs", "composition.md")
	dims := dimensions()
	want := compositionPage(dims)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(page); string(got) != want {
		t.Errorf("%s is out of date: go test ./run -run TestCompositionPage -update", page)
	}
	for a := range dims {
		eachPair(dims, 0, a, func(p valuePair) {
			if err := p.refused(dims); err != nil && a > 0 {
				if in := (*graph.InputError)(nil); !errors.As(err, &in) || in.Fix == "" {
					t.Errorf("%s %s with %s %s: %v, which does not say what to do", dims[p.A].Name,
						dims[p.A].Values[p.U].Name, dims[p.B].Name, dims[p.B].Values[p.V].Name, err)
				}
			}
		})
	}
}

const compositionHead = `# What goes together

Made by the test of package run from the strategies' descriptors and the validation of specs, which refuse
a run before anything is started: "go test ./run -run TestCompositionPage -update" writes it anew. What
is left at its default goes together with everything, and has no column. A pair that has no strategy in it
goes together if some strategy has both. That runs of pairs that are not refused give the losses of one worker,
or learn where they are approximate, is a test too: TestEveryPairTrains.

`

// compositionPage is docs/composition.md: a table for every two dimensions of which something is refused, with the
// reasons, and the names of the others.
func compositionPage(dims []dimension) string {
	var tables strings.Builder
	var free []string
	for a := range dims {
		for b := a + 1; b < len(dims); b++ {
			if t := newCompositionTable(dims, a, b); len(t.reasons) > 0 {
				tables.WriteString(t.String())
			} else {
				free = append(free, fmt.Sprintf("%s and %s", dims[a].Name, dims[b].Name))
			}
		}
	}
	return compositionHead + "Every value goes together with every one of the other, of " + joined(free) + ".\n" +
		tables.String()
}

func joined(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + "; and " + list[len(list)-1]
}

// compositionTable is what goes together of two dimensions.
type compositionTable struct {
	a, b    dimension
	cells   [][]int  // by value of each: 0 they do, n the reason why not
	reasons []string // from the first on
}

func newCompositionTable(dims []dimension, a, b int) *compositionTable {
	if len(dims[a].Values) < len(dims[b].Values) && dims[a].Name != strategyName {
		a, b = b, a // more rows than columns
	}
	t := &compositionTable{a: dims[a], b: dims[b], cells: make([][]int, len(dims[a].Values))}
	eachPair(dims, a, b, func(p valuePair) {
		n := 0
		if err := p.refused(dims); err != nil {
			n = t.number(reason(err))
		}
		t.cells[p.U] = append(t.cells[p.U], n)
	})
	return t
}

// number is the number of a reason.
func (t *compositionTable) number(text string) int {
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

func (t *compositionTable) String() string {
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
