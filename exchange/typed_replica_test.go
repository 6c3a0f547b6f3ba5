package exchange

import (
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/train/traintest"
)

// TestTypedLookup: owners answer with the relations of in-edges, and with features of every type's width.
func TestTypedLookup(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 30))
	for _, workers := range []int{1, 3} {
		parts := traintest.Cut(t, d, "random", workers)
		ids := numbering(parts)
		onAll(t, parts, []int{1, 100}[workers%2], func(l *Lookup) error {
			var want []uint32
			var types []int
			for v := range uint32(d.Graph.Nodes()) {
				if v%3 != uint32(l.W.End.Rank()) {
					want, types = append(want, v), append(types, d.Meta.Schema.TypeOf(ids[v]))
				}
			}
			in, err := l.InEdges(want)
			if err != nil {
				return err
			}
			rows, err := l.TypeFeatures(want, types)
			if err != nil {
				return err
			}
			return compareTyped(d, ids, want, types, in, rows)
		})
	}
}

// compareTyped looks at the whole dataset.
func compareTyped(d *graph.Dataset, ids, want []uint32, types []int, in *graph.CSR, rows []*graph.Features) error {
	next := make([]uint32, len(rows))
	for i, v := range want {
		id := ids[v]
		var got, should []string
		for e := in.Indptr[i]; e < in.Indptr[i+1]; e++ {
			got = append(got, fmt.Sprint(in.Relations[e], ids[in.Indices[e]]))
		}
		for e := d.Graph.Indptr[id]; e < d.Graph.Indptr[id+1]; e++ {
			should = append(should, fmt.Sprint(d.Graph.Relations[e], d.Graph.Indices[e]))
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(should))) {
			return fmt.Errorf("vertex %d: edges %v, want %v", id, got, should)
		}
		f := d.TypeFeatures[types[i]]
		a, b := make([]float32, f.Cols), make([]float32, f.Cols)
		rows[types[i]].CopyRow(a, next[types[i]])
		f.CopyRow(b, id-uint32(d.Meta.Schema.Types[types[i]].First))
		if next[types[i]]++; !slices.Equal(a, b) {
			return fmt.Errorf("vertex %d: features %v, want %v", id, a, b)
		}
	}
	return nil
}

// TestRelationsOfRepliesAreChecked: relations that there are not, and rows out of order, are refused.
func TestRelationsOfRepliesAreChecked(t *testing.T) {
	for text, bad := range map[string]bool{"\x00\x00\x02\x00\x02\x00": false, "\x03\x00": true,
		"\x01\x00\x00\x00": true} {
		r := NewReader([]byte(text))
		if r.relations(len(text)/2, 3); (r.Err() != nil) != bad {
			t.Errorf("%q: %v", text, r.Err())
		}
	}
}
