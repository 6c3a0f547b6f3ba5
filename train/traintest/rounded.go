package traintest

import "starling/graph"

// Rounded is features in bfloat16.
func Rounded(f *graph.Features) *graph.Features {
	out := &graph.Features{Rows: f.Rows, Cols: f.Cols, BF16: make([]uint16, len(f.F32))}
	for i, x := range f.F32 {
		out.BF16[i] = graph.ToBF16(x)
	}
	return out
}
