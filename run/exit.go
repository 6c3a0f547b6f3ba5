package run

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"starling/graph"
	"starling/report"
	"starling/worker"
)

// The exit statuses of a command.
const (
	OK          = worker.OK
	Failure     = worker.Failure
	Mistake     = worker.Mistake     // the user's: a flag, a file
	Interrupted = worker.Interrupted // by Ctrl-C; everything was saved
)

// ErrInterrupted is the error of a command that was stopped by a signal, after everything was
// saved.
var ErrInterrupted = report.ErrInterrupted

// remedies are what to do about an error of the system on a file.
var remedies = []struct {
	err     error
	mistake bool
	fix     string
}{
	{syscall.ENOSPC, false, "the disk is full: delete files on it, or choose another"},
	{syscall.EDQUOT, false, "your share of the disk is full: delete files, or choose another"},
	{fs.ErrPermission, true, "change its permissions, or choose another"},
	{syscall.ELOOP, true, "links form a cycle: check the path"},
	{syscall.ENOTDIR, true, "a part of the path is a file, not a folder: check the path"},
	{syscall.ENAMETOOLONG, true, "choose a shorter name"},
}

// remedy is what to do about the file of an error.
func remedy(err error) (fix string, mistake bool) {
	var of *fs.PathError
	if errors.Is(err, graph.ErrInput) || !errors.As(err, &of) { // it says what to do itself
		return "", false
	}
	for _, r := range remedies {
		if errors.Is(of, r.err) {
			return "; " + r.fix, r.mistake
		}
	}
	return "", false
}

// Message is an error as users see it, on one line.
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
	case errors.Is(err, report.ErrInterrupted):
		return Interrupted
	case mistake || errors.Is(err, graph.ErrInput):
		return Mistake
	}
	return Failure
}

// ExitOnFault makes a mapped file that is shortened while it is in use end the process with status 1 and a
// line that names it: see graph.ExitOnFault.
func ExitOnFault() (stop func()) { return graph.ExitOnFault() }
