package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

func ref() tensor.Device { return tensor.NewRef() }

// exactEverywhere: a strategy without approximation follows one worker's loss, for
// every model, on several workers and partitions, in float64 and float32.
func exactEverywhere(t *testing.T, choice Choice) {
	t.Helper()
	for _, model := range []string{"gcn", "sage", "gat", "gin", "ressage+"} {
		d := communities(t, 120, model == "sage")
		o := options(model)
		o.Epochs, o.EvalEvery = 5, 2
		o.Model.Layers = min(o.Model.Layers, 4)
		if model == "gcn" {
			o.Model.Norm, o.Epochs = "batch", 20
		}
		want := mustTrain(t, tensor.NewRef(), d, o)
		o.Strategy = choice
		for _, w := range []int{1, 2, 3, 5} {
			method := []string{"random", "hash", "chunk", "fennel"}[w%4]
			parts := cut(t, d, method, w)
			label := fmt.Sprintf("%s, %s on %d workers cut by %s", choice.Name, model, w, method)
			for _, r := range trainParts(t, parts, ref, o) {
				sameCurve(t, label, r.Loss, want.Loss, 1e-9)
				sameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
			}
			if w == 3 {
				for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o) {
					sameCurve(t, label+", float32", r.Loss, want.Loss, 1e-4)
				}
			}
		}
	}
}

// oddParts are partitions that no partitioner would make: a worker without a border
// (and with isolated vertices), one without a training vertex, one with a single
// vertex, one with nearly all.
func oddParts(t *testing.T) (*graph.Dataset, map[string][]*partition.Part) {
	d := communities(t, 60, false)
	var src, dst []uint32
	for v := range uint32(60) {
		for _, u := range d.Graph.Neighbors(v) {
			if (u < 20) == (v < 20) && u != 7 && v != 7 {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	g, err := graph.FromEdges(60, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Graph, d.Meta.Edges = g, g.Edges()
	assign := func(of func(v int) uint32) []uint32 {
		out := make([]uint32, 60)
		for v := range out {
			out[v] = of(v)
		}
		return out
	}
	pick := func(yes bool, a, b uint32) uint32 {
		if yes {
			return a
		}
		return b
	}
	return d, map[string][]*partition.Part{
		"no border":   writeParts(t, d, assign(func(v int) uint32 { return pick(v < 20, 0, 1+uint32(v%2)) }), 3, 1),
		"no training": writeParts(t, d, assign(func(v int) uint32 { return pick(v%4 == 0, uint32(v/4%2), 2) }), 3, 1),
		"uneven":      writeParts(t, d, assign(func(v int) uint32 { return uint32(max(0, v-56)) }), 4, 1),
	}
}

// exactOnOddParts: a strategy without approximation is exact on odd partitions too.
func exactOnOddParts(t *testing.T, choice Choice) {
	t.Helper()
	d, odd := oddParts(t)
	for _, model := range []string{"gcn", "gat"} {
		o := options(model)
		o.Epochs, o.EvalEvery = 4, 2
		want := mustTrain(t, tensor.NewRef(), d, o)
		o.Strategy = choice
		for what, parts := range odd {
			for _, r := range trainParts(t, parts, ref, o) {
				sameCurve(t, fmt.Sprintf("%s, %s, %s", choice.Name, model, what), r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

// failing breaks its worker's endpoint in the middle of an epoch.
type failing struct {
	wire.Endpoint
	at atomic.Int32
}

var errUnplugged = errors.New("unplugged")

func newFailing(end wire.Endpoint, at int) *failing {
	f := &failing{Endpoint: end}
	f.at.Store(int32(at))
	return f
}

func (f *failing) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if f.at.Add(-1) == 0 {
		f.Fail(errUnplugged)
	}
	return f.Endpoint.Send(to, key, kind, payload)
}

// allStop: when one worker breaks in mid-epoch all end, and all know why.
func allStop(t *testing.T, choice Choice) {
	t.Helper()
	workers, servers := 3, 1
	if choice.Relay {
		workers, servers = 4, 2
	}
	parts := cutForServers(t, communities(t, 120, false), "hash", workers, servers)
	for _, model := range []string{"gcn", "gat"} {
		o := options(model)
		o.Strategy = choice
		ends := wire.NewGroup(workers, wire.DefaultOptions())
		errs := make([]error, workers)
		var wg sync.WaitGroup
		for k := range parts {
			var end wire.Endpoint = ends[k]
			if k == 1 {
				end = newFailing(end, 60)
			}
			wg.Go(func() {
				dev := tensor.NewRef()
				defer dev.Close()
				_, errs[k] = Worker(context.Background(), dev, parts[k], end, NewGroup(context.Background(), end, dev, parts[k].Book.Servers), o, nil)
			})
		}
		wg.Wait()
		for k, err := range errs {
			if err == nil || !strings.Contains(err.Error(), errUnplugged.Error()) {
				t.Errorf("%s, %s: worker %d ended with %v", choice.Name, model, k, err)
			}
			ends[k].Close()
		}
	}
}

func TestCAGNETIsExact(t *testing.T)       { exactEverywhere(t, DefaultChoice("cagnet")) }
func TestCAGNETOnOddParts(t *testing.T)    { exactOnOddParts(t, DefaultChoice("cagnet")) }
func TestCAGNETStopsTogether(t *testing.T) { allStop(t, DefaultChoice("cagnet")) }

// TestCAGNETSendsWholeBlocks: per layer the core goes to every peer, and a gradient of
// every other vertex to its owner, whatever the cut.
func TestCAGNETSendsWholeBlocks(t *testing.T) {
	parts := cut(t, communities(t, 120, false), "fennel", 4)
	o := options("gcn")
	o.Model.Layers = 3
	o.Strategy = DefaultChoice("cagnet")
	for _, p := range parts {
		end := wire.NewGroup(4, wire.DefaultOptions())[p.Meta.Part]
		plan, err := PlanOnPaper(p, end, tensor.NewRef(), nn.New(tensor.NewRef(), o.Model, 1), nn.Classify{}, o)
		if err != nil {
			t.Fatal(err)
		}
		for kind, rows := range map[wire.Kind]int64{wire.Activation: 3 * p.Meta.Core, wire.Gradient: 120 - p.Meta.Core} {
			if got, want := plan.Epoch(0)[Sent{kind, 1, end.Link(0)}], rows*16*8; got != want {
				t.Errorf("part %d plans %d bytes of %v in layer 1, want %d", p.Meta.Part, got, kind, want)
			}
		}
	}
}
