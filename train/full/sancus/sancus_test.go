package sancus_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/event"
	"starling/partition"
	"starling/train"
	_ "starling/train/full"
	"starling/train/traintest"
)

// stale is sancus with a bound.
func stale(t *testing.T, bound string, options ...string) train.Choice {
	t.Helper()
	return traintest.Strategy(t, "sancus:"+bound, options...)
}

func TestWithoutStalenessIsExact(t *testing.T) {
	for _, bound := range []string{"epoch:0", "adaptive:0", "variation:0", "relative:0"} {
		t.Run(bound, func(t *testing.T) { traintest.ExactEverywhere(t, stale(t, bound, "clip=0")) })
	}
}

func TestOnOddParts(t *testing.T) {
	for _, bound := range []string{"epoch:0", "variation:0"} {
		traintest.ExactOnOddParts(t, stale(t, bound, "clip=0"))
	}
	_, odd := traintest.OddParts(t)
	for _, bound := range []string{"epoch:2", "adaptive:2"} { // TrainParts compares plan and ledger
		o := traintest.Options("gat")
		o.Epochs, o.Strategy = 7, stale(t, bound)
		for _, parts := range odd {
			traintest.TrainParts(t, parts, traintest.Ref, o)
		}
	}
}

func TestStopsTogether(t *testing.T) {
	for _, bound := range []string{"epoch:1", "adaptive:1", "variation:0.5", "relative:0.5"} {
		traintest.AllStop(t, stale(t, bound))
	}
}

// rowsShare is the share of CAGNET's rows that all workers plan for epochs 0 to n-1.
func rowsShare(t *testing.T, parts []*partition.Part, o train.Options, n int) float64 {
	t.Helper()
	ends := traintest.Ends(len(parts))
	sum := func(choice train.Choice) (total float64) {
		o.Strategy = choice
		for k, p := range parts {
			plan, err := traintest.Plan(p, ends[k], o)
			if err != nil {
				t.Fatal(err)
			}
			for e := range n {
				for class, bytes := range plan.Epoch(e) {
					if traintest.IsRows(class) {
						total += float64(bytes)
					}
				}
			}
		}
		return total
	}
	return sum(o.Strategy) / sum(traintest.Strategy(t, "cagnet"))
}

// freshShare is the share of scores and the last layer, which are always fresh, in the
// bytes of traintest.Options(model): GAT's rows have 16 and 4 numbers, its scores 2 and 1.
func freshShare(model string) float64 {
	if model == "gat" {
		return 7. / 23
	}
	return 0
}

// TestSendsItsShare: with bound K one of K+1 broadcasts of rows is left, with +gradients in
// both directions, and all of attention's scores and last layer; that plans are kept to the
// byte is TrainParts' to say.
func TestSendsItsShare(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, true), "hash", 4)
	for _, model := range []string{"gcn", "gat"} {
		o := traintest.Options(model)
		o.Epochs, o.EvalEvery = 12, 0
		fresh := freshShare(model)
		for k := range 4 {
			share := fresh + (1-fresh)/float64(k+1)
			for _, c := range []struct {
				rule        string
				suffix      string
				want        float64
				epochs      int
				differences float64
			}{{"epoch", "", (1 + share) / 2, 12, 1e-12}, {"epoch", "+gradients", share, 12, 1e-12},
				{"adaptive", "+gradients", share, 120, 0.01}} { // the first epoch has all, whatever the turn
				if k == 0 && c.suffix != "" {
					continue // nothing is skipped: refused
				}
				o.Strategy = stale(t, fmt.Sprintf("%s:%d%s", c.rule, k, c.suffix))
				if got := rowsShare(t, parts, o, c.epochs); math.Abs(got-c.want) > c.differences {
					t.Errorf("%s: %s:%d%s sends a share %g of rows, want about %g", model, c.rule, k, c.suffix,
						got, c.want)
				}
				traintest.TrainParts(t, parts, traintest.Ref, o)
			}
		}
	}
}

