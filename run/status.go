package run

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

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

// remedies are what to do about the system's own words for what is wrong with a file.
var remedies = []struct {
	err     error
	mistake bool
	fix     string
}{
	{syscall.ENOSPC, false, "the disk is full: make room on it, or choose another"},
	{syscall.EDQUOT, false, "your share of the disk is full: make room, or choose another"},
	{fs.ErrPermission, true, "change its permissions, or choose another"},
	{syscall.ELOOP, true, "links lead in a circle: check the path"},
	{syscall.ENOTDIR, true, "a part of the path is a file and no folder: check the path"},
	{syscall.ENAMETOOLONG, true, "choose a shorter name"},
}

// remedy finds what to do about a file that err is about.
func remedy(err error) (fix string, mistake bool) {
	var of *fs.PathError
	if errors.Is(err, graph.ErrInput) || !errors.As(err, &of) { // which says what to do itself
		return "", false
	}
	for _, r := range remedies {
		if errors.Is(of, r.err) {
			return "; " + r.fix, r.mistake
		}
	}
	return "", false
}

// Message is what a user is told of an error, on one line.
func Message(err error) string {
	fix, _ := remedy(err)
	return strings.ReplaceAll(err.Error()+fix, "\n", "; ")
}

// Status is the exit status for an error.
func Status(err error) int {
	_, mistake := remedy(err)
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	case mistake || errors.Is(err, graph.ErrInput):
		return Mistake
	}
	return Failure
}
