package exchange

import (
	"slices"
	"testing"

	"starling/rng"
)

// TestNumbering beside a map, with vertices in any order and more than once.
func TestNumbering(t *testing.T) {
	t.Parallel()
	var n Numbering
	var k Vertices
	want, ids, key := map[uint32]uint32{}, []uint32(nil), rng.New(3)
	if _, ok := n.At(7); ok {
		t.Error("an empty numbering has vertex 7")
	}
	for i := range uint64(5000) {
		v := uint32(key.IntN(i, 20000))
		at, fresh := n.Put(v)
		if _, had := want[v]; had == fresh {
			t.Fatalf("vertex %d: fresh %v, want %v", v, fresh, !had)
		}
		if fresh {
			want[v], ids = uint32(len(ids)), append(ids, v)
		}
		if at != want[v] {
			t.Fatalf("vertex %d has number %d, want %d", v, at, want[v])
		}
		k.Know(v, Vertex{ID: uint32(i)})
		if m, ok := k.Of(v); !ok || m.ID != uint32(i) {
			t.Fatalf("vertex %d is %v, %v, want what was told last", v, m, ok)
		}
	}
	for v := range uint32(21000) {
		at, ok := n.At(v)
		if number, had := want[v]; ok != had || ok && at != number {
			t.Fatalf("vertex %d has number %d, %v, want %d, %v", v, at, ok, number, had)
		}
	}
	var ascending []uint32
	for v, at := range n.Ascending() {
		if at != want[v] {
			t.Fatalf("vertex %d has number %d in the list, want %d", v, at, want[v])
		}
		ascending = append(ascending, v)
	}
	if !slices.Equal(ascending, slices.Sorted(slices.Values(ids))) {
		t.Error("ascending vertices are not those that have numbers")
	}
	if !slices.Equal(n.IDs, ids) {
		t.Error("vertices are not listed as they came")
	}
	if _, ok := (*Vertices)(nil).Of(1); ok {
		t.Error("nothing is known, but of vertex 1 something is")
	}
}
