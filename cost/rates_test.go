package cost

import (
	"reflect"
	"testing"

	"starling/internal/testseed"
)

// TestRatesText: rates are read as they were written, to the bit, and other texts are refused.
func TestRatesText(t *testing.T) {
	draw := testseed.Rand(t)
	for range 200 {
		n := 1 + draw.IntN(5)
		v := make([]float64, 2*n+2)
		for i := range v {
			v[i] = draw.ExpFloat64() * 1e-9
		}
		r := FromNumbers(v).Rounded()
		got, err := ParseRates(r.String())
		if err != nil || !reflect.DeepEqual(got.Numbers(), r.Numbers()) {
			t.Fatalf("%s: %v, %v", r, got, err)
		}
		if v, err := (RatesOption{r.String()}).Given(n); err != nil || !reflect.DeepEqual(v, r.Numbers()) {
			t.Fatalf("%s: %v, %v", r, v, err)
		}
		if _, err := (RatesOption{r.String()}).Given(n + 1); err == nil {
			t.Fatalf("%s: taken for %d layers", r, n+1)
		}
	}
	for _, text := range []string{"row", "row:1", "row:1,edge:1,inside:1", "row:1,edge:1:2,inside:1,between:1",
		"row:1,edge:1,inside:x,between:1", "row:-1,edge:1,inside:1,between:1", "row:NaN,edge:1,inside:1,between:1",
		"row:1,edge:1,inside:1,between:1,more:1",
		"row:1,edge:1,inside:1:1,between:1", "row:Inf,edge:1,inside:1,between:1"} {
		if err := (RatesOption{text}).Validate(); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
