package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/wire"
)

// onAll runs f as every worker of some parts, and holds what was sent against the plan.
func onAll(t *testing.T, parts []*partition.Part, f func(l *lookup) error) {
	t.Helper()
	ends := wire.NewGroup(len(parts), wire.DefaultOptions())
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for k := range parts {
		wg.Go(func() {
			dev := tensor.NewRef()
			ctx := context.Background()
			l := newLookup(&site{ctx: ctx, dev: dev, part: parts[k], end: ends[k], peers: NewGroup(ctx, ends[k], dev, parts[k].Book.Servers), events: event.All()})
			if errs[k] = f(l); errs[k] != nil {
				ends[k].Fail(errs[k])
				return
			}
			if got := Counted(ends[k].Ledger()); !maps.Equal(got, l.sent) {
				errs[k] = fmt.Errorf("planned to send %v, sent %v", l.sent, got)
			}
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			t.Errorf("worker %d: %v", k, err)
		}
		ends[k].Close()
	}
}

// numbering is where the vertices of a partition come from in its dataset.
func numbering(parts []*partition.Part) (ids []uint32) {
	for _, p := range parts {
		ids = append(ids, p.IDs[:p.Core()]...)
	}
	return ids
}

// TestLookup: what owners answer is what the dataset says, for lists of any length, also
// of own vertices, on any number of workers; in several rounds too.
func TestLookup(t *testing.T) {
	for _, kind := range []graph.FeatureKind{graph.Dense, graph.BFloat16, graph.Sparse} {
		for _, workers := range []int{1, 2, 3, 5} {
			d := communities(t, 90, kind == graph.Sparse)
			if kind == graph.BFloat16 {
				d.Features = rounded(d.Features)
				d.Meta.Features.Kind = kind
			}
			weighted := workers == 3
			if weighted {
				d.Graph.Weights = make([]float32, d.Graph.Edges())
				for e := range d.Graph.Weights {
					d.Graph.Weights[e] = float32(rng.New(3).Float64(uint64(e)))
				}
			}
			parts := cut(t, d, "random", workers)
			ids := numbering(parts)
			onAll(t, parts, func(l *lookup) error {
				var want []uint32
				for v := range uint32(d.Graph.Nodes()) { // worker 0 asks for nothing, the last for everything
					if l.end.Rank() > 0 || workers == 1 {
						if l.end.Rank() == workers-1 || rng.New(uint64(l.end.Rank())).Float64(uint64(v)) < 0.3 {
							want = append(want, v)
						}
					}
				}
				return compareLookup(l, d, ids, want)
			})
		}
	}
}

func rounded(f *graph.Features) *graph.Features {
	out := &graph.Features{Rows: f.Rows, Cols: f.Cols, BF16: make([]uint16, len(f.F32))}
	for i, x := range f.F32 {
		out.BF16[i] = graph.ToBF16(x)
	}
	return out
}

// compareLookup is the dumb twin: one look at the whole dataset.
func compareLookup(l *lookup, d *graph.Dataset, ids, want []uint32) error {
	in, err := l.inEdges(want)
	if err != nil {
		return err
	}
	marks, err := l.marks(want)
	if err != nil {
		return err
	}
	rows, err := l.features(want)
	if err != nil {
		return err
	}
	var again []uint32 // in rounds of 7
	err = l.rounds(wire.Topology, want, 7, l.marksOf, func(some []uint32, r *reader) {
		for range some {
			again = append(again, r.mark().id)
		}
	})
	if err != nil {
		return err
	}
	a, b := make([]float32, d.Features.Cols), make([]float32, d.Features.Cols)
	for i, v := range want {
		id := ids[v]
		if marks[i].id != id || again[i] != id || int(marks[i].degree) != d.Graph.Degree(id) {
			return fmt.Errorf("vertex %d: %+v", v, marks[i])
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

// TestLookupRefuses: numbers that fall or are nobody's, and answers of another length.
func TestLookupRefuses(t *testing.T) {
	parts := cut(t, communities(t, 20, false), "chunk", 1)
	onAll(t, parts, func(l *lookup) error {
		for _, ids := range [][]uint32{{3, 2}, {2, 2}, {20}} {
			if _, err := l.marks(ids); err == nil {
				return fmt.Errorf("looked up %v", ids)
			}
		}
		for _, b := range []int{0, 7, 33} {
			err := l.rounds(wire.Topology, []uint32{1, 2}, 10, func([]uint32) []byte { return make([]byte, b) }, func(_ []uint32, r *reader) {
				r.mark()
				r.mark()
			})
			if err == nil {
				return fmt.Errorf("%d bytes passed for two marks", b)
			}
		}
		return nil
	})
}
