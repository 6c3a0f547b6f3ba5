package supervise

import (
	"context"

	"starling/event"
	"starling/worker"
)

// Work runs the workers, in this process or in processes of their own. There are shares beside the error if only the
// last state could not be saved.
func (c *Run) Work(ctx context.Context, events event.Listener) ([]*worker.Share, error) {
	if c.Spec.Goroutines() {
		return c.runGoroutines(ctx, events)
	}
	return c.runProcesses(ctx, events)
}
