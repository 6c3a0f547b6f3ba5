package main

import (
	"testing"

	"starling/run"
)

// TestPanicStatus: a fault of the program does not end with the status of a user's mistake.
func TestPanicStatus(t *testing.T) {
	err := protected(func() error { panic("out of range") })
	if run.Status(err) != run.Failure || run.Message(err) != "internal error: out of range" {
		t.Errorf("%v, exit status %d", err, run.Status(err))
	}
}
