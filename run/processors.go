package run

import (
	"os"
	"runtime"

	"starling/cluster"
)

// processors are those that this process may use.
var processors = runtime.GOMAXPROCS(0)

// keepToShare makes Go run as many goroutines of this worker at a time as atATime says,
// unless the environment says how many.
func keepToShare(m *cluster.Member, threads int) {
	n := atATime(processors, m.Here(), len(m.Peers), threads)
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) != n {
		runtime.GOMAXPROCS(n)
	}
}

// atATime is one for a worker that computes on one thread and has one processor to
// itself, otherwise all. Go would run the goroutines that serve the wire beside the one
// that they serve, on another worker's processor, and the kernel switch to and fro: five
// times as often where two workers exchange 16 MiB over TCP.
//
// Where workers outnumber processors, one is a little faster on a machine of their own,
// but two or three times slower beside other programs. Where some are on other hosts,
// the one that computes would keep their messages waiting.
func atATime(all, here, workers, threads int) int {
	if threads == 1 && here == all && here == workers {
		return 1
	}
	return all
}
