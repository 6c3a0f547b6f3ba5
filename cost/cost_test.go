package cost

import (
	"reflect"
	"testing"

	"starling/nn"
	"starling/wire"
)

// TestNewEpoch: a hand-computed case. The first layer sends what it is given, 10 numbers
// wide; the second transforms 4 to 6 before it sends; the third is an edge operator.
func TestNewEpoch(t *testing.T) {
	counts := Counts{In: 10, Hidden: 4, Number: 2, Feature: 20,
		Layers: []nn.Traffic{{Forward: nn.Width{Rows: 10}}, {Forward: nn.Width{Rows: 6}},
			{Edgewise: true, Forward: nn.Width{Rows: 4}}},
		RowBytes: func(l nn.Traffic) int64 { return int64(2 * l.Forward.Rows) },
		Reduced: wire.Bytes{{Kind: wire.Parameter, Layer: -1, Link: wire.SameHost}: 100,
			{Kind: wire.Parameter, Layer: -1, Link: wire.BetweenServers}: 10}}
	want := &Epoch{Inside: 0.5, Between: 3, Feature: 20, Fixed: 100*0.5 + 10*3, Layers: []Layer{
		{Row: 1, Edge: 4, Traffic: 20, Kept: 24},
		{Row: 2, Edge: 5, Traffic: 12, Kept: 24, TransformFirst: true},
		{Row: 3, Edge: 6, Traffic: 8, Kept: 24, TransformFirst: true},
	}}
	got := NewEpoch(Rates{Row: []float64{1, 2, 3}, Edge: []float64{4, 5, 6}, Inside: 0.5, Between: 3}, counts)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range want.Layers { // without rates bytes are known
		want.Layers[i].Row, want.Layers[i].Edge = 0, 0
	}
	want.Inside, want.Between, want.Fixed = 0, 0, 0
	if got := NewEpoch(Rates{}, counts); !reflect.DeepEqual(got, want) {
		t.Errorf("without rates %+v, want %+v", got, want)
	}
}
