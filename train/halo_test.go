package train

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// cut writes a partition of d by the named method and opens its parts.
func cut(t *testing.T, d *graph.Dataset, method string, parts int) []*partition.Part {
	t.Helper()
	return cutForServers(t, d, method, parts, 1)
}

// cutForServers is cut, with the parts spread over servers.
func cutForServers(t *testing.T, d *graph.Dataset, method string, parts, servers int) []*partition.Part {
	t.Helper()
	p := &partition.Problem{Graph: d.Graph, Parts: parts, Seed: 1, Splits: d.Splits}
	of, err := partition.By(context.Background(), method, p)
	if err != nil {
		t.Fatalf("%s into %d: %v", method, parts, err)
	}
	return writeParts(t, d, of, parts, servers)
}

// writeParts writes a partition and opens its parts.
func writeParts(t *testing.T, d *graph.Dataset, of []uint32, parts, servers int) (out []*partition.Part) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "parts")
	q := partition.Measure(d.Graph, of, parts, nil, d.Graph.Symmetric(), 0)
	if err := partition.Write(context.Background(), d, of, parts, q, partition.WriteOptions{Dir: dir, Servers: servers}); err != nil {
		t.Fatal(err)
	}
	for k := range parts {
		p, err := partition.OpenPart(dir, k)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		out = append(out, p)
	}
	return out
}

// trainParts trains on several workers in this process.
func trainParts(t *testing.T, parts []*partition.Part, device func() tensor.Device, o Options) []*Result {
	t.Helper()
	return trainOver(t, wire.NewGroup(len(parts), wire.DefaultOptions()), parts, device, o)
}

// trainOver is trainParts over given endpoints, which it closes.
func trainOver(t *testing.T, ends []wire.Endpoint, parts []*partition.Part, device func() tensor.Device, o Options) []*Result {
	t.Helper()
	results, errs := make([]*Result, len(parts)), make([]error, len(parts))
	counted := make([]map[Sent]int64, len(parts))
	var wg sync.WaitGroup
	for k := range parts {
		wg.Go(func() {
			dev := device()
			defer dev.Close()
			ctx := context.Background()
			results[k], errs[k] = Worker(ctx, dev, parts[k], ends[k], NewGroup(ctx, ends[k], dev, parts[k].Book.Servers), o, nil)
			counted[k] = Counted(ends[k].Ledger())
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", k, err)
		}
	}
	for k, e := range ends {
		want := results[k].Plan.Total(0, o.Epochs, len(results[k].Measured), o.Epochs)
		if !keeps(results[k].Plan, counted[k], want) {
			t.Errorf("worker %d planned to send %v, sent %v", k, want, counted[k])
		}
		e.Close()
	}
	return results
}

// keeps reports whether what was sent is what was planned.
func keeps(p *Plan, sent, planned map[Sent]int64) bool {
	if !p.AtMost {
		return maps.Equal(sent, planned)
	}
	for k, bytes := range sent {
		if bytes > planned[k] {
			return false
		}
	}
	return true
}

func sameCurve(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d epochs, want %d", what, len(got), len(want))
	}
	for e := range want {
		if !(math.Abs(got[e]-want[e]) <= tol*math.Abs(want[e])) {
			t.Fatalf("%s: %.12g in epoch %d, one worker has %.12g", what, got[e], e, want[e])
		}
	}
}

// TestHaloIsExact: every model, with dropout, on several workers and partitions
// follows one worker's loss: to 1e-9 in float64, to 1e-4 in float32.
func TestHaloIsExact(t *testing.T) {
	workers := []int{1, 2, 3, 5}
	method := func(w int) string { return []string{"random", "hash", "chunk", "fennel"}[w%4] }
	for _, sparse := range []bool{false, true} {
		d := communities(t, 120, sparse)
		cuts := map[int][]*partition.Part{} // to write one takes longer than to train on it
		for _, w := range workers {
			cuts[w] = cut(t, d, method(w), w)
		}
		for _, model := range nn.Models {
			o := options(model)
			o.Epochs, o.EvalEvery = 4, 2
			if o.Model.Layers > 2 {
				o.Model.Layers = 4
			}
			if model == "gcn" {
				o.Model.Norm = "batch"
			}
			want := mustTrain(t, tensor.NewRef(), d, o)
			for _, w := range workers {
				parts := cuts[w]
				label := fmt.Sprintf("%s sparse=%v on %d workers cut by %s", model, sparse, w, method(w))
				for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewRef() }, o) {
					sameCurve(t, label, r.Loss, want.Loss, 1e-9)
					sameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o) {
					sameCurve(t, label+", float32", r.Loss, want.Loss, inSingle(model))
				}
			}
		}
	}
}

// TestHaloAsLargeAsCore: two workers with two vertices each, all joined, need two
// remote vertices each. Then local numbers of core and halo coincide, which must
// not be taken for self-loops.
func TestHaloAsLargeAsCore(t *testing.T) {
	d := communities(t, 4, false)
	var src, dst []uint32
	for u := range uint32(4) {
		for v := range uint32(4) {
			if u != v {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	g, err := graph.FromEdges(4, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Graph, d.Meta.Edges = g, g.Edges()
	for _, model := range nn.Models {
		o := options(model)
		o.Epochs, o.EvalEvery, o.Model.Layers = 3, 0, 2
		want := mustTrain(t, tensor.NewRef(), d, o)
		parts := cut(t, d, "chunk", 2)
		if parts[0].Meta.Core != parts[0].Meta.Halo {
			t.Fatalf("core %d, halo %d", parts[0].Meta.Core, parts[0].Meta.Halo)
		}
		for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewRef() }, o) {
			sameCurve(t, model, r.Loss, want.Loss, 1e-9)
		}
	}
}
