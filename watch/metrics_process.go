package watch

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"

	"starling/tensor"
)

// process writes what the serving process uses, under the names of Prometheus' own
// collectors, so that usual dashboards and alerts find it.
func (p *metricsPage) process() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	one := func(name, help string, v float64) {
		fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s gauge\n%s %s\n", name, help, name, name,
			strconv.FormatFloat(v, 'g', -1, 64))
	}
	one("process_resident_memory_bytes", "Memory of the process, mapped files included.", float64(tensor.RSS()))
	one("go_memstats_alloc_bytes", "Memory of objects on the heap.", float64(heap[0].Value.Uint64()))
	one("go_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	if n := openFiles(); n >= 0 {
		one("process_open_fds", "Open file descriptors.", float64(n))
	}
}

// openFiles counts descriptors, without the one that it needs to count; -1: there is no /proc.
func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(names) - 1
}
