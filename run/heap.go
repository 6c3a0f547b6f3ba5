package run

import (
	"os"
	"runtime/debug"
)

// garbage is how much of it there may be beside what is in use, in percent. Go's usual 100
// took as much memory again as batches do, and a collection of arrays without pointers, of
// which there are few in a run, costs next to nothing.
const garbage = 25

// tidyHeap makes this process collect earlier, unless GOGC says when.
func tidyHeap() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(garbage)
	return func() { debug.SetGCPercent(was) }
}

// withGarbage is the most that so much memory of the heap becomes before it is collected.
func withGarbage(live int64) int64 { return live + live*garbage/100 }