// TestVariationSkipsWhatHardlyChanges: a wide bound sends the first block only, a
// narrow one all of them, and one between some; announcements, scores and attention's last
// layer are sent in any case.
func TestVariationSkipsWhatHardlyChanges(t *testing.T) {
	d := traintest.Communities(t, 120, true)
	parts := traintest.Cut(t, d, "hash", 3)
	for _, model := range []string{"gcn", "gat"} {
		o := traintest.Options(model)
		o.Model.Dropout, o.Model.AttentionDropout, o.Optim.LR = 0, 0, 0.02
		for _, x := range [][]string{{"relative:1000", "relative:0.2", "relative:0.000001"},
			{"variation:1000", "variation:0.1", "variation:0.000001"}} {
			var sent []int64
			for _, bound := range x {
				o.Strategy = stale(t, bound+"+gradients")
				sent = append(sent, sentRows(t, parts, o))
			}
			each, fresh := float64(sent[2])/float64(o.Epochs), freshShare(model)
			once := each * (1 + fresh*float64(o.Epochs-1))
			if !(sent[0] < sent[1] && sent[1] < sent[2]) || math.Abs(float64(sent[0])-once) > 0.5 {
				t.Errorf("%s, %s: rows sent %v in %d epochs", model, x[1], sent, o.Epochs)
			}
		}
	}
}

// sentRows is the bytes of rows that training moved on all workers.
func sentRows(t *testing.T, parts []*partition.Part, o train.Options) (n int64) {
	t.Helper()
	o.EvalEvery = 0
	r := traintest.TrainServers(t, parts, traintest.Ref, o)
	for k, sent := range r.Counted {
		for class, bytes := range sent {
			if traintest.IsRows(class) {
				n += bytes - r.Results[k].Plan.Measure[class]
			}
		}
	}
	return n
}

// TestSaysWhatItKeeps: worker 0 alone does, for all.
func TestSaysWhatItKeeps(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, true), "hash", 2)
	o := traintest.Options("gat")
	o.Epochs, o.Strategy = 3, traintest.Strategy(t, "sancus")
	var notes [2][]string
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	traintest.Each(2, func(k int) {
		listen := event.Func(func(e event.Event) {
			if n, ok := e.(event.Note); ok {
				notes[k] = append(notes[k], n.Text)
			}
		})
		if _, err := traintest.Work(parts[k], ends[k], traintest.Ref, o, listen); err != nil {
			t.Error(err)
		}
	})
	// Rows of 16 numbers in float64, of the peer. The last layer's are never stale.
	bytes := parts[1].Meta.Core * 16 * 8
	want := fmt.Sprintf("sancus: worker 0 keeps %s of what others sent last", event.Bytes(bytes))
	if len(notes[0]) != 1 || notes[0][0] != want || len(notes[1]) > 0 {
		t.Errorf("workers said %q, want %q from worker 0 alone", notes, want)
	}
}

// TestClips: a tight norm leaves next to nothing of what other workers' losses say about a
// row, and so changes the curve; a wide one changes nothing.
func TestClips(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "hash", 4)
	o := traintest.Options("gcn")
	o.Epochs, o.Optim.Name = 3, "sgd"
	clipped := func(norm string) *train.Result {
		o.Strategy = stale(t, "epoch:0", "clip="+norm)
		return traintest.TrainParts(t, parts, traintest.Ref, o)[0]
	}
	free, wide, tight := clipped("0"), clipped("1e6"), clipped("1e-9")
	if !slices.Equal(free.Loss, wide.Loss) {
		t.Errorf("a norm of 1e6 changes losses %v to %v", free.Loss, wide.Loss)
	}
	if d := math.Abs(free.Loss[2] - tight.Loss[2]); free.Loss[0] != tight.Loss[0] || d < 1e-6 {
		t.Errorf("a norm of 1e-9 changes losses %v to %v", free.Loss, tight.Loss)
	}
}

