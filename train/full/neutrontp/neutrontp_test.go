package neutrontp_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/graph"
	"starling/tensor"
	"starling/train"
	_ "starling/train/full"
	"starling/train/traintest"
	"starling/wire"
)

func TestIsExact(t *testing.T) {
	traintest.ExactSums(t, traintest.Strategy(t, "neutrontp"), 1, 2, 3, 5)
	traintest.ExactSums(t, traintest.Strategy(t, "neutrontp:1"), 4)
}

func TestOnOddParts(t *testing.T) {
	traintest.ExactOnOddParts(t, traintest.Strategy(t, "neutrontp:3"), "gcn", "sage")
}

// TestSendsSlices: per layer and direction a worker sends the slices of its rows to all, and its slice of others' sums
// to their owners, whatever the edges are.
func TestSendsSlices(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for _, method := range []string{"fennel", "random"} {
		for _, p := range traintest.Cut(t, d, method, 4) {
			o := traintest.Options("gcn")
			o.Model.Layers, o.Strategy = 3, traintest.Strategy(t, "neutrontp")
			end := traintest.Ends(4)[p.Meta.Part]
			plan, err := traintest.Plan(p, end, o)
			if err != nil {
				t.Fatal(err)
			}
			own, slice := p.Meta.Core, int64(16/4)
			want := 8 * slice * (3*own + 120 - own)
			for _, kind := range []wire.Kind{wire.Activation, wire.Gradient} {
				if got := plan.Epoch(0)[wire.Class{Kind: kind, Layer: 1, Link: end.Link(0)}]; got != want {
					t.Errorf("%s: part %d plans %d bytes of %v, want %d", method, p.Meta.Part, got, kind, want)
				}
			}
		}
	}
}

// order is what a worker does with sums and rows, in order.
type order struct {
	wire.Endpoint
	mu   sync.Mutex
	list []string
}

func (o *order) add(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, what)
}

func (o *order) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if kind == wire.Activation {
		o.add("send")
	}
	return o.Endpoint.Send(to, key, kind, payload)
}

// device tells of sums.
func (o *order) device() tensor.Device {
	dev := traintest.Ref()
	return tensor.Intercept(dev, func(c *tensor.Call) {
		if c.Op == "Aggregate" {
			o.add("sum")
		}
		c.Run(dev)
	})
}

// ordered is what worker 0 of two does in an epoch, and the most memory that it has.
func ordered(t *testing.T, text string) (list []string, peak int64) {
	t.Helper()
	parts := traintest.Cut(t, traintest.Communities(t, 1200, false), "random", 2)
	o := traintest.Options("gcn")
	o.Model.Layers, o.Model.Hidden, o.Epochs, o.EvalEvery, o.CacheFirst = 3, 256, 1, 0, false
	o.Strategy = traintest.Strategy(t, text)
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	first := &order{Endpoint: ends[0]}
	traintest.Each(2, func(k int) {
		end, device := ends[k], traintest.Ref
		if k == 0 {
			end, device = first, first.device
		}
		r, err := traintest.Work(parts[k], end, device, o, nil)
		if err != nil {
			t.Error(err)
		} else if k == 0 {
			peak = r.PeakBytes
		}
	})
	return first.list, peak
}

// TestChunksTravelWhileOthersAreSummed: chunks leave between the sums of others, and take less memory than whole
// blocks of sums.
func TestChunksTravelWhileOthersAreSummed(t *testing.T) {
	whole, wholePeak := ordered(t, "neutrontp:1")
	chunks, peak := ordered(t, "neutrontp:8")
	between := func(list []string) (n int) {
		for i := range len(list) - 2 {
			if list[i] == "sum" && list[i+1] == "send" && list[i+2] == "sum" {
				n++
			}
		}
		return n
	}
	if a, b := between(whole), between(chunks); a == 0 || b < 3*a {
		t.Errorf("rows leave between two sums %d times with whole blocks, %d times with eight chunks", a, b)
	}
	if peak >= wholePeak {
		t.Errorf("eight chunks take %d bytes, whole blocks %d", peak, wholePeak)
	}
}

func TestStopsTogether(t *testing.T) {
	o := traintest.Options("gcn")
	o.Strategy = traintest.Strategy(t, "neutrontp")
	traintest.StopsTogether(t, traintest.Cut(t, traintest.Communities(t, 120, false), "hash", 3), o, 60)
}

func TestResumeIsExact(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 90, false), "hash", 3)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.Model.Layers = 7, 2, 3
	o.Strategy = traintest.Strategy(t, "neutrontp:2")
	if want, got := traintest.Resumed(t, parts, o, 3, true); !slices.Equal(got.Loss, want.Loss) {
		t.Errorf("%v, never stopped %v", got.Loss, want.Loss)
	}
}

