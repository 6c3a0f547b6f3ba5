package watch

import (
	"slices"
	"time"

	"starling/event"
)

const (
	// sliceTime is how finely an activity divides time.
	sliceTime = 100 * time.Millisecond
	// mostSlices are kept if none are taken; earlier ones are forgotten.
	mostSlices = 600
	// unsure is how long what a worker does may be waiting that has not ended, and so is not known.
	unsure = time.Second
)

// activity divides a worker's time into slices, from the spans that it reports when they end.
type activity struct {
	from time.Time // the first slice begins
	list []event.Slice
	last time.Time // the latest span ended
}

// add counts the part of a span that no slice that was taken has.
func (a *activity) add(from, to time.Time, count func(s *event.Slice, seconds float64)) {
	if a.from.IsZero() {
		a.from = from
	}
	if from.Before(a.from) {
		from = a.from
	}
	if to.After(a.last) {
		a.last = to
	}
	if first := to.Add(-mostSlices * sliceTime); from.Before(first) {
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
	i := int(t.Sub(a.from) / sliceTime)
	for len(a.list) <= i {
		a.list = append(a.list, event.Slice{For: -1})
	}
	if over := len(a.list) - mostSlices; over > 0 {
		a.list = slices.Delete(a.list, 0, over)
		a.from = a.from.Add(time.Duration(over) * sliceTime)
		i = max(i-over, 0)
	}
	return &a.list[i], a.from.Add(time.Duration(i+1) * sliceTime)
}

// take returns the slices that have ended and in which it is known what the worker did. peer is whom it waits for
// since a time, if that has lasted; -1: for none.
func (a *activity) take(now time.Time, peer int, since time.Time) []event.Slice {
	if a.from.IsZero() {
		return nil
	}
	until := now.Add(-unsure)
	switch {
	case peer >= 0:
		if since.Before(a.last) { // others than the one that trains began it
			since = a.last
		}
		a.add(since, now, func(s *event.Slice, seconds float64) { s.Wait, s.For = s.Wait+seconds, peer })
		until = now
	case a.last.After(until):
		until = a.last
	}
	n := int(until.Sub(a.from) / sliceTime)
	if n <= 0 {
		return nil
	}
	a.at(a.from.Add(time.Duration(n-1) * sliceTime))
	n = min(n, len(a.list))
	out := slices.Clone(a.list[:n])
	for i := range out {
		bound(&out[i])
		out[i].Ago = now.Sub(a.from.Add(time.Duration(i) * sliceTime)).Seconds()
	}
	a.from, a.list = a.from.Add(time.Duration(n)*sliceTime), slices.Delete(a.list, 0, n)
	return out
}

// rest returns all slices, as at the end of a run.
func (a *activity) rest(now time.Time) []event.Slice {
	if len(a.list) == 0 {
		return a.take(now, -1, now)
	}
	a.last = a.from.Add(time.Duration(len(a.list)) * sliceTime)
	return a.take(now, -1, now)
}

// bound keeps what overlaps from adding up to more than a slice, and rounds to what is of use.
func bound(s *event.Slice) {
	s.Seconds = sliceTime.Seconds()
	left := s.Seconds
	for _, part := range []*float64{&s.Wait, &s.Draw, &s.Save, &s.Evaluate} {
		*part = float64(int(1e4*min(*part, left)+0.5)) / 1e4
		left = max(left-*part, 0)
	}
	s.Transfer = float64(int(1e4*min(s.Transfer, s.Seconds)+0.5)) / 1e4
}
