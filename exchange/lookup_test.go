package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/train/traintest"
	"starling/wire"
)

// numbering is where the vertices of a partition come from in its dataset.
func numbering(parts []*partition.Part) (ids []uint32) {
	for _, p := range parts {
		ids = append(ids, p.IDs[:p.Core()]...)
	}
	return ids
}

// TestLookup: what owners answer is what the dataset says, for lists of any length, also
// of own vertices, on any number of workers, in answers of any size.
func TestLookup(t *testing.T) {
	for _, kind := range []graph.FeatureKind{graph.Dense, graph.BFloat16, graph.Sparse} {
		for _, workers := range []int{1, 2, 3, 5} {
			d := traintest.Communities(t, 90, kind == graph.Sparse)
			if kind == graph.BFloat16 {
				d.Features = traintest.Rounded(d.Features)
				d.Meta.Features.Kind = kind
			}
			weighted := workers == 3
			if weighted {
				d.Graph.Weights = make([]float32, d.Graph.Edges())
				for e := range d.Graph.Weights {
					d.Graph.Weights[e] = float32(rng.New(3).Float64(uint64(e)))
				}
			}
			parts := traintest.Cut(t, d, "random", workers)
			ids := numbering(parts)
			onAll(t, parts, []int{1, 100, answerBytes}[workers%3], func(l *Lookup) error {
				var want []uint32
				for v := range uint32(d.Graph.Nodes()) { // worker 0 asks for nothing, the last for everything
					if l.W.End.Rank() > 0 || workers == 1 {
						if l.W.End.Rank() == workers-1 || rng.New(uint64(l.W.End.Rank())).Float64(uint64(v)) < 0.3 {
							want = append(want, v)
						}
					}
				}
				return compareLookup(l, d, ids, want)
			})
		}
	}
}

// compareLookup is the dumb twin: one look at the whole dataset.
func compareLookup(l *Lookup, d *graph.Dataset, ids, want []uint32) error {
	in, err := l.InEdges(want)
	if err != nil {
		return err
	}
	vertices, err := l.Vertices(want)
	if err != nil {
		return err
	}
	rows, err := l.Features(want)
	if err != nil {
		return err
	}
	a, b := make([]float32, d.Features.Cols), make([]float32, d.Features.Cols)
	for i, v := range want {
		id := ids[v]
		if vertices[i].ID != id || int(vertices[i].Degree) != d.Graph.Degree(id) {
			return fmt.Errorf("vertex %d: %+v", v, vertices[i])
		}
		var from []string
		for e := in.Indptr[i]; e < in.Indptr[i+1]; e++ {
			s := fmt.Sprint(ids[in.Indices[e]])
			if d.Graph.Weights != nil {
				s += fmt.Sprint(" ", in.Weights[e])
			}
			from = append(from, s)
		}
		var should []string
		for e := d.Graph.Indptr[id]; e < d.Graph.Indptr[id+1]; e++ {
			s := fmt.Sprint(d.Graph.Indices[e])
			if d.Graph.Weights != nil {
				s += fmt.Sprint(" ", d.Graph.Weights[e])
			}
			should = append(should, s)
		}
		if slices.Sort(from); !slices.Equal(from, slices.Sorted(slices.Values(should))) {
			return fmt.Errorf("vertex %d: in-edges from %v, want %v", v, from, should)
		}
		rows.CopyRow(a, uint32(i))
		d.Features.CopyRow(b, id)
		if !slices.Equal(a, b) {
			return fmt.Errorf("vertex %d: features %v, want %v", v, a, b)
		}
	}
	return nil
}

// TestLookupRefuses: numbers that fall or that no worker has, answers of another length, and
// requests that this build would not make.
func TestLookupRefuses(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 20, false), "chunk", 2)
	onAll(t, parts, answerBytes, func(l *Lookup) error {
		for _, ids := range [][]uint32{{3, 2}, {2, 2}, {20}} {
			if _, err := l.Vertices(ids); err == nil {
				return fmt.Errorf("looked up %v", ids)
			}
		}
		for _, b := range []int{0, 7, 33} {
			q := query{answers: []answer{{2, make([]byte, b)}}}
			if q.read(func(r *Reader) { r.Vertex() }) == nil {
				return fmt.Errorf("%d bytes passed for two vertices", b)
			}
		}
		for request, want := range map[string]string{
			"\x00": "", "": "a request of 0 bytes", "\x00\x01": "a request of 2 bytes", "\x09": "question 9",
			"\x00\xff\xff\x00\x00": "vertex 65535, which is not its own",
		} {
			_, err := l.owner.handle(&wire.Request{Body: []byte(request)})
			if want != "" && (err == nil || !strings.Contains(err.Error(), want)) || want == "" && err != nil {
				return fmt.Errorf("request %q: %v", request, err)
			}
		}
		clear(l.owner.sent) // of the requests that were not sent
		return nil
	})
}
