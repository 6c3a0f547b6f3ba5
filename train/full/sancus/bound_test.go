package sancus

import (
	"fmt"
	"math"
	"slices"
	"testing"

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
	for limit, want := range map[float64][]float64{5: {3, 0, 4}, 1: {0.6, 0, 0.8}} {
		m, got := dev.New(tensor.F64, 1, 3), make([]float64, 3)
		dev.Upload(m, []float64{3, 0, 4})
		clip(dev, limit, m)
		dev.Download(got, m)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Errorf("clipped to %g it became %v, want %v", limit, got, want)
			}
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
