package dataset

import (
	"strings"
	"testing"
)

// TestUnusedColumnsAreCounted: a note names the columns that are not used, be it one.
func TestUnusedColumnsAreCounted(t *testing.T) {
	for text, want := range map[string]string{"0,1,5\n1,2,6\n": "column 3 of the edge list is not used",
		"0,1,5,7\n1,2,6,7\n": "columns 3 and 4 of the edge list are not used"} {
		d := imported(t, "edgelist", written(t, "e.csv", text), ImportOptions{Labels: written(t, "l.csv", "0,a\n1,b\n2,a\n"),
			Split: SplitOptions{Train: 1}})
		if notes := strings.Join(d.Meta.Notes, "; "); !strings.Contains(notes, want) {
			t.Errorf("%q: %s", text, notes)
		}
	}
}
