package event

import (
	"maps"
	"slices"
	"time"
)

const (
	// reportsKept is about how many reports of a worker are kept of a run before they come half as often.
	reportsKept = 300
	// slicesKept is how many slices such a report has at most.
	slicesKept = 16
)

// thinner lets reports of workers through less and less often: a file of a long run would consist of little else. What
// a report that is left out has of slices is in the next one.
type thinner struct {
	began   time.Time
	last    map[int]time.Time
	waiting map[int]Worker
	at      map[int]time.Time // when those came
}

// take returns the events to write for one that comes.
func (t *thinner) take(e Event, now time.Time) []Event {
	if t.began.IsZero() {
		t.began, t.last, t.waiting, t.at = now, map[int]time.Time{}, map[int]Worker{}, map[int]time.Time{}
	}
	w, ok := e.(Worker)
	if !ok {
		if _, ends := e.(Result); ends {
			return append(t.rest(now), e)
		}
		return []Event{e}
	}
	if before, ok := t.waiting[w.Worker]; ok {
		w.Slices = joinSlices(before.Slices, now.Sub(t.at[w.Worker]).Seconds(), w.Slices)
	}
	if every := now.Sub(t.began) / reportsKept; now.Sub(t.last[w.Worker]) < every {
		t.waiting[w.Worker], t.at[w.Worker] = w, now
		return nil
	}
	delete(t.waiting, w.Worker)
	t.last[w.Worker] = now
	return []Event{w}
}

// rest are the reports that were left out last.
func (t *thinner) rest(now time.Time) (list []Event) {
	for _, r := range slices.Sorted(maps.Keys(t.waiting)) {
		w := t.waiting[r]
		w.Slices = joinSlices(w.Slices, now.Sub(t.at[r]).Seconds(), nil)
		list = append(list, w)
	}
	clear(t.waiting)
	return list
}

// joinSlices are the slices of an earlier event, which came some seconds before the later one, and of that; neighbours
// are joined until there are few.
func joinSlices(earlier []Slice, seconds float64, later []Slice) []Slice {
	var all []Slice
	for _, s := range earlier {
		s.Ago += seconds
		all = append(all, s)
	}
	all = append(all, later...)
	for len(all) > slicesKept {
		half := all[:0]
		for i := 0; i < len(all); i += 2 {
			s := all[i]
			if i+1 < len(all) {
				s = s.With(all[i+1])
			}
			half = append(half, s)
		}
		all = half
	}
	return all
}

// With is a slice and the one after it.
func (s Slice) With(o Slice) Slice {
	if o.Wait > s.Wait {
		s.For = o.For
	}
	s.Seconds = s.Ago - o.Ago + o.Seconds
	s.Wait += o.Wait
	s.Draw += o.Draw
	s.Evaluate += o.Evaluate
	s.Save += o.Save
	s.Transfer += o.Transfer
	return s
}