func TestBadStaleness(t *testing.T) {
	for text, want := range map[string]string{
		"sancus:epoch:0+gradients": "skips none",
		"sancus:epoch":             "whole number from 0",
		"sancus:epoch:-1":          "whole number from 0",
		"sancus:epoch:1.5":         "not \"1.5\"",
		"sancus:adaptive:x":        "as in adaptive:2",
		"sancus:variation:":        "a number from 0",
		"sancus:variation:NaN":     "a number from 0",
		"sancus:variation:-0.1":    "not \"-0.1\"",
		"sancus:variation:x":       "relative:X",
		"sancus:relative:NaN":      "a number from 0",
		"sancus:relative:2x":       "as in relative:0.5",
		"sancus:sometimes:2":       "not one of epoch:K, adaptive:K, variation:X, relative:X",
		"sancus:":                  "not one of epoch:K",
		"skipg:-1":                 "from 0, not -1",
		"skipg:often":              "a whole number",
		"cagnet:2":                 "must be 1d, 1.5d or 2d",
	} {
		if _, err := train.Choose(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %q", text, err, want)
		}
	}
	for _, text := range []string{"sancus", "sancus:epoch:0", "sancus:adaptive:3", "sancus:variation:0.05",
		"sancus:relative:0.05", "skipg", "skipg:2", "cagnet"} {
		if _, err := train.Choose(text, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, clip := range []string{"-1", "NaN"} {
		if _, err := traintest.Choose("sancus", "clip="+clip); err == nil || !strings.Contains(err.Error(), "norm") {
			t.Errorf("clip %s: %v", clip, err)
		}
	}
}

func TestSkipG(t *testing.T) {
	exactly := traintest.Strategy(t, "skipg:0")
	traintest.ExactEverywhere(t, exactly)
	traintest.ExactOnOddParts(t, exactly)
	traintest.AllStop(t, traintest.Strategy(t, "skipg"))
	parts := traintest.Cut(t, traintest.Communities(t, 120, true), "hash", 3)
	for _, model := range []string{"gcn", "gat"} {
		o := traintest.Options(model)
		o.Epochs = 12
		fresh := freshShare(model)
		for k := range 3 {
			o.Strategy = traintest.Strategy(t, fmt.Sprintf("skipg:%d", k))
			if got, want := rowsShare(t, parts, o, 12),
				0.5+0.5*(fresh+(1-fresh)/float64(k+1)); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: skipg:%d sends a share %g of rows, want %g", model, k, got, want)
			}
			r := traintest.TrainParts(t, parts, traintest.Ref, o)[0]
			if k > 0 && !(r.Loss[11] < r.Loss[0]) {
				t.Errorf("%s: skipg:%d does not learn: %v", model, k, r.Loss)
			}
		}
	}
}

// TestStaleRowsRounded: rows that are kept may also travel rounded, over any transport.
func TestStaleRowsRounded(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 200, true), "random", 3)
	for i, choice := range []string{"sancus:epoch:2", "sancus:adaptive:2", "sancus:variation:0.9", "skipg:1"} {
		o := traintest.Options("gat")
		o.EvalEvery = 0
		o.Strategy = traintest.Strategy(t, choice)
		whole := traintest.TrainParts(t, parts, traintest.Ref, o)[0]
		o.Strategy = traintest.Strategy(t, choice, "wire_dtype=int8")
		for _, r := range traintest.TrainOver(t, traintest.Over(t, []string{"tcp", "shm"}[i%2], 3), parts,
			traintest.Ref, o) {
			traintest.SameCurve(t, choice, r.Loss, whole.Loss, 0.05)
		}
	}
}

// TestSancusOnCora: stale rows cost next to no accuracy on the real graph. Ten seeds are
// in docs/strategies/sancus.md; three catch what breaks.
func TestSancusOnCora(t *testing.T) {
	d := traintest.Cora(t)
	parts := traintest.Cut(t, d, "multilevel", 4)
	accuracy := func(strategy string) (mean float64) {
		o := traintest.CoraOptions(d, "gcn")
		o.EvalEvery, o.Strategy = 4, traintest.Strategy(t, strategy)
		for o.Seed = range uint64(3) {
			mean += traintest.TrainParts(t, parts, traintest.Single, o)[0].TestMetric / 3
		}
		return mean
	}
	halo, sancus := accuracy("halo"), accuracy("sancus")
	t.Logf("test accuracy: halo %.4f, sancus %.4f", halo, sancus)
	if sancus < halo-0.015 {
		t.Errorf("sancus reaches %.4f, halo %.4f", sancus, halo)
	}
}
