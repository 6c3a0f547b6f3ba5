package train

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// cutServers is cut for several servers of equally many workers.
func cutServers(t *testing.T, d *graph.Dataset, method string, parts, servers int) []*partition.Part {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "parts")
	p := &partition.Problem{Graph: d.Graph, Parts: parts, Seed: 1, Splits: d.Splits}
	of, err := partition.By(context.Background(), method, p)
	if err != nil {
		t.Fatalf("%s into %d: %v", method, parts, err)
	}
	return written(t, d, dir, of, parts, servers)
}

// written is a partition on disk, opened.
func written(t *testing.T, d *graph.Dataset, dir string, of []uint32, parts, servers int) []*partition.Part {
	t.Helper()
	q := partition.Measure(d.Graph, of, parts, nil, d.Graph.Symmetric(), 0)
	if err := partition.Write(context.Background(), d, of, parts, q, partition.WriteOptions{Dir: dir, Servers: servers}); err != nil {
		t.Fatal(err)
	}
	var out []*partition.Part
	for k := range parts {
		part, err := partition.OpenPart(dir, k)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { part.Close() })
		out = append(out, part)
	}
	return out
}

// trained is a run of several workers.
type trained struct {
	results []*Result
	counted []map[Sent]int64
	notes   []string // of worker 0
}

// trainServers is trainParts with links by server, and what went over them.
func trainServers(t *testing.T, parts []*partition.Part, device func() tensor.Device, o Options) *trained {
	t.Helper()
	opt := wire.DefaultOptions()
	for k := range parts {
		opt.ServerOf = append(opt.ServerOf, parts[0].Book.Server(k))
	}
	ends := wire.NewGroup(len(parts), opt)
	r := &trained{results: make([]*Result, len(parts)), counted: make([]map[Sent]int64, len(parts))}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for k := range parts {
		var events event.Listener
		if k == 0 {
			events = event.Func(func(e event.Event) {
				if n, ok := e.(event.Note); ok {
					r.notes = append(r.notes, n.Text)
				}
			})
		}
		wg.Go(func() {
			dev := device()
			defer dev.Close()
			ctx := context.Background()
			r.results[k], errs[k] = Worker(ctx, dev, parts[k], ends[k], NewGroup(ctx, ends[k], dev), o, events)
			r.counted[k] = Counted(ends[k].Ledger())
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", k, err)
		}
	}
	for k, e := range ends {
		want := r.results[k].Plan.Total(0, o.Epochs, len(r.results[k].Measured), o.Epochs)
		if !maps.Equal(r.counted[k], want) {
			t.Errorf("worker %d planned to send %v, sent %v", k, want, r.counted[k])
		}
		e.Close()
	}
	return r
}

// between are the bytes of rows that left for another server while training.
func (r *trained) between(layers ...int16) (bytes int64) {
	for _, c := range r.counted {
		for s, b := range c {
			if s.Link == wire.BetweenServers && (s.Kind == wire.Activation || s.Kind == wire.Gradient) && (len(layers) == 0 || slices.Contains(layers, s.Layer)) {
				bytes += b
			}
		}
	}
	return bytes
}

func onRef() tensor.Device { return tensor.NewRef() }
func onCPU() tensor.Device { return tensor.NewCPU(1) }

// modelOptions are short runs of a model; gcn with batch norm, deep ones of 4 layers.
func modelOptions(model string) Options {
	o := options(model)
	o.Epochs, o.EvalEvery = 4, 2
	if o.Model.Layers = 3; o.Model.Norm == "layer" {
		o.Model.Layers = 4
	}
	if model == "gcn" {
		o.Model.Norm = "batch"
	}
	o.Strategy = DefaultChoice("granndis")
	return o
}

// TestGranndisIsExact: every model, with dropout, for every number of preloaded layers,
// follows one worker's loss, and rows of preloaded layers stay inside their server.
func TestGranndisIsExact(t *testing.T) {
	for i, model := range nn.Models {
		d := communities(t, 120, i%2 == 1)
		o := modelOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		for j, shape := range [][2]int{{4, 2}, {3, 3}, {5, 1}, {6, 2}} {
			parts := cutServers(t, d, []string{"random", "hash", "chunk", "fennel"}[(i+j)%4], shape[0], shape[1])
			for k := range graphLayers(o.Model) + 1 {
				o.Strategy.Preload = fmt.Sprint(k)
				label := fmt.Sprintf("%s on %d workers of %d servers, %d layers preloaded", model, shape[0], shape[1], k)
				run := trainServers(t, parts, onRef, o)
				for _, r := range run.results {
					sameCurve(t, label, r.Loss, want.Loss, 1e-9)
					sameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for l := range k {
					if b := run.between(int16(l)); b > 0 {
						t.Errorf("%s: %d bytes of layer %d between servers", label, b, l)
					}
				}
				if k == graphLayers(o.Model) && run.between() > 0 {
					t.Errorf("%s: %d bytes of rows between servers", label, run.between())
				}
			}
		}
	}
}
