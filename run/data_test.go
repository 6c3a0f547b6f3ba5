package run

import (
	"os"
	"path/filepath"
	"testing"

	"starling/event"
)

// TestStagesEnd: every stage of an import or a generated graph ends finished, once.
func TestStagesEnd(t *testing.T) {
	last, ends := map[string]event.Progress{}, map[string]int{}
	see := event.Func(func(e event.Event) {
		if p, ok := e.(event.Progress); ok {
			last[p.Task] = p
			if p.Total > 0 && p.Done >= p.Total {
				ends[p.Task]++
			}
		}
	})
	p := DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes = 500, 5000, 8, 3
	dir := t.TempDir()
	if _, err := Generate(t.Context(), "sbm", p, filepath.Join(dir, "g"), see); err != nil {
		t.Fatal(err)
	}
	edges := filepath.Join(dir, "edges.csv")
	if err := os.WriteFile(edges, []byte("a,b\nb,c\nc,a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(t.Context(), "edgelist", edges, ImportOptions{}, filepath.Join(dir, "i"), see); err != nil {
		t.Fatal(err)
	}
	for task, p := range last {
		if p.Done < p.Total || p.Total <= 0 || ends[task] != 1 {
			t.Errorf("%s ended at %d of %d, %d times", task, p.Done, p.Total, ends[task])
		}
	}
	if len(last) < 4 {
		t.Errorf("only %v", last)
	}
}