// TestInductive: training on the edges between training vertices follows one worker.
func TestInductive(t *testing.T) {
	d := traintest.Oddities(t, 90, false)
	o := traintest.Small("gcn")
	o.Inductive = true
	want := traintest.Full(t, traintest.Ref(), d, o)
	o.Strategy = traintest.Strategy(t, "neutrontp")
	for _, r := range traintest.TrainParts(t, traintest.Cut(t, d, "hash", 3), traintest.Ref, o) {
		traintest.SameCurve(t, "inductive", r.Loss, want.Loss, 1e-12)
		traintest.SameCurve(t, "inductive, validation", r.Val, want.Val, 1e-9)
	}
}

// TestRefuses: models that compute something per edge are refused in a sentence that says why.
func TestRefuses(t *testing.T) {
	for model, why := range map[string]string{"gat": "attention", "sage-pool": "per edge", "film": "per edge"} {
		o := traintest.Options(model)
		o.Strategy = traintest.Strategy(t, "neutrontp")
		if err := train.Check(&o, train.Facts{Workers: 2}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", model, err)
		}
	}
	o := traintest.EdgeOptions("gin")
	o.Strategy = traintest.Strategy(t, "neutrontp")
	err := train.Check(&o, train.Facts{Workers: 2})
	if err == nil || !strings.Contains(err.Error(), "--edge-features") {
		t.Errorf("features of edges: %v", err)
	}
	if _, err := traintest.Choose("neutrontp:65"); err == nil {
		t.Error("65 chunks were not refused")
	}
}

// decoupled are options of a decoupled gcn.
func decoupled(t *testing.T, text string) train.Options {
	t.Helper()
	o := traintest.Options("gcn")
	o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Decoupled = 4, 2, 3, true
	o.Strategy = traintest.Strategy(t, text)
	return o
}

// TestDecoupledIsOneWorkers: all products, then all sums, is one worker's run of that model; without chains, as halo
// has it, likewise.
func TestDecoupledIsOneWorkers(t *testing.T) {
	for i, d := range []*graph.Dataset{traintest.Communities(t, 120, false), traintest.Communities(t, 90, true),
		traintest.Oddities(t, 90, true)} {
		for _, norm := range []string{"none", "layer"} {
			o := decoupled(t, "neutrontp:decoupled")
			o.Model.Norm, o.Model.In, o.Model.InputDropout = norm, d.Features.Cols, i == 0
			one := o
			one.Strategy = train.Choice{}
			want := traintest.Full(t, traintest.Ref(), d, one)
			for _, c := range []struct {
				workers int
				text    string
			}{{1, "neutrontp:decoupled"}, {3, "neutrontp:decoupled:2"}, {5, "neutrontp:decoupled"}, {2, "halo"}} {
				o.Strategy = traintest.Strategy(t, c.text)
				r := traintest.TrainParts(t, traintest.Cut(t, d, "random", c.workers), traintest.Ref, o)[0]
				label := fmt.Sprintf("graph %d, %s on %d workers", i, c.text, c.workers)
				traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
				traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
			}
			o.Model.Decoupled, o.Strategy = false, train.Choice{}
			if plain := traintest.Full(t, traintest.Ref(), d, o); slices.Equal(plain.Loss, want.Loss) {
				t.Error("a decoupled model has the losses of one that is not")
			}
		}
	}
}

// TestDecoupledSplitsOnce: an epoch has one split and one gather each way, of rows as wide as the result, however many
// layers there are.
func TestDecoupledSplitsOnce(t *testing.T) {
	for _, p := range traintest.Cut(t, traintest.Communities(t, 120, false), "random", 4) {
		end := traintest.Ends(4)[p.Meta.Part]
		plan, err := traintest.Plan(p, end, decoupled(t, "neutrontp:decoupled"))
		if err != nil {
			t.Fatal(err)
		}
		own := int64(p.Meta.Core)
		want := 8 * (3*own + 120 - own)
		epoch := plan.Epoch(0)
		for class, bytes := range epoch {
			if (class.Kind == wire.Activation || class.Kind == wire.Gradient) && (class.Layer != 0 || bytes != want) {
				t.Errorf("part %d plans %d bytes of %v in layer %d, want %d in layer 0", p.Meta.Part, bytes, class.Kind,
					class.Layer, want)
			}
		}
		if epoch[wire.Class{Kind: wire.Activation, Link: end.Link(0)}] == 0 {
			t.Errorf("part %d plans no rows", p.Meta.Part)
		}
	}
}

// TestDecoupledResumes: a run that is resumed has every loss of one that never stopped.
func TestDecoupledResumes(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "hash", 4, 2)
	want, got := traintest.Resumed(t, parts, decoupled(t, "neutrontp:decoupled"), 1, true)
	if !slices.Equal(got.Loss, want.Loss) {
		t.Errorf("%v, never stopped %v", got.Loss, want.Loss)
	}
}
