package run

import (
	"context"
	"fmt"

	"starling/cluster"
	"starling/event"
)

// Drill kills a worker of a run that we have started ourselves, when so many epochs
// are done: to show what the run does then.
type Drill struct{ Rank, Epoch int }

type drillKey struct{}

// Into is ctx for a run with the drill.
func (d Drill) Into(ctx context.Context) context.Context {
	return context.WithValue(ctx, drillKey{}, &d)
}

// drillOf is the drill of a run; nil: none.
func drillOf(ctx context.Context) *Drill {
	d, _ := ctx.Value(drillKey{}).(*Drill)
	return d
}

// on kills the worker when it is time to, once.
func (d *Drill) on(e event.Event, procs *cluster.Processes, events event.Listener) {
	done, ok := e.(event.Epoch)
	if d == nil || procs == nil || !ok || done.Epoch+1 != d.Epoch {
		return
	}
	d.Epoch = 0
	events.On(event.Note{Text: fmt.Sprintf("$ kill -9 %d      # the worker of rank %d, after epoch %d", procs.PID(d.Rank), d.Rank, done.Epoch+1)})
	procs.Kill(d.Rank)
}
