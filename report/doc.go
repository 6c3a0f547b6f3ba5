// Package report is what a run says when it has ended: its result, which starling train --json
// writes, a page of it (--html), tables of the bytes that were sent, and comparisons of several
// results as text, as JSON and as one HTML page.
//
// Nothing here runs anything: package run makes results, this package reads, joins and shows
// them.
package report

import "errors"

// ErrInterrupted is the error of a command that was stopped by a signal, after everything was
// saved.
var ErrInterrupted = errors.New("interrupted")
