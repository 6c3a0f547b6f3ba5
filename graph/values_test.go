package graph

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// TestValues: numbers to predict go through a folder, and bad ones are refused.
func TestValues(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	g, _ := FromEdges(3, []uint32{0, 1}, []uint32{1, 2}, nil, BuildOptions{})
	l := &Labels{Classes: 2, Values: []float32{1.5, -2, 0, 1e30, nan, nan}}
	if err := Save(dir, &Dataset{Graph: g, Labels: l, Splits: Splits{Train: []uint32{0, 1}}},
		WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Meta.Task != Regression || d.Meta.Classes != 2 || !slices.Equal(d.Labels.Values[:4], l.Values[:4]) ||
		!d.Labels.Has(1) || d.Labels.Has(2) || d.Labels.Len() != 3 {
		t.Errorf("%+v %+v", d.Meta, d.Labels)
	}
	for _, bad := range [][]float32{{1, inf, 0, 0, 0, 0}, {nan, 0, 0, 0, 0, 0}, {0, nan, 0, 0, 0, 0}, {0, 0}, {}} {
		if err := (&Labels{Classes: 2, Values: bad}).Validate(3); !errors.Is(err, ErrInput) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := (&Splits{Train: []uint32{2}}).Validate(3, l); !errors.Is(err, ErrInput) {
		t.Errorf("a vertex without a target trains: %v", err)
	}
}
