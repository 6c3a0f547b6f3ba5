package simulate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"starling/graph"
	"starling/netsim/leo"
	"starling/report"
	"starling/spec"
	"starling/wire/paths"
	"starling/worker"
)

// PathsOptions say which choices of paths are simulated.
type PathsOptions struct {
	File  string // a description of the user's own, instead of the case studies
	Trace string // requests for it; "": made up
	leo.Options
}

// DefaultPaths are all case studies of the paper.
func DefaultPaths() PathsOptions { return PathsOptions{Options: leo.DefaultOptions()} }

// PathsCases are the names of the case studies.
func PathsCases() []string { return leo.Names() }

// PathsTable is what simulations found.
type PathsTable struct {
	Rows []leo.Row `json:"rows"`
}

// Paths runs the case studies, or a file of the user's; done is called after each row.
func Paths(ctx context.Context, o PathsOptions, done func(PathsRow)) (*PathsTable, error) {
	if o.Requests < 100 || o.Requests > 10_000_000 {
		return nil, spec.Mistake("--requests", fmt.Sprint(o.Requests), "100 to 10000000", "")
	}
	tell := func(r leo.Row) { done(PathsRow(r)) }
	if o.File == "" {
		if o.Trace != "" {
			return nil, spec.Mistake("--trace", o.Trace, "no trace without --file", "say which paths its requests have")
		}
		for _, name := range o.Cases {
			if !slices.Contains(leo.Names(), name) {
				return nil, spec.NotOneOf("--case", name, leo.Names())
			}
		}
		rows, err := leo.Simulate(ctx, o.Options, tell)
		return &PathsTable{rows}, err
	}
	plan, err := worker.ReadPathsFile("--file", o.File)
	if err != nil {
		return nil, err
	}
	var trace paths.Trace
	if o.Trace != "" {
		if trace, plan, err = readTrace(o.Trace, plan); err != nil {
			return nil, err
		}
	}
	return &PathsTable{leo.Custom(plan, trace, o.Options, tell)}, nil
}

// readTrace reads requests and the plan that they belong to: the file's, or for one that a run recorded, the plan
// of its segments.
func readTrace(path string, plan *paths.Plan) (paths.Trace, *paths.Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, spec.Mistake("--trace", graph.Sentence(err.Error()), "a recorded trace", "")
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if paths.Recorded(in) {
		plan = paths.Segments(plan)
	}
	trace, err := paths.ReadTrace(in, plan)
	if err == nil && len(trace) == 0 {
		return nil, nil, &graph.InputError{File: path, Found: "no requests", Want: "at least one"}
	}
	return trace, plan, worker.PathsMistake(path, err)
}

// JSON writes the rows.
func (t *PathsTable) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(t, path, stdout)
}

// String is a table per case, with what the paper reads there.
func (t *PathsTable) String() string {
	var b strings.Builder
	before := ""
	for _, r := range t.Rows {
		if r.Case != before {
			if before != "" {
				b.WriteByte('\n')
			}
			if r.Figure != "" {
				fmt.Fprintf(&b, "%s, figure %s. Paper: %s.\n", r.Case, r.Figure, leo.Paper(r.Case))
			}
			fmt.Fprintf(&b, "%-52s %-16s %22s %9s %14s %10s %10s\n", "setting", "policy", "value", "leo over",
				"leo-queue over", "median us", "p99 us")
			before = r.Case
		}
		b.WriteString(PathsRow(r).String())
	}
	return b.String()
}

// PathsRow is a row as text.
type PathsRow leo.Row

// String is the row in its table.
func (r PathsRow) String() string {
	over := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2fx", x)
	}
	number := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return report.Digits(x, 4)
	}
	return fmt.Sprintf("%-52s %-16s %22s %9s %14s %10s %10s\n", r.Setting, r.Policy, report.Digits(r.Value, 4)+" "+r.Unit,
		over(r.LEOOver), over(r.QueueOver), number(r.Median), number(r.P99))
}
