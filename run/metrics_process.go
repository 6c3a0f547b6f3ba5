package run

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"starling/tensor"
	"strconv"
)

// process writes what the process that answers uses, under the names that Prometheus'
// own collectors have, so that usual dashboards and alarms find it.
func (p *metricsPage) process() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	one := func(name, help string, v float64) {
		fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s gauge\n%s %s\n", name, help, name, name, strconv.FormatFloat(v, 'g', -1, 64))
	}
	one("process_resident_memory_bytes", "Memory of the process, mapped files included.", float64(tensor.RSS()))
	one("go_memstats_alloc_bytes", "Memory of objects on the heap.", float64(heap[0].Value.Uint64()))
	one("go_goroutines", "Goroutines that exist.", float64(runtime.NumGoroutine()))
	if n := openFiles(); n >= 0 {
		one("process_open_fds", "File descriptors that are open.", float64(n))
	}
}

// openFiles counts descriptors, without the one it needs to look; -1: there is no /proc.
func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(names) - 1
}
