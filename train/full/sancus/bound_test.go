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

// TestStalenessIsBounded: no receiver's copy is ever older than the bound.
func TestStalenessIsBounded(t *testing.T) {
	for _, rule := range []string{"epoch", "adaptive"} {
		for k := range 5 {
			s, err := parseStaleness(fmt.Sprintf("%s:%d", rule, k))
			if err != nil {
				t.Fatal(err)
			}
			for first := range 4 {
				for distance := 1; distance < 6; distance++ {
					version := -1
					for e := first; e < 40; e++ {
						if s.due(first, e, distance) {
							version = e
						}
						if version < 0 || e-version > k {
							t.Fatalf("%s:%d from epoch %d, %d ranks apart: version %d in epoch %d", rule, k, first,
								distance, version, e)
						}
					}
				}
			}
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
	for _, s := range []string{"epoch:2", "adaptive:0", "variation:0.5", "variation:1e400",
		"epoch:99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseStaleness(text); err == nil && (s.epochs < 0 || !(s.change >= 0)) {
			t.Fatalf("%q became %+v", text, s)
		}
	})
}
