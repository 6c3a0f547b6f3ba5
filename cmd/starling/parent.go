package main

import (
	"os"
	"strconv"
	"time"

	"starling/run"
)

const (
	parentVariable = "STARLING_PARENT" // the process that this one must not outlive
	parentEvery    = 200 * time.Millisecond
	parentGrace    = 10 * time.Second // to finish an epoch, after the parent is gone
)

// withParent calls stop when the parent has ended, where it named itself in parentVariable, and ends this process if
// that takes long. A kernel of a notebook that is killed cannot stop what it started. The death signal of Linux would
// come when the thread ends that started this process, and not its process.
func withParent(stop func()) {
	parent, err := strconv.Atoi(os.Getenv(parentVariable))
	os.Unsetenv(parentVariable) // workers have another parent
	if err != nil || parent != os.Getppid() {
		return
	}
	go func() {
		for os.Getppid() == parent {
			time.Sleep(parentEvery)
		}
		stop()
		time.Sleep(parentGrace)
		os.Exit(run.Interrupted)
	}()
}
