package supervise

import (
	"context"
	"fmt"

	"starling/cluster"
	"starling/event"
)

// Fault is fault injection: it kills a worker of a run that starts its own, after an epoch, to
// show how the run recovers.
type Fault struct{ Rank, Epoch int }

type faultKey struct{}

// Into is ctx for a run with the fault.
func (f Fault) Into(ctx context.Context) context.Context {
	return context.WithValue(ctx, faultKey{}, &f)
}

// faultOf is the fault of a run; nil: none.
func faultOf(ctx context.Context) *Fault {
	f, _ := ctx.Value(faultKey{}).(*Fault)
	return f
}

// on kills the worker after its epoch, once.
func (f *Fault) on(e event.Event, procs *cluster.Processes, events event.Listener) {
	trained, ok := e.(event.Epoch)
	if f == nil || procs == nil || !ok || trained.Epoch+1 != f.Epoch {
		return
	}
	f.Epoch = 0
	events.On(event.Note{Text: fmt.Sprintf("$ kill -9 %d      # the worker of rank %d, after epoch %d",
		procs.PID(f.Rank),
		f.Rank, trained.Epoch+1)})
	procs.Kill(f.Rank)
}
