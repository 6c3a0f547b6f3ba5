package bns_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/train"
	_ "starling/train/full"
	"starling/train/traintest"
)

func TestKeepingAllIsHalo(t *testing.T) {
	for _, text := range []string{"bns:1", "bns:1:cached"} {
		t.Run(text, func(t *testing.T) { traintest.IsHalo(t, traintest.Strategy(t, text)) })
	}
}

func TestCopes(t *testing.T) {
	for _, text := range []string{"bns", "bns:cached"} {
		traintest.Copes(t, traintest.Strategy(t, text))
	}
}

func TestStopsWithOthers(t *testing.T) {
	for _, text := range []string{"bns", "bns:cached"} {
		traintest.AllStop(t, traintest.Strategy(t, text))
	}
}

// TestSendsItsShare: the rows of training passes are a share p of halo's, and those of
// measuring passes all of them.
func TestSendsItsShare(t *testing.T) {
	d := traintest.Communities(t, 600, true)
	parts := traintest.Cut(t, d, "random", 4)
	rows := func(strategy string) (n float64) {
		o := traintest.Small("gcn")
		o.Epochs, o.EvalEvery, o.Strategy = 20, 0, traintest.Strategy(t, strategy)
		for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
			for e := range o.Epochs {
				for class, b := range r.Plan.Epoch(e) {
					if traintest.IsRows(class) {
						n += float64(b)
					}
				}
			}
		}
		return n
	}
	share := rows("bns") / rows("halo")
	if math.Abs(share-0.1) > 0.005 {
		t.Fatalf("bns sends %.4f of halo's rows, want 0.1", share)
	}
}

// TestLearns: attention and sums at the default share end near halo's accuracy.
func TestLearns(t *testing.T) {
	traintest.Learns(t, 0.05, func(int) train.Choice { return traintest.Strategy(t, "bns") })
}

// TestResumes: a resumed run draws what it would have drawn.
func TestResumes(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3)
	for _, model := range []string{"gcn", "gat"} {
		o := traintest.Small(model)
		o.Strategy = traintest.Strategy(t, "bns")
		if want, got := traintest.Resumed(t, parts, o, 3, false); !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: losses %v after a stop, %v without", model, got.Loss, want.Loss)
		}
	}
}

// TestRefusesWhatNeedsAllRows: layers that have no place for a missing row say so.
func TestRefusesWhatNeedsAllRows(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "chunk", 2)
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	for _, model := range []string{"gatv2", "sage-pool", "film"} {
		o := traintest.Options(model)
		o.Strategy = traintest.Strategy(t, "bns")
		if _, err := traintest.Plan(parts[0], ends[0], o); err == nil || !strings.Contains(err.Error(), model) {
			t.Errorf("%s: %v", model, err)
		}
		o.Strategy = traintest.Strategy(t, "bns:1")
		if _, err := traintest.Plan(parts[0], ends[0], o); err != nil {
			t.Errorf("%s, all rows kept: %v", model, err)
		}
	}
}

// TestSettings: what may follow the name.
func TestSettings(t *testing.T) {
	for text, want := range map[string]string{
		"bns":              "map[cached:false keep:0.1]",
		"bns:0.3:shrunk":   "map[cached:false keep:0.3 shrunk:true]",
		"bns:shrunk":       "map[cached:false keep:0.1 shrunk:true]",
		"bns:0.3:unbiased": "map[cached:false keep:0.3]", // what it was called
		"bns:cached":       "map[cached:true keep:0.1]",
		"bns:0.3:cached":   "map[cached:true keep:0.3]",
	} {
		if c, err := train.Choose(text, nil); err != nil || fmt.Sprint(c.Report()) != want {
			t.Errorf("%s: %v, %v", text, c.Report(), err)
		}
	}
	for _, text := range []string{"bns:", "bns:cache", "bns:0.1:", "bns:cached:0.1", "bns:0:cached",
		"bns:0.1:cached:cached", "bns:0.1:shrunk:cached", "bns:0.1:unbiased:shrunk"} {
		if _, err := train.Choose(text, nil); err == nil {
			t.Errorf("%s makes sense", text)
		}
	}
}

// TestRowsNotKeptTakeNoRoom: messages of attention, which stay for the backward pass, have rows for vertices that were
// kept alone.
func TestRowsNotKeptTakeNoRoom(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 1200, false), "random", 4)
	peak := func(strategy string) (most int64) {
		o := traintest.Options("gat")
		o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Hidden = 3, 0, 4, 64
		o.Strategy = traintest.Strategy(t, strategy)
		for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
			most = max(most, r.PeakBytes)
		}
		return most
	}
	whole, kept, some := peak("halo"), peak("bns:1"), peak("bns:0.1")
	if some > whole*2/3 || kept < whole*9/10 {
		t.Errorf("a worker's matrices take %d bytes with a tenth of the halo, %d with all of it, halo's %d", some, kept,
			whole)
	}
}
