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

// TestNumbersAsPeopleWriteThem: no exponent, separators, the unit that fits, words from a million on.
func TestNumbersAsPeopleWriteThem(t *testing.T) {
	for got, want := range map[string]string{
		Digits(2490.4, 3): "2,490", Digits(0.01234, 3): "0.0123", Digits(-1234567, 3): "-1,230,000",
		Digits(8.76, 3): "8.76", Digits(math.NaN(), 3): "-", Digits(0, 3): "0",
		Amount(111_059_956): "111 million", Amount(3.23e9): "3.23 billion", Amount(5530): "5,530",
		Amount(999_999): "1 million", Seconds(8.76e-6): "8.76 us", Seconds(0.0004): "400 us",
		Seconds(2490): "2,490 s", Seconds(0.99999): "1 s", Seconds(0.0549): "54.9 ms", Seconds(3e-9): "3 ns",
		Seconds(0): "0 s",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
