package partition

import (
	"fmt"
	"sort"

	"starling/graph"
)

// TypeRun is consecutive vertices of one type, by number, from First to the next run's.
type TypeRun struct {
	Type  int   `json:"type"`
	First int64 `json:"first"`
}

// TypeOf is the type of a vertex of a typed graph, by its number.
func (b *Book) TypeOf(v uint32) int {
	return b.TypeRuns[sort.Search(len(b.TypeRuns)-1, func(i int) bool { return int64(v) < b.TypeRuns[i+1].First })].Type
}

// runsOf are the runs of vertices in the order of their numbers. Each part begins one.
func runsOf(s *graph.Schema, offsets []int64, order []uint32) (runs []TypeRun) {
	for k := range len(offsets) - 1 {
		for _, run := range s.Runs(order[offsets[k]:offsets[k+1]]) {
			runs = append(runs, TypeRun{run.Type, offsets[k] + int64(run.Lo)})
		}
	}
	return runs
}

// CoreRuns are the runs of part k, from its first vertex on.
func (b *Book) CoreRuns(k int) (runs []graph.Run) {
	first, end := b.Offsets[k], b.Offsets[k+1]
	from := sort.Search(len(b.TypeRuns), func(i int) bool { return b.TypeRuns[i].First >= first })
	for i := from; i < len(b.TypeRuns) && b.TypeRuns[i].First < end; i++ {
		hi := end
		if i+1 < len(b.TypeRuns) {
			hi = b.TypeRuns[i+1].First
		}
		runs = append(runs, graph.Run{Type: b.TypeRuns[i].Type, Lo: int(b.TypeRuns[i].First - first), Hi: int(hi - first)})
	}
	return runs
}

// validateTypes checks the schema, and that runs cover all vertices and begin where parts do.
func (b *Book) validateTypes() error {
	if b.Schema == nil {
		return nil
	}
	if err := b.Schema.Validate(b.Nodes); err != nil {
		return err
	}
	last, begins := int64(-1), map[int64]bool{b.Nodes: true}
	for i, run := range b.TypeRuns {
		if run.First <= last || run.First >= b.Nodes || run.Type < 0 || run.Type >= len(b.Schema.Types) {
			return badBook(fmt.Sprintf("type_runs[%d]", i), fmt.Sprintf("type %d from vertex %d on", run.Type, run.First),
				"ascending runs of the schema's types")
		}
		last, begins[run.First] = run.First, true
	}
	for _, first := range b.Offsets {
		if !begins[first] {
			return badBook("type_runs", fmt.Sprintf("none from vertex %d on", first), "one that begins where a part does")
		}
	}
	return nil
}
