package g3

import (
	"slices"
	"testing"

	"starling/rng"
)

// TestScheduleKeepsOrder runs random plans: every task once, after all it waits for,
// and never a less urgent one while a more urgent one is ready.
func TestScheduleKeepsOrder(t *testing.T) {
	for trial := range uint64(200) {
		key := rng.New(trial)
		s := &schedule{}
		n := 1 + key.IntN(0, 40)
		var ran, outside []int
		after, level := make([][]int, n), make([]int64, n)
		for i := range n {
			for j := range i {
				if key.Fold(1).IntN(uint64(i*n+j), 5) == 0 {
					after[i] = append(after[i], j)
				}
			}
			if len(after[i]) == 0 && key.Fold(2).IntN(uint64(i), 2) == 0 {
				outside = append(outside, s.arrival())
				continue
			}
			level[i] = int64(key.Fold(3).IntN(uint64(i), 4))
			s.add(level[i], func() { ran = append(ran, i) }, after[i])
		}
		done := func(i int) bool { return s.tasks[i].done }
		for steps := 0; s.left > 0; steps++ {
			best := int64(-1)
			for i := range n {
				if s.tasks[i].run != nil && !slices.ContainsFunc(after[i], func(j int) bool { return !done(j) }) &&
					(best < 0 || level[i] < best) {
					best = level[i]
				}
			}
			before := len(ran)
			if !s.step() {
				if best >= 0 || len(outside) == 0 {
					t.Fatalf("trial %d: nothing is ready after %v", trial, ran)
				}
				s.finish(outside[0])
				s.finish(outside[0]) // a second time changes nothing
				outside = outside[1:]
				continue
			}
			if got := ran[before]; level[got] != best {
				t.Fatalf("trial %d: task %d of urgency %d, while one of %d is ready", trial, got, level[got], best)
			}
		}
		if slices.Sort(ran); len(slices.Compact(ran)) != len(ran) {
			t.Fatalf("trial %d: some task ran twice: %v", trial, ran)
		}
	}
}

// TestScheduleGivesUp: after a failure everything runs without what never came.
func TestScheduleGivesUp(t *testing.T) {
	s, ran := &schedule{}, 0
	a, b := s.arrival(), s.arrival()
	last := s.add(0, func() { ran++ }, []int{a, b})
	s.add(0, func() { ran++ }, []int{last})
	s.finish(a)
	if s.step() {
		t.Fatal("a task ran before what it waits for")
	}
	s.giveUp()
	for s.step() {
	}
	if ran != 2 || s.left != 0 {
		t.Fatalf("%d tasks ran, %d left", ran, s.left)
	}
}
