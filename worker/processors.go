package worker

import (
	"os"
	"runtime"

	"starling/cluster"
)

// processors are those that this process may use when it starts.
var processors = runtime.GOMAXPROCS(0)

// limitProcessors sets how many goroutines of this worker run at a time, unless the environment
// does.
func limitProcessors(m *cluster.Member, threads int) {
	n := atATime(processors, m.Here(), len(m.Peers), threads)
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) != n {
		runtime.GOMAXPROCS(n)
	}
}

// atATime is one for a worker that computes on one thread and has one processor to itself,
// otherwise all. Go would run the goroutines of the wire on another worker's processor, beside
// the one that waits for them, and the kernel would switch five times as often where two
// workers exchange 16 MiB over TCP.
//
// Where workers outnumber processors, one is a little faster on a machine without other
// programs, but two or three times slower beside some. Where some workers are on other hosts,
// their messages would wait for the goroutine that computes: there it is two at least, also on
// one processor, which the kernel then gives to a message as soon as it comes. (Mini-batches on
// two hosts of a processor each, 1 Gbit/s between them: 2.7 batches per second, then 3.7.)
func atATime(all, here, workers, threads int) int {
	switch {
	case here < workers:
		return max(all, 2)
	case threads == 1 && here == all:
		return 1
	}
	return all
}
