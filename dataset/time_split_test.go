package dataset

import (
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

func TestTimeSplit(t *testing.T) {
	times := []int64{5, 1, 9, graph.NoTime, 3, 3, 7, 2, 8, 4, 6}
	labels := &graph.Labels{Classes: 2, Class: []int32{0, 1, 0, 1, 0, 1, 0, 1, 0, -1, 0}}
	s, ok, err := ParseTimeSplit("time:0.4,0.7")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	got, err := s.Split(labels, times) // by time: 1 7 4=5 0 10 6 8 2; vertex 9 has no label, 3 no time
	if err != nil || !slices.Equal(got.Train, []uint32{1, 4, 5, 7}) || !slices.Equal(got.Val, []uint32{0, 6, 10}) ||
		!slices.Equal(got.Test, []uint32{2, 8}) {
		t.Error(got, err)
	}
	s.Train = 0.3 // between the two of time 3, which stay together
	if got, _ = s.Split(labels, times); !slices.Equal(got.Train, []uint32{1, 4, 5, 7}) {
		t.Error(got)
	}
	for _, text := range []string{"time:", "time:0.7", "time:0,0.5", "time:0.9,0.8", "time:0.5,1.2", "time:x,1",
		"time:NaN,1"} {
		if _, ok, err := ParseTimeSplit(text); !ok || err == nil || !strings.Contains(err.Error(), "time:0.7,0.85") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, ok, _ := ParseTimeSplit("part"); ok {
		t.Error("a column is taken for a split by time")
	}
	if _, err := s.Split(labels, slices.Repeat([]int64{graph.NoTime}, 11)); err == nil {
		t.Error("no vertex has a time, and all is well")
	}
}
