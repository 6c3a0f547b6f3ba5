package watch

import (
	"math"
	"testing"
	"time"

	"starling/event"
)

// TestActivity: what spans say is in the slices, once, whenever they end; a wait that lasts is shown before it ends.
func TestActivity(t *testing.T) {
	start := time.Now()
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	a := activity{step: sliceTime}
	wait := func(from, to float64, peer int) {
		a.add(at(from), at(to), func(s *event.Slice, seconds float64) { s.Wait, s.For = s.Wait+seconds, peer })
	}
	a.add(at(0), at(0), nil)
	wait(0.05, 0.25, 2)
	a.add(at(0.3), at(0.4), func(s *event.Slice, seconds float64) { s.Transfer += seconds })
	sum := func(list []event.Slice) (seconds, waited float64) {
		for _, s := range list {
			seconds, waited = seconds+s.Seconds, waited+s.Wait
		}
		return seconds, waited
	}
	near := func(x, want float64) bool { return math.Abs(x-want) < 1e-3 }
	first := a.take(at(0.45), -1, at(0))
	if s, w := sum(first); !near(s, 0.4) || !near(w, 0.2) || first[1].For != 2 || !near(first[0].Ago, 0.45) {
		t.Errorf("%+v", first)
	}
	// It waits for rank 1 since 0.5 s, and that is no span yet.
	lasting := a.take(at(3), 1, at(0.5))
	if s, w := sum(lasting); !near(s, 2.6) || !near(w, 2.5) || lasting[10].For != 1 {
		t.Errorf("%v s, %v waited", s, w)
	}
	wait(0.5, 3.2, 1) // ends
	rest := a.rest(at(3.25))
	if s, w := sum(rest); !near(s, 0.2) || !near(w, 0.2) {
		t.Errorf("%v s, %v waited: %+v", s, w, rest)
	}
	wait(4, 4000, 0) // a worker that nothing asked for an hour keeps little
	if len(a.list) > mostSlices {
		t.Errorf("%d slices", len(a.list))
	}
}

// TestActivityInVirtualTime: slices become longer with the run, and none is forgotten, whether a step takes
// microseconds or hours.
func TestActivityInVirtualTime(t *testing.T) {
	start := time.Now()
	for _, scale := range []float64{1e-6, 1e3} {
		at := func(s float64) time.Time { return start.Add(time.Duration(scale * s * float64(time.Second))) }
		a := activity{step: virtualSlice, doubles: true}
		var known, waited float64
		reports := 0
		take := func(list []event.Slice) {
			for _, s := range list {
				known, waited = known+s.Seconds, waited+s.Wait
			}
			reports += len(list)
		}
		for i := range 2000 { // computes for 3, then waits for 1
			from := float64(4 * i)
			a.add(at(from), at(from+3), func(*event.Slice, float64) {})
			a.add(at(from+3), at(from+4), func(s *event.Slice, seconds float64) { s.Wait, s.For = s.Wait+seconds, 1 })
			if i%7 == 0 {
				take(a.take(at(from+4), -1, at(0)))
			}
		}
		take(a.rest(at(8000)))
		if math.Abs(known/(8000*scale)-1) > 0.01 || math.Abs(waited/(2000*scale)-1) > 0.01 {
			t.Errorf("%v s known, %v waited", known, waited)
		}
		if reports < mostSlices/2 || reports > 10*mostSlices {
			t.Errorf("%d slices", reports)
		}
	}
}
