package run

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"starling/event"
)

// Who knocks again and again is told of now and then, and in sum.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		r := newRefusals("[rank 1] ", event.Func(func(e event.Event) { told = append(told, e.(event.Note).Text) }))
		knock := func(n int) {
			for range n {
				r.refused("10.0.0.9:7", "wrong token")
			}
		}
		knock(mostRefusals + 300)
		if len(told) != mostRefusals || told[0] != "[rank 1] refused 10.0.0.9:7: wrong token" {
			t.Error(told)
		}
		time.Sleep(refusalsEvery + time.Second)
		synctest.Wait()
		if told[mostRefusals] != "[rank 1] refused 300 others within 10s" {
			t.Error(told[mostRefusals:])
		}
		time.Sleep(time.Hour)
		told = nil
		r.atDoor(nil, errors.New("too many open files"))
		knock(mostRefusals)
		r.close()
		knock(7)
		if len(told) != mostRefusals+1 || told[0] != "[rank 1] refused somebody: too many open files" || !slices.Contains(told, "[rank 1] refused 1 others within 10s") {
			t.Error(told)
		}
	})
}
