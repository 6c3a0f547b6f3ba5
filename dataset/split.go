package dataset

import (
	"fmt"
	"slices"

	"starling/graph"
	"starling/rng"
)

// CheckFractions checks the shares of the three splits.
func CheckFractions(train, val, test float64) error {
	for _, f := range []struct {
		name string
		x    float64
	}{{"train", train}, {"val", val}, {"test", test}, {"train + val + test", train + val + test}} {
		if !(f.x >= 0 && f.x <= 1+1e-9) {
			return badParam(f.name, fmt.Sprint(f.x), "a share from 0 to 1")
		}
	}
	if train == 0 && val+test > 0 {
		return badParam("train", "0", "a share above 0 when val or test is")
	}
	return nil
}

// SplitStream keys the draws of splits under a seed.
const SplitStream = 7

// SplitByFraction gives shares of the labelled vertices to the three splits, at
// random but exactly (rounded to whole vertices). labels may be nil: then every
// vertex takes part.
//
// Each vertex has a hash; the splits are those below the hash of the right rank.
// No list of vertices is shuffled, so it takes no memory beside its result.
func SplitByFraction(n int, labels *graph.Labels, train, val, test float64, k rng.Key) (graph.Splits, error) {
	if err := CheckFractions(train, val, test); err != nil {
		return graph.Splits{}, err
	}
	in := func(v int) bool { return labels == nil || labels.Has(v) }
	total := 0
	for v := range n {
		if in(v) {
			total++
		}
	}
	upto := func(share float64) int { return min(int(share*float64(total)+0.5), total) }
	var cut [3]uint64 // a vertex below cut[0] trains, below cut[1] validates, below cut[2] tests
	for i, share := range []float64{train, train + val, train + val + test} {
		cut[i] = hashOfRank(n, in, k, upto(share))
	}
	var s graph.Splits
	for v := range n {
		if !in(v) {
			continue
		}
		switch h := k.Uint64(uint64(v)) >> 1; {
		case h < cut[0]:
			s.Train = append(s.Train, uint32(v))
		case h < cut[1]:
			s.Val = append(s.Val, uint32(v))
		case h < cut[2]:
			s.Test = append(s.Test, uint32(v))
		}
	}
	for _, f := range []struct {
		name  string
		share float64
		ids   []uint32
	}{{"train", train, s.Train}, {"val", val, s.Val}, {"test", test, s.Test}} {
		if f.share > 0 && len(f.ids) == 0 {
			return graph.Splits{}, &graph.InputError{Field: f.name,
				Found: fmt.Sprintf("no vertex: %g of %d", f.share, total),
				Want:  "at least one", Fix: "give a larger share or more labelled vertices"}
		}
	}
	return s, nil
}

// hashOfRank finds the hash below which exactly rank vertices are, by counting
// hashes in coarse buckets and sorting only the bucket that the rank falls in.
// Hashes are 63 bits wide so that the limit above all of them fits a word.
func hashOfRank(n int, in func(int) bool, k rng.Key, rank int) uint64 {
	const shift = 63 - 16
	count := make([]int, 1<<16)
	for v := range n {
		if in(v) {
			count[k.Uint64(uint64(v))>>1>>shift]++
		}
	}
	bucket, below := 0, 0
	for bucket < len(count) && below+count[bucket] <= rank {
		below += count[bucket]
		bucket++
	}
	if bucket == len(count) {
		return 1 << 63
	}
	var inside []uint64
	for v := range n {
		if h := k.Uint64(uint64(v)) >> 1; in(v) && h>>shift == uint64(bucket) {
			inside = append(inside, h)
		}
	}
	slices.Sort(inside)
	return inside[rank-below]
}

// SplitPerClass makes the split of the Planetoid papers: perClass training
// vertices of every class, then val and test vertices from the rest, at random.
func SplitPerClass(labels *graph.Labels, perClass, val, test int, k rng.Key) (graph.Splits, error) {
	if labels.Kind() != graph.SingleLabel {
		return graph.Splits{}, badParam("per-class", "vertices of several classes, or of numbers",
			"one class per vertex, or shares (train, val, test)")
	}
	order := k.Perm(len(labels.Class))
	taken := make([]int, labels.Classes)
	var s graph.Splits
	var rest []uint32
	for _, v := range order {
		c := labels.Class[v]
		switch {
		case c < 0:
		case taken[c] < perClass:
			taken[c]++
			s.Train = append(s.Train, v)
		default:
			rest = append(rest, v)
		}
	}
	if perClass < 1 || val < 0 || test < 0 || len(rest) < val+test {
		return s, &graph.InputError{Field: "split",
			Found: fmt.Sprintf("%d more with a label after %d per class", len(rest), perClass),
			Want:  fmt.Sprintf("%d to validate and %d to test", val, test), Fix: "ask for fewer, or split by fractions"}
	}
	s.Val, s.Test = rest[:val:val], rest[val:val+test:val+test]
	for _, ids := range [][]uint32{s.Train, s.Val, s.Test} {
		slices.Sort(ids)
	}
	return s, nil
}
