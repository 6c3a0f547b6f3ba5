package run

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
// their messages would wait for the goroutine that computes.
func atATime(all, here, workers, threads int) int {
	if threads == 1 && here == all && here == workers {
		return 1
	}
	return all
}
