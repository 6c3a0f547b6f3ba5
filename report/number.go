package report

import (
	"encoding/json"
	"math"
)

// Number is a float64 that may be unknown: NaN and infinity are null in JSON. All others read
// back as exactly the same bits.
type Number float64

// MarshalJSON writes the shortest digits that read back as the same number.
func (x Number) MarshalJSON() ([]byte, error) {
	if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON reads null as NaN.
func (x *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*x = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(x))
}

// Numbers converts a list. An empty one is [] in JSON, never null.
func Numbers(f []float64) []Number {
	out := make([]Number, len(f))
	for i, x := range f {
		out[i] = Number(x)
	}
	return out
}

// Floats is the inverse of Numbers.
func Floats(n []Number) []float64 {
	out := make([]float64, len(n))
	for i, x := range n {
		out[i] = float64(x)
	}
	return out
}

// Convert is the same values by name in the other type.
func Convert[A, B float64 | Number](m map[string]A) map[string]B {
	out := make(map[string]B, len(m))
	for k, x := range m {
		out[k] = B(x)
	}
	return out
}
