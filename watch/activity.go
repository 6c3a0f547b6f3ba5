package watch

import (
	"slices"
	"time"

	"starling/event"
)

const (
	// sliceTime is how finely an activity divides time, and virtualSlice how finely virtual time at first.
	sliceTime    = 100 * time.Millisecond
	virtualSlice = 100 * time.Nanosecond
	// mostSlices are kept if none are taken; earlier ones are forgotten.
	mostSlices = 600
	// unsure is how long what a worker does may be waiting that has not ended, and so is not known.
	unsure = time.Second
)

// activity divides a worker's time into slices, from the spans that it reports when they end.
type activity struct {
	step time.Duration // of a slice
	// doubles has slices become longer with the run, so that it has mostSlices of the last length or fewer, and none is
	// forgotten.
	doubles bool
	began   time.Time
	from    time.Time // the first slice begins
	list    []event.Slice
	last    time.Time // the latest span ended
}

// add counts the part of a span that no slice that was taken has.
func (a *activity) add(from, to time.Time, count func(s *event.Slice, seconds float64)) {
	if a.from.IsZero() {
		a.from, a.began = from, from
	}
	for a.doubles && to.Sub(a.began) > mostSlices*a.step {
		a.double()
	}
	if from.Before(a.from) {
		from = a.from
	}
	if to.After(a.last) {
		a.last = to
	}
	if first := to.Add(-mostSlices * a.step); from.Before(first) {
		from = first
	}
	for from.Before(to) {
		s, end := a.at(from)
		if end.After(to) {
			end = to
		}
		count(s, end.Sub(from).Seconds())
		from = end
	}
}

// at is the slice of a time, and when it ends.
func (a *activity) at(t time.Time) (*event.Slice, time.Time) {
	i := int(t.Sub(a.from) / a.step)
	for len(a.list) <= i {
		a.list = append(a.list, event.Slice{For: -1})
	}
	if over := len(a.list) - mostSlices; over > 0 {
		a.list = slices.Delete(a.list, 0, over)
		a.from = a.from.Add(time.Duration(over) * a.step)
		i = max(i-over, 0)
	}
	return &a.list[i], a.from.Add(time.Duration(i+1) * a.step)
}

// take returns the slices that have ended and in which it is known what the worker did. peer is whom it waits for
// since a time, if that has lasted; -1: for none.
func (a *activity) take(now time.Time, peer int, since time.Time) []event.Slice {
	if a.from.IsZero() {
		return nil
	}
	until := now.Add(-unsure)
	switch {
	case a.doubles: // what it did is known
		until = a.last
	case peer >= 0:
		if since.Before(a.last) { // others than the one that trains began it
			since = a.last
		}
		a.add(since, now, func(s *event.Slice, seconds float64) { s.Wait, s.For = s.Wait+seconds, peer })
		until = now
	case a.last.After(until):
		until = a.last
	}
	n := int(until.Sub(a.from) / a.step)
	if n <= 0 {
		return nil
	}
	a.at(a.from.Add(time.Duration(n-1) * a.step))
	n = min(n, len(a.list))
	out := slices.Clone(a.list[:n])
	for i := range out {
		a.bound(&out[i])
		out[i].Ago = now.Sub(a.from.Add(time.Duration(i) * a.step)).Seconds()
	}
	a.from, a.list = a.from.Add(time.Duration(n)*a.step), slices.Delete(a.list, 0, n)
	return out
}

// rest returns all slices, as at the end of a run.
func (a *activity) rest(now time.Time) []event.Slice {
	if len(a.list) == 0 {
		return a.take(now, -1, now)
	}
	a.last = a.from.Add(time.Duration(len(a.list)) * a.step)
	return a.take(now, -1, now)
}

// double makes slices twice as long.
func (a *activity) double() {
	a.step *= 2
	half := a.list[:0]
	for i := 0; i < len(a.list); i += 2 {
		s := a.list[i]
		if i+1 < len(a.list) {
			s = s.With(a.list[i+1])
		}
		half = append(half, s)
	}
	a.list = half
}

// bound keeps what overlaps from adding up to more than a slice, and rounds to what is of use.
func (a *activity) bound(s *event.Slice) {
	s.Seconds = a.step.Seconds()
	digits := 1e4
	if a.doubles {
		digits = 1e9
	}
	rounded := func(x float64) float64 { return float64(int(digits*x+0.5)) / digits }
	left := s.Seconds
	for _, part := range []*float64{&s.Wait, &s.Draw, &s.Save, &s.Evaluate} {
		*part = rounded(min(*part, left))
		left = max(left-*part, 0)
	}
	s.Transfer = rounded(min(s.Transfer, s.Seconds))
}
