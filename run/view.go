package run

import (
	"context"
	"fmt"
	"io"
	"os"

	"starling/disk"
	"starling/event"
)

// Listener and View are package event's, for the command.
type (
	Listener = event.Listener
	View     = event.View
)

// NewView shows a run: as a progress bar if f is a terminal, else as plain lines on plain.
func NewView(f *os.File, plain io.Writer) View { return event.NewView(f, plain) }

// NewSparseView is the same for many runs, with fewer lines of each.
func NewSparseView(f *os.File, plain io.Writer) View { return event.NewSparseView(f, plain) }

// Silent shows what went wrong only, and with nil nothing.
func Silent(w io.Writer) View { return silent{w} }

type silent struct{ w io.Writer }

func (s silent) On(e event.Event) {
	if n, ok := e.(event.Note); ok && !n.Minor && s.w != nil {
		fmt.Fprintln(s.w, n.Text)
	}
}

func (silent) Close() {}

// Counted is how many there are of something, which is named in the singular.
func Counted(n int, one string) string { return event.Counted(n, one) }

// Suggest names what was perhaps meant by a word, or "".
func Suggest(word string, known []string) string { return suggest(word, known) }

// UserError is a mistake on the command line itself.
func UserError(field, found, want, fix string) error { return mistake(field, found, want, fix) }

// untilInterrupted runs work, which writes a file or folder out through a hidden one
// beside it, or nothing where out is empty. When ctx ends first, what is hidden is removed
// and the work abandoned: the process is about to exit, and out is there whole or as it was.
func untilInterrupted[T any](ctx context.Context, out string, work func() (T, error)) (T, error) {
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
	disk.Discard(out) // but not what has appeared by now
	var none T
	return none, ErrInterrupted
}
