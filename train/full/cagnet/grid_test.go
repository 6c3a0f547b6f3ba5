package cagnet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/train"
	_ "starling/train/full"
	"starling/train/traintest"
	"starling/wire"
)

func TestGridsAreExact(t *testing.T) {
	traintest.ExactSums(t, traintest.Strategy(t, "cagnet:1.5d"), 4, 6)
	traintest.ExactSums(t, traintest.Strategy(t, "cagnet:1.5d:3"), 9)
	traintest.ExactSums(t, traintest.Strategy(t, "cagnet:2d"), 4, 9)
}

func TestGridsOnOddParts(t *testing.T) {
	d := traintest.Oddities(t, 90, true)
	for _, text := range []string{"cagnet:1.5d", "cagnet:2d"} {
		o := traintest.Small("gin")
		want := traintest.Full(t, traintest.Ref(), d, o)
		o.Strategy = traintest.Strategy(t, text)
		for _, method := range []string{"chunk", "hash", "fennel"} {
			r := traintest.TrainParts(t, traintest.Cut(t, d, method, 4), traintest.Ref, o)
			traintest.SameCurve(t, text+" "+method, r[3].Loss, want.Loss, 1e-12)
		}
	}
}

// TestGridsSend: what workers of a grid send in a hidden layer, forward and backward: the copies of a row's block, the
// blocks of a column, and what returns to owners.
func TestGridsSend(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for _, c := range []struct {
		text          string
		workers, cols int
	}{{"cagnet:1.5d", 8, 2}, {"cagnet:1.5d:3", 9, 3}, {"cagnet:2d", 4, 2}, {"cagnet:2d", 9, 3}} {
		parts := traintest.Cut(t, d, "random", c.workers)
		rows := c.workers / c.cols
		for _, p := range parts {
			o := traintest.Options("gcn")
			o.Model.Layers, o.Strategy = 3, traintest.Strategy(t, c.text)
			end := traintest.Ends(c.workers)[p.Meta.Part]
			plan, err := traintest.Plan(p, end, o)
			if err != nil {
				t.Fatal(err)
			}
			book, me := p.Book, p.Meta.Part
			row, col := me/c.cols, me%c.cols
			block := book.Offsets[(row+1)*c.cols] - book.Offsets[row*c.cols]
			own, width := p.Meta.Core, int64(16)
			var forward, backward int64
			if strings.HasSuffix(c.text, "2d") {
				slice := func(col int) int64 {
					return width*int64(col+1)/int64(c.cols) - width*int64(col)/int64(c.cols)
				}
				shares := own*(width-slice(col)) + (block-own)*slice(col)
				forward = shares + int64(rows-1)*block*slice(col)
				backward = shares + (120-block)*slice(col)
			} else {
				mine := func(k int) bool { return rows*col/c.cols <= k && k < rows*(col+1)/c.cols }
				copies := own * width * int64(c.cols-1)
				forward, backward = copies+(block-own)*width, copies
				if mine(row) {
					forward += int64(rows-1) * block * width
					backward += (block - own) * width
				}
				for k := range rows {
					if k != row && mine(k) {
						backward += (book.Offsets[(k+1)*c.cols] - book.Offsets[k*c.cols]) * width
					}
				}
			}
			for kind, want := range map[wire.Kind]int64{wire.Activation: 8 * forward, wire.Gradient: 8 * backward} {
				if got := plan.Epoch(0)[wire.Class{Kind: kind, Layer: 1, Link: end.Link(0)}]; got != want {
					t.Errorf("%s: part %d of %d plans %d bytes of %v, want %d", c.text, me, c.workers, got, kind, want)
				}
			}
		}
	}
}

func TestGridsStopTogether(t *testing.T) {
	for _, text := range []string{"cagnet:1.5d", "cagnet:2d"} {
		o := traintest.Options("gcn")
		o.Strategy = traintest.Strategy(t, text)
		traintest.StopsTogether(t, traintest.Cut(t, traintest.Communities(t, 120, false), "hash", 4), o, 60)
	}
}

func TestGridsResume(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 90, false), "hash", 4)
	for _, text := range []string{"cagnet:1.5d:2", "cagnet:2d"} {
		o := traintest.Options("sage")
		o.Epochs, o.EvalEvery, o.Model.Layers = 7, 2, 3
		o.Strategy = traintest.Strategy(t, text)
		if want, got := traintest.Resumed(t, parts, o, 3, true); !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: %v, never stopped %v", text, got.Loss, want.Loss)
		}
	}
}

// TestGridsInductive: training on the edges between training vertices follows one worker.
func TestGridsInductive(t *testing.T) {
	d := traintest.Oddities(t, 90, false)
	o := traintest.Small("gcn")
	o.Inductive = true
	want := traintest.Full(t, traintest.Ref(), d, o)
	for _, text := range []string{"cagnet:1.5d", "cagnet:2d"} {
		o.Strategy = traintest.Strategy(t, text)
		for _, r := range traintest.TrainParts(t, traintest.Cut(t, d, "hash", 4), traintest.Ref, o) {
			traintest.SameCurve(t, text, r.Loss, want.Loss, 1e-12)
			traintest.SameCurve(t, text+", validation", r.Val, want.Val, 1e-9)
		}
	}
}

// TestGridsRefuse: workers that make no grid, and what is more than sums of rows.
func TestGridsRefuse(t *testing.T) {
	for _, c := range []struct {
		text, model string
		workers     int
		why         string
	}{{"cagnet:2d", "gcn", 6, "square"}, {"cagnet:1.5d", "gcn", 5, "replicas"}, {"cagnet:1.5d", "gcn", 2, "replicas"},
		{"cagnet:1.5d:4", "gcn", 8, "replicas"}, {"cagnet:2d", "gat", 4, "per edge"},
		{"cagnet:1.5d", "film", 4, "per edge"}} {
		o := traintest.Options(c.model)
		o.Strategy = traintest.Strategy(t, c.text)
		err := train.Check(&o, train.Facts{Workers: c.workers})
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s of %s on %d workers: %v", c.text, c.model, c.workers, err)
		}
	}
	for _, text := range []string{"cagnet:3d", "cagnet:1.5d:1", "cagnet:1.5d:x", "cagnet:2d:2", "cagnet:2d+bf16",
		"cagnet:2d+sparse"} {
		if c, err := traintest.Choose(text); err == nil {
			t.Errorf("%s makes sense: %v", text, c.Report())
		}
	}
	for text, want := range map[string]string{"cagnet": "map[]", "cagnet:1d": "map[]", "cagnet:1.5d": "map[grid:1.5d]",
		"cagnet:1.5d:4": "map[grid:1.5d replicas:4]", "cagnet:2d": "map[grid:2d]"} {
		if c, err := traintest.Choose(text); err != nil || fmt.Sprint(c.Report()) != want {
			t.Errorf("%s is %v, want %s: %v", text, c.Report(), want, err)
		}
	}
}
