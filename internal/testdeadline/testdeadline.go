// Package testdeadline lets a test fail where the code under test would hang.
package testdeadline

import (
	"runtime"
	"testing"
	"time"
)

// Do calls f on a goroutine of its own and fails the test if it has not returned within the
// limit, with the stacks of all goroutines. A limit is generous: it is not a measurement.
// f must not call t.Fatal, which belongs to the goroutine of the test.
func Do(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s: still not done after %v\n%s", what, limit, stacks[:runtime.Stack(stacks, true)])
	}
}

// patience is how long Receive and Wait go on before they call it a hang.
const patience = 2 * time.Minute

// Receive is the next value of a channel, or its zero value once that is closed. It fails the
// test if neither comes within two minutes.
func Receive[T any](t testing.TB, from <-chan T, what string) (v T) {
	t.Helper()
	Do(t, patience, what, func() { v = <-from })
	return v
}

// Wait calls w.Wait, as of a sync.WaitGroup, and fails the test if it takes over two minutes.
func Wait(t testing.TB, w interface{ Wait() }, what string) {
	t.Helper()
	Do(t, patience, what, w.Wait)
}
