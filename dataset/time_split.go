package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// TimeSplit divides vertices by their times: the earliest share trains, those up to the second validate, the rest
// tests.
// It is written time:0.7,0.85.
type TimeSplit struct{ Train, Val float64 }

// ParseTimeSplit reads time:TRAIN,VAL; ok is false where the text does not begin so.
func ParseTimeSplit(text string) (s TimeSplit, ok bool, err error) {
	rest, ok := strings.CutPrefix(text, "time:")
	if !ok {
		return s, false, nil
	}
	a, b, two := strings.Cut(rest, ",")
	var errs [2]error
	s.Train, errs[0] = strconv.ParseFloat(strings.TrimSpace(a), 64)
	s.Val, errs[1] = strconv.ParseFloat(strings.TrimSpace(b), 64)
	if !two || errs[0] != nil || errs[1] != nil || !(s.Train > 0 && s.Train <= s.Val && s.Val <= 1) {
		return s, true, badParam("split", text, "time:A,B with 0 < A <= B <= 1, as time:0.7,0.85: vertices up "+
			"to A of all train, "+
			"in the order of their times, those up to B validate, and the rest tests")
	}
	return s, true, nil
}

// Split divides the labelled vertices that have a time. Vertices of equal times are in the same split, that of the
// first
// of them, so that no split has what is not later than all before.
func (s TimeSplit) Split(labels *graph.Labels, times []int64) (graph.Splits, error) {
	var list []uint32
	for v := range uint32(len(times)) {
		if times[v] != graph.NoTime && labels.Has(int(v)) {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return cmp.Compare(times[a], times[b]) })
	var out graph.Splits
	part := 0
	for i, v := range list {
		if i == 0 || times[v] != times[list[i-1]] {
			switch at := float64(i) / float64(len(list)); {
			case at < s.Train:
				part = 0
			case at < s.Val:
				part = 1
			default:
				part = 2
			}
		}
		to := [...]*[]uint32{&out.Train, &out.Val, &out.Test}[part]
		*to = append(*to, v)
	}
	for _, set := range []*[]uint32{&out.Train, &out.Val, &out.Test} {
		slices.Sort(*set)
	}
	if len(out.Train) == 0 {
		return out, &graph.InputError{Field: "split", Found: fmt.Sprintf("%d labelled vertices with a time",
			len(list)),
			Want: "some to train on", Fix: "check the columns of labels and of times (--vertex-time)"}
	}
	return out, nil
}
