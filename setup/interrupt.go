package setup

import (
	"context"

	"starling/disk"
	"starling/report"
)

// UntilInterrupted runs work, which writes a file or folder out through a hidden one beside it, or
// nothing if out is empty. When ctx ends first, the hidden one is removed and the work is
// abandoned: the process is about to exit, and out is complete or unchanged.
func UntilInterrupted[T any](ctx context.Context, out string, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := work()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	disk.Discard(out) // but not out itself, if it is complete by now
	var none T
	return none, report.ErrInterrupted
}
