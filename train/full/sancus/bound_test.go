package sancus

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"starling/nn"
	"starling/tensor"
	"starling/train/traintest"
)

// TestStalenessIsBounded: no cached block is ever older than the bound, and none is
// broadcast earlier than it must be, but for the first that adaptive takes for older.
func TestStalenessIsBounded(t *testing.T) {
	for _, rule := range []string{"epoch", "adaptive"} {
		for k := range 5 {
			s, err := parseStaleness(fmt.Sprintf("%s:%d", rule, k))
			if err != nil {
				t.Fatal(err)
			}
			for first := range 4 {
				checkVersions(t, s, first)
			}
		}
	}
}

func checkVersions(t *testing.T, s staleness, first int) {
	t.Helper()
	const ranks = 6
	v, last := newVersions(s, ranks, first), make([]int, ranks)
	for e := first; e < 40; e++ {
		for j, active := range v.at(e) {
			age := e - last[j]
			switch {
			case e == first && !active:
				t.Fatalf("%+v: owner %d is not active in the first epoch", s, j)
			case e > first && !active && age > s.epochs:
				t.Fatalf("%+v: owner %d is stale in epoch %d, its block of epoch %d", s, j, e, last[j])
			case e > first+s.epochs+1 && active && age <= s.epochs:
				t.Fatalf("%+v: owner %d is active in epoch %d, its block of epoch %d", s, j, e, last[j])
			}
			if active {
				last[j] = e
			}
		}
	}
}

// TestVersionsAsInFigure14: with a bound of 1 four workers whose first blocks count as of
// epochs 8, 7, 8 and 7 are ACTIVE by turns, each every other epoch and to all.
func TestVersionsAsInFigure14(t *testing.T) {
	v := newVersions(staleness{rule: "adaptive", epochs: 1}, 4, 8)
	for epoch, want := range map[int][]bool{8: {true, true, true, true}, 9: {false, true, false, true},
		10: {true, false, true, false}, 11: {false, true, false, true}} {
		if got := v.at(epoch); !slices.Equal(got, want) { // in any order: plans look ahead and back
			t.Errorf("epoch %d: active are %v, want %v", epoch, got, want)
		}
	}
}

// TestClip: gradients longer than the limit are cut to it, shorter ones left.
func TestClip(t *testing.T) {
	dev := traintest.Ref()
	param := func(v ...float64) *nn.Param {
		p := &nn.Param{Grad: dev.New(tensor.F64, 1, len(v))}
		dev.Upload(p.Grad, v)
		return p
	}
	params := []*nn.Param{param(3, 0), param(4)}
	read := func() []float64 {
		v := make([]float64, 3)
		dev.Download(v[:2], params[0].Grad)
		dev.Download(v[2:], params[1].Grad)
		return v
	}
	c := &clipped{limit: 5, dev: dev}
	if c.Clip(params); !slices.Equal(read(), []float64{3, 0, 4}) {
		t.Errorf("a gradient of length 5 became %v", read())
	}
	c.limit = 1
	c.Clip(params)
	for i, want := range []float64{0.6, 0, 0.8} {
		if math.Abs(read()[i]-want) > 1e-12 {
			t.Errorf("clipped to %v", read())
		}
	}
}

func FuzzStaleness(f *testing.F) {
	for _, s := range []string{"epoch:2", "adaptive:0", "variation:0.5", "relative:0.5", "variation:1e400",
		"epoch:99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseStaleness(text); err == nil && (s.epochs < 0 || !(s.change >= 0)) {
			t.Fatalf("%q became %+v", text, s)
		}
	})
}
