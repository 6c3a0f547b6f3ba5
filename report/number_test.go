package report

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNumbers(t *testing.T) {
	in := []Number{0.1, Number(math.NaN()), 1e-320, Number(math.Inf(1)), 0.30000000000000004}
	b, err := json.Marshal(in)
	if err != nil || string(b) != "[0.1,null,1e-320,null,0.30000000000000004]" {
		t.Fatal(string(b), err)
	}
	var out []Number
	if err := json.Unmarshal(b, &out); err != nil || out[0] != in[0] || out[4] != in[4] ||
		!math.IsNaN(float64(out[1])) {
		t.Fatal(out, err)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2, 3}, 2}, {[]float64{9, 4, 1, 2, 3}, 2.5}} {
		if got := Median(c.v); got != Number(c.want) {
			t.Errorf("%v: %g, want %g", c.v, got, c.want)
		}
	}
}
