package plexus_test

import (
	"slices"
	"strings"
	"testing"

	"starling/train"
	_ "starling/train/full"
	"starling/train/traintest"
	"starling/wire"
)

func TestIsExact(t *testing.T) { traintest.ExactSums(t, traintest.Strategy(t, "plexus"), 1, 4) }

// TestGridsAreExact: every shape of a grid, along one, two and three axes, with products by the grid and by owners.
func TestGridsAreExact(t *testing.T) {
	for text, workers := range map[string]int{"plexus:2x2x2": 8, "plexus:1x3x2": 6, "plexus:5x1x1": 5,
		"plexus:3x1x2+rows": 6} {
		traintest.ExactSums(t, traintest.Strategy(t, text), workers)
	}
}

func TestOnOddParts(t *testing.T) {
	traintest.ExactOnOddParts(t, traintest.Strategy(t, "plexus"), "gcn", "sage")
	traintest.ExactOnOddParts(t, traintest.Strategy(t, "plexus+rows"), "gcn")
}

// planned is what worker 0 of a grid sends of rows and gradients in layer 1 of three, 16 numbers wide, in an epoch;
// of says which worker each of 120 vertices is.
func planned(t *testing.T, text string, workers int, of func(v int) int) (forward, backward int64) {
	t.Helper()
	owners := make([]uint32, 120)
	for v := range owners {
		owners[v] = uint32(of(v))
	}
	p := traintest.WriteParts(t, traintest.Communities(t, 120, false), owners, workers, 1)[0]
	o := traintest.Options("gcn")
	o.Model.Layers, o.Strategy = 3, traintest.Strategy(t, text)
	plan, err := traintest.Plan(p, traintest.Ends(workers)[0], o)
	if err != nil {
		t.Fatal(err)
	}
	for class, bytes := range plan.Epoch(0) {
		switch {
		case class.Layer == 1 && class.Kind == wire.Activation:
			forward += bytes
		case class.Layer == 1 && class.Kind == wire.Gradient:
			backward += bytes
		}
	}
	return forward, backward
}

// TestSendsBlocks: a layer sends what the 3-D products need: rows to blocks along y, slabs of inputs along z, an
// all-reduce along x, a reduce-scatter along y and rows to their owners along x; backward the same of gradients,
// whatever the cut is.
func TestSendsBlocks(t *testing.T) {
	const own, slab, half, size = 120 / 8, 120 / 4, 16 / 2, 8 // a worker's vertices, those of two, columns, bytes
	want := int64(size * half * (own + slab + 2*slab + slab + own))
	for _, of := range []func(v int) int{func(v int) int { return v / own }, func(v int) int { return v % 8 }} {
		forward, backward := planned(t, "plexus:2x2x2", 8, of)
		if forward != want || backward != want {
			t.Errorf("%d bytes forward and %d backward, want %d", forward, backward, want)
		}
		rows, _ := planned(t, "plexus:2x2x2+rows", 8, of)
		if want := int64(size * half * (own + slab + slab + own)); rows != want {
			t.Errorf("owners' products send %d bytes, want %d", rows, want)
		}
	}
}

func TestStopsTogether(t *testing.T) {
	o := traintest.Options("gcn")
	o.Strategy = traintest.Strategy(t, "plexus:2x2x1")
	traintest.StopsTogether(t, traintest.Cut(t, traintest.Communities(t, 120, false), "hash", 4), o, 60)
}

func TestResumeIsExact(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 90, false), "hash", 4)
	for _, text := range []string{"plexus:1x2x2", "plexus+rows"} {
		o := traintest.Options("sage")
		o.Epochs, o.EvalEvery, o.Model.Layers = 7, 2, 3
		o.Strategy = traintest.Strategy(t, text)
		if want, got := traintest.Resumed(t, parts, o, 3, true); !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: %v, never stopped %v", text, got.Loss, want.Loss)
		}
	}
}

// TestInductive: training on the edges between training vertices follows one worker.
func TestInductive(t *testing.T) {
	d := traintest.Oddities(t, 90, false)
	o := traintest.Small("gcn")
	o.Inductive = true
	want := traintest.Full(t, traintest.Ref(), d, o)
	o.Strategy = traintest.Strategy(t, "plexus:2x1x2")
	for _, r := range traintest.TrainParts(t, traintest.Cut(t, d, "hash", 4), traintest.Ref, o) {
		traintest.SameCurve(t, "inductive", r.Loss, want.Loss, 1e-12)
		traintest.SameCurve(t, "inductive, validation", r.Val, want.Val, 1e-9)
	}
}

// TestRefuses: models that do more than sum, and grids of another number of workers.
func TestRefuses(t *testing.T) {
	for model, why := range map[string]string{"gat": "both ends of an edge", "gin": "--model gin", "film": "film"} {
		o := traintest.Options(model)
		o.Strategy = traintest.Strategy(t, "plexus")
		if err := train.Check(&o, train.Facts{Workers: 4}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", model, err)
		}
	}
	o := traintest.Options("gcn")
	o.Strategy = traintest.Strategy(t, "plexus:2x2x2")
	if err := train.Check(&o, train.Facts{Workers: 4}); err == nil || !strings.Contains(err.Error(), "8 workers") {
		t.Errorf("a grid of 8 for 4 workers: %v", err)
	}
	for _, text := range []string{"plexus:2x2", "plexus:0x2x2", "plexus:axbxc"} {
		if _, err := traintest.Choose(text); err == nil {
			t.Errorf("%s was not refused", text)
		}
	}
}
