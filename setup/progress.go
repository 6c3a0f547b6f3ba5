package setup

import (
	"context"
	"sync"

	"starling/dataset"
	"starling/event"
)

// InStages makes a dataset in the folder out.
func InStages(ctx context.Context, out string, events event.Listener,
	work func(dataset.Progress) (dataset.Summary, error)) (dataset.Summary, error) {
	report, end := stages(events)
	sum, err := UntilInterrupted(ctx, out, func() (dataset.Summary, error) { return work(report) })
	if err == nil {
		end()
	}
	return sum, err
}

// progress forwards the progress of a partition, from any goroutine.
func progress(events event.Listener) dataset.Progress {
	locked := event.Locked(event.All(events))
	return func(stage string, done, total int64) {
		locked.On(event.Progress{Task: stage, Done: done, Total: total})
	}
}

// stages forwards the progress of work whose stages follow each other: the end of one is known when the next begins,
// and the end of the last when end is called.
func stages(events event.Listener) (report dataset.Progress, end func()) {
	events = event.All(events)
	var mu sync.Mutex
	var last event.Progress
	ended := map[string]bool{"": true}
	finish := func() {
		if total := max(last.Done, last.Total, 1); !ended[last.Task] {
			ended[last.Task] = true
			events.On(event.Progress{Task: last.Task, Done: total, Total: total})
		}
	}
	report = func(stage string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if stage != last.Task {
			finish()
		}
		last = event.Progress{Task: stage, Done: done, Total: total}
		if !ended[stage] {
			ended[stage] = total > 0 && done >= total
			events.On(last)
		}
	}
	return report, func() {
		mu.Lock()
		defer mu.Unlock()
		finish()
	}
}

// MinorNotesOnce leaves out minor notes that were shown already: one strategy after the other
// has the same notes about the same parts. Failures are shown every time.
func MinorNotesOnce(l event.Listener) event.Listener {
	shown := map[string]bool{}
	return event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && n.Minor {
			if shown[n.Text] {
				return
			}
			shown[n.Text] = true
		}
		l.On(e)
	})
}
