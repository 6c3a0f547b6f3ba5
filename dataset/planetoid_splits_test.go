package dataset

import (
	"strings"
	"testing"
)

// TestPlanetoidFewRows: files with too few rows for a validation split are refused with a number
// that can be had.
func TestPlanetoidFewRows(t *testing.T) {
	for _, c := range []struct {
		train, labelled int
		want            string
	}{{20, 60, "more than the 500"}, {200, 600, "at most 100"}} {
		_, err := planetoid{name: "x"}.splits(c.train, c.labelled, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "-") {
			t.Errorf("%d of %d: %v", c.train, c.labelled, err)
		}
	}
}
