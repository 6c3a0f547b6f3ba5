package event

import "testing"

// TestPluralsAndRanges: what is counted is in the number that it has.
func TestPluralsAndRanges(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Counted(1, "vertex"), "1 vertex"}, {Counted(0, "vertex"), "0 vertices"},
		{Counted(12000, "seed vertex"), "12,000 seed vertices"}, {Counted(int64(-1200), "edge"), "-1,200 edges"},
		{Counted(2, "class"), "2 classes"}, {Counted(1, "class"), "1 class"}, {Counted(3, "batch"), "3 batches"},
		{Counted(3, "epoch"), "3 epochs"},
		{Counted(2, "entry"), "2 entries"}, {Counted(2, "way"), "2 ways"}, {Counted(2, "try"), "2 tries"},
		{Tally(uint32(12000), "vertex"), "12000 vertices"}, {Tally(1, "vertex"), "1 vertex"},
		{Noun(1, "block"), "block"}, {Noun(2, "block"), "blocks"},
		{Range("column", 3, 3), "column 3"}, {Range("column", 3, 4), "columns 3 and 4"},
		{Range("column", 3, 6), "columns 3 to 6"}, {Range("entry", 0, 2), "entries 0 to 2"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
