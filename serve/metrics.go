package serve

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// buckets are the upper ends of the latency histogram, in seconds.
var buckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// metrics count requests and how long they took, for Prometheus.
type metrics struct {
	paths []string
	mu    struct {
		sync.Mutex
		statuses map[string]map[int]int64
		took     map[string]*histogram
	}
}

type histogram struct {
	counts []int64 // by bucket; the last is of slower ones
	sum    float64
}

func newMetrics(paths []string) *metrics {
	m := &metrics{paths: slices.Sorted(slices.Values(paths))}
	m.mu.statuses, m.mu.took = map[string]map[int]int64{}, map[string]*histogram{}
	for _, path := range paths {
		m.mu.statuses[path], m.mu.took[path] = map[int]int64{}, &histogram{counts: make([]int64, len(buckets)+1)}
	}
	return m
}

// note counts one request.
func (m *metrics) note(path string, status int, took time.Duration) {
	seconds := took.Seconds()
	i, _ := slices.BinarySearch(buckets, seconds)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.statuses[path][status]++
	h := m.mu.took[path]
	h.counts[i]++
	h.sum += seconds
}

// page is the text for Prometheus.
func (m *metrics) page(active int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	b.WriteString("# HELP starling_serve_requests_total Requests answered, by status.\n# TYPE starling_serve_requests_total counter\n")
	for _, path := range m.paths {
		var statuses []int
		for s := range m.mu.statuses[path] {
			statuses = append(statuses, s)
		}
		slices.Sort(statuses)
		for _, s := range statuses {
			fmt.Fprintf(&b, "starling_serve_requests_total{path=%q,status=\"%d\"} %d\n", path, s,
				m.mu.statuses[path][s])
		}
	}
	fmt.Fprintf(&b, "# HELP starling_serve_requests_active Requests being answered.\n# TYPE starling_serve_requests_active gauge\nstarling_serve_requests_active %d\n", active)
	b.WriteString("# HELP starling_serve_request_seconds Time to answer a request.\n# TYPE starling_serve_request_seconds histogram\n")
	for _, path := range m.paths {
		h, total := m.mu.took[path], int64(0)
		for i, end := range buckets {
			total += h.counts[i]
			fmt.Fprintf(&b, "starling_serve_request_seconds_bucket{path=%q,le=\"%g\"} %d\n", path, end, total)
		}
		total += h.counts[len(buckets)]
		fmt.Fprintf(&b, "starling_serve_request_seconds_bucket{path=%q,le=\"+Inf\"} %d\n", path, total)
		fmt.Fprintf(&b, "starling_serve_request_seconds_sum{path=%q} %g\nstarling_serve_request_seconds_count{path=%q} %d\n", path, h.sum, path, total)
	}
	return b.String()
}
