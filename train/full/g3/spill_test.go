package g3

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/exchange"
	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// spilling is g3 whose finished rows leave memory as soon as they may.
func spilling(dir, budget string) train.Choice {
	return traintest.Made(Strategy, options{Pipeline: "both", Spill: dir,
		BudgetOption: exchange.BudgetOption{MemoryBudget: budget}, RowOptions: exchange.DefaultRows})
}

// TestSpillIsExact: rows that left memory and came back are those that left, for every model:
// on the reference device what has left reads as NaN, and on the other it has no address.
func TestSpillIsExact(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.Cut(t, d, "random", 3)
	for _, model := range nn.Models {
		for _, norm := range []string{"batch", "layer"} {
			o := traintest.Options(model)
			o.Epochs, o.EvalEvery, o.Model.Norm = 3, 2, norm
			o.Model.Layers = max(o.Model.Layers, 5)
			want := traintest.Full(t, traintest.Ref(), d, o)
			o.Strategy = spilling(t.TempDir(), "2KiB")
			label := fmt.Sprintf("%s, %s norm", model, norm)
			r := traintest.Observe(t, traintest.Ends(3), parts, traintest.Ref, o)
			for _, r := range r.Results {
				traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
			}
			left := func(note string) bool { return strings.Contains(note, "of rows per epoch left memory") }
			if !slices.ContainsFunc(r.Notes, left) && model != "mlp" {
				t.Errorf("%s: nothing left memory: %q", label, r.Notes)
			}
			for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
				traintest.SameCurve(t, label+", float32", r.Loss, want.Loss, 1e-4)
			}
		}
	}
}

// TestSpillBoundsMemory: with rows that leave, a deep model's matrices take a fraction of
// the memory, and with each budget no more than it and what a pass needs at once.
func TestSpillBoundsMemory(t *testing.T) {
	d := traintest.Communities(t, 400, false)
	parts := traintest.Cut(t, d, "random", 2)
	o := traintest.Options("ressage+")
	o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Hidden = 2, 0, 28, 8
	peak := func(budget string) int64 {
		dir := t.TempDir()
		o.Strategy = spilling(dir, budget)
		devices := make(chan tensor.Device, 2)
		traintest.TrainParts(t, parts, func() tensor.Device {
			dev := traintest.Ref()
			devices <- dev
			return dev
		}, o)
		_, peak := (<-devices).Usage()
		return peak
	}
	all, half, least := peak("1GiB"), peak("800KiB"), peak("64KiB")
	t.Logf("peaks: %d bytes without a budget that counts, %d with 800 KiB, %d with 64 KiB", all, half, least)
	if !(least < half && half < all && least < all/2 && half < 800<<10+least) {
		t.Errorf("peaks: %d bytes without a budget that counts, %d with 800 KiB, %d with 64 KiB", all, half, least)
	}
}

// TestSpillNeedsAFolderThatIsThere: all workers end with a text that names it.
func TestSpillNeedsAFolderThatIsThere(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 2)
	o := traintest.Options("ressage+")
	o.Strategy = spilling("/there is no such folder", "1KiB")
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	traintest.Each(2, func(k int) {
		_, err := traintest.Work(parts[k], ends[k], traintest.Ref, o, nil)
		if err == nil || !strings.Contains(err.Error(), "--spill") {
			t.Errorf("worker %d: %v", k, err)
		}
	})
	if err := (&options{Spill: "x", RowOptions: exchange.DefaultRows}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "--memory-budget") {
		t.Errorf("a folder without a budget: %v", err)
	}
}
