package run

import (
	"errors"

	"starling/graph"
)

// The exit statuses of the command.
const (
	OK          = 0
	Failure     = 1
	Mistake     = 2   // the user's: a flag, a file
	Interrupted = 130 // by Ctrl-C; all was saved
)

// ErrInterrupted is what a run that was stopped by a signal ends with, after all was saved.
var ErrInterrupted = errors.New("interrupted")

// Status is the exit status for an error.
func Status(err error) int {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	case errors.Is(err, graph.ErrInput):
		return Mistake
	}
	return Failure
}
