package nn

import (
	"slices"
	"strings"
	"testing"
)

// TestJoinRows: a table that is cut into shards in any way is joined as it was, and what is no such table is refused with
// the shard that is wrong.
func TestJoinRows(t *testing.T) {
	shard := func(name string, wide int, places ...uint32) []Tensor {
		rows := Tensor{Name: name, Shape: []int{len(places), wide}}
		for _, p := range places {
			for c := range wide {
				rows.Data = append(rows.Data, float64(10*int(p)+c))
			}
		}
		return []Tensor{rows, PlacesOf(name, places)}
	}
	tables, _, err := JoinRows([][]Tensor{append(shard("a", 2, 3, 0), shard("b", 1, 1)...), shard("b", 1), shard("a", 2),
		append(shard("b", 1, 0), shard("a", 2, 1, 2)...)})
	if err != nil || len(tables) != 2 {
		t.Fatal(tables, err)
	}
	if want := []float64{0, 1, 10, 11, 20, 21, 30, 31}; tables[0].Name != "a" || !slices.Equal(tables[0].Data, want) ||
		!slices.Equal(tables[1].Data, []float64{0, 10}) || !slices.Equal(tables[0].Shape, []int{4, 2}) {
		t.Errorf("%+v", tables)
	}
	if tables, _, err := JoinRows(nil); err != nil || tables != nil {
		t.Error(tables, err)
	}
	for name, c := range map[string]struct {
		shards [][]Tensor
		bad    int
		text   string
	}{
		"a row twice":     {[][]Tensor{shard("a", 2, 0), shard("a", 2, 0)}, 1, "place 0 of 2"},
		"a shard missing": {[][]Tensor{shard("a", 2, 0, 3)}, 0, "place 3 of 2"},
		"another width":   {[][]Tensor{shard("a", 2, 0), shard("a", 3, 1)}, 1, "of 3 numbers"},
		"no places":       {[][]Tensor{shard("a", 2, 0)[:1]}, 0, "without a place"},
		"no rows":         {[][]Tensor{{{Name: "a", Shape: []int{1}, Data: []float64{1}}}}, 0, "want rows"},
	} {
		if _, bad, err := JoinRows(c.shards); err == nil || bad != c.bad || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: shard %d, %v", name, bad, err)
		}
	}
}
