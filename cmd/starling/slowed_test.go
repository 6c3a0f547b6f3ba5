package main

import (
	"sync"
	"syscall"
	"testing"
	"time"
)

// slowed has processes run a tenth of the time, until the test or what is returned ends that: a run that only has to be
// under way, while something else is waited for, leaves the cores to other tests.
func slowed(t *testing.T, pids ...int) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	signal := func(s syscall.Signal, while time.Duration) (goesOn bool) {
		for _, pid := range pids {
			syscall.Kill(pid, s)
		}
		select {
		case <-over:
			return false
		case <-time.After(while):
			return true
		}
	}
	go func() {
		defer close(ended)
		for signal(syscall.SIGSTOP, 45*time.Millisecond) && signal(syscall.SIGCONT, 5*time.Millisecond) {
		}
		signal(syscall.SIGCONT, 0)
	}()
	end = sync.OnceFunc(func() {
		close(over)
		<-ended
	})
	t.Cleanup(end)
	return end
}
