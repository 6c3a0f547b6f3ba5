package watch

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"starling/event"
)

// TestRefusals: a peer that is refused again and again is told of now and then, and in sum.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		r := NewRefusals("[rank 1] ", event.Func(func(e event.Event) { told = append(told, e.(event.Note).Text) }))
		heard := func() []string { // told grows under the lock
			r.notes.mu.Lock()
			defer r.notes.mu.Unlock()
			return slices.Clone(told)
		}
		refuse := func(n int) {
			for range n {
				r.Refused("10.0.0.9:7", "wrong token")
			}
		}
		refuse(mostNotes + 300)
		if got := heard(); len(got) != mostNotes || got[0] != "[rank 1] refused 10.0.0.9:7: wrong token" {
			t.Error(got)
		}
		time.Sleep(notesEvery + time.Second)
		synctest.Wait()
		if got := heard(); got[mostNotes] != "[rank 1] refused 300 others within 10s" {
			t.Error(got[mostNotes:])
		}
		time.Sleep(time.Hour)
		before := len(heard())
		r.RefusedPeer(nil, errors.New("too many open files"))
		refuse(mostNotes)
		r.Close()
		refuse(7)
		got := heard()[before:]
		if len(got) != mostNotes+1 || got[0] != "[rank 1] refused an unknown address: too many open files" ||
			!slices.Contains(got, "[rank 1] refused 1 other within 10s") {
			t.Error(got)
		}
	})
}
