package setup

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage the heap may have, relative to what is in use. Go's default
// of 100 took as much memory again as batches do, and collecting arrays without pointers, of
// which a run has few, costs next to nothing.
const garbagePercent = 25

// LimitGarbage makes this process collect earlier, unless GOGC is set.
func LimitGarbage() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(garbagePercent)
	return func() { debug.SetGCPercent(was) }
}

// WithGarbage is the most that live bytes of the heap grow to before they are collected.
func WithGarbage(live int64) int64 { return live + live*garbagePercent/100 }
