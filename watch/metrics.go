package watch

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/cluster"
	"starling/graph"
	"starling/spec"
	"starling/tensor"
)

// Metrics are in Prometheus' text format, version 0.0.4. The process that the user started
// serves the metrics of the run and of all ranks, each worker the metrics of its own rank.

// metricsPage is the text of a response.
type metricsPage struct{ strings.Builder }

// family starts the samples of one metric.
func (p *metricsPage) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP starling_%s %s\n# TYPE starling_%s %s\n", name, help, name, kind)
}

// sample is one number; labels are names and values alternately.
func (p *metricsPage) sample(name string, v float64, labels ...string) {
	p.WriteString("starling_" + name)
	for i := 0; i < len(labels); i += 2 {
		open := ","
		if i == 0 {
			open = "{"
		}
		p.WriteString(open + labels[i] + `="` + escape.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	p.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// gauges are the gauges and counters of a rank.
var gauges = []struct {
	name, kind, help string
	of               func(*cluster.Status) (v float64, known bool)
}{
	{"epochs_done", "gauge", "Epochs trained.", func(s *cluster.Status) (float64, bool) {
		return float64(s.Epoch),
			true
	}},
	{"loss", "gauge", "Loss of the last epoch.", func(s *cluster.Status) (float64, bool) {
		return s.Loss,
			s.Loss != 0
	}},
	{"wait_seconds_total", "counter", "Seconds spent waiting for other workers.",
		func(s *cluster.Status) (float64, bool) { return s.Waited, true }},
	{"resident_memory_bytes", "gauge", "Memory of the process, mapped files included.",
		func(s *cluster.Status) (float64, bool) { return float64(s.RSS), true }},
	{"card_memory_used_bytes", "gauge", "Memory of the worker's GPU in use, by all processes.",
		func(s *cluster.Status) (float64, bool) { return float64(s.CardUsed), s.CardSize > 0 }},
	{"card_memory_bytes", "gauge", "Memory of the worker's GPU.",
		func(s *cluster.Status) (float64, bool) { return float64(s.CardSize), s.CardSize > 0 }},
	{"checkpoint_age_seconds", "gauge", "Seconds since the state was last saved.",
		func(s *cluster.Status) (float64, bool) { return s.SavedAgo + s.Age, s.SavedAgo >= 0 }},
	{"checkpoint_epochs", "gauge", "Epochs in that state.", func(s *cluster.Status) (float64,
		bool) {
		return float64(s.Saved), s.SavedAgo >= 0
	}},
	{"status_age_seconds", "gauge", "Seconds since the worker reported this.",
		func(s *cluster.Status) (float64, bool) { return s.Age, true }},
}

// ranks writes the status of workers.
func (p *metricsPage) ranks(all []cluster.Status) {
	all = slices.DeleteFunc(slices.Clone(all), func(s cluster.Status) bool { return s.Age < 0 })
	label := func(s *cluster.Status) []string { return []string{"rank", fmt.Sprint(s.Rank)} }
	p.family("worker_info", "gauge", "Where a worker runs.")
	for i := range all {
		p.sample("worker_info", 1, append(label(&all[i]), "host", all[i].Host, "pid", fmt.Sprint(all[i].PID))...)
	}
	for _, g := range gauges {
		p.family(g.name, g.kind, g.help)
		for i := range all {
			if v, known := g.of(&all[i]); known {
				p.sample(g.name, v, label(&all[i])...)
			}
		}
	}
	p.family("waiting_seconds", "gauge", "Seconds that the worker has waited for a peer, per peer that it waits for "+
		"now.")
	for i := range all {
		seen := map[int]bool{}
		for _, w := range all[i].Waits {
			if !seen[w.Rank] { // the longest comes first
				p.sample("waiting_seconds", w.Seconds+all[i].Age, append(label(&all[i]), "peer", fmt.Sprint(w.Rank))...)
			}
			seen[w.Rank] = true
		}
	}
	p.moved("sent_bytes_total", "Payload bytes sent.", all, func(s *cluster.Status) []cluster.Moved { return s.Sent })
	p.moved("received_bytes_total", "Payload bytes received.", all,
		func(s *cluster.Status) []cluster.Moved { return s.Received })
	p.steps(all)
}

// moved writes bytes by kind and link.
func (p *metricsPage) moved(name, help string, all []cluster.Status, of func(*cluster.Status) []cluster.Moved) {
	p.family(name, "counter", help)
	for i := range all {
		for _, m := range of(&all[i]) {
			p.sample(name, float64(m.Bytes), "rank", fmt.Sprint(all[i].Rank), "kind", m.Kind, "link", m.Link)
		}
	}
}

// steps writes the histogram of epochs' seconds.
func (p *metricsPage) steps(all []cluster.Status) {
	p.family("step_seconds", "histogram", "Seconds of an epoch's training: forward, backward, update.")
	for i := range all {
		s, rank := &all[i], fmt.Sprint(all[i].Rank)
		if len(s.Steps) != len(cluster.StepBounds)+1 {
			continue
		}
		var sum int64
		for k, n := range s.Steps {
			le := "+Inf"
			if k < len(cluster.StepBounds) {
				le = strconv.FormatFloat(cluster.StepBounds[k], 'g', -1, 64)
			}
			sum += n
			p.sample("step_seconds_bucket", float64(sum), "rank", rank, "le", le)
		}
		p.sample("step_seconds_sum", s.StepSum, "rank", rank)
		p.sample("step_seconds_count", float64(sum), "rank", rank)
	}
}

// metrics writes the run as a whole.
func (s *Snapshot) metrics(p *metricsPage) {
	one := func(name, kind, help string, v float64) {
		p.family(name, kind, help)
		p.sample(name, v)
	}
	p.family("job_info", "gauge", "What is trained.")
	p.sample("job_info", 1, "dataset", s.Dataset, "model", s.Model, "strategy", s.Strategy)
	one("job_workers", "gauge", "Workers of the run.", float64(len(s.Ranks)))
	one("job_epochs_done", "gauge", "Epochs trained.", float64(s.Epoch))
	one("job_epochs", "gauge", "Epochs to train.", float64(s.Epochs))
	one("job_recoveries_total", "counter", "Recoveries from the loss of a worker.", float64(max(s.Starts-1, 0)))
	if s.SavedAgo >= 0 {
		one("job_checkpoint_age_seconds", "gauge", "Seconds since a checkpoint was written to disk.", s.SavedAgo)
		one("job_checkpoint_epochs", "gauge", "Epochs in that checkpoint.", float64(s.Saved))
	}
	var all []cluster.Status
	for _, r := range s.Ranks {
		all = append(all, r.Status)
	}
	p.ranks(all)
}

// mostClients is how many clients may be connected at once.
const mostClients = 64

// MetricsServer serves metrics over HTTP.
type MetricsServer struct {
	Addr   string
	server *http.Server
	done   chan struct{}
}

// ServeRun serves the metrics of a run.
func ServeRun(addr string, id *cluster.Identity, insecure bool, now func() *Snapshot) (*MetricsServer, error) {
	return serveMetrics(addr, id, insecure, func(p *metricsPage) { now().metrics(p) })
}

// ServeWorker serves the metrics of one worker.
func ServeWorker(addr string, id *cluster.Identity, insecure bool, r *Reporter) (*MetricsServer, error) {
	return serveMetrics(addr, id, insecure, func(p *metricsPage) { p.ranks([]cluster.Status{r.Status()}) })
}

// serveMetrics listens on a loopback address, or with a certificate, or insecurely. The
// secret that workers share is not used here: clients would have to send it unencrypted.
func serveMetrics(addr string, id *cluster.Identity, insecure bool, write func(*metricsPage)) (*MetricsServer, error) {
	if cluster.Exposed(addr) && id == nil && !insecure {
		return nil, spec.Mistake("--metrics-listen", addr+", which others can reach",
			"--tls, or an address of 127.0.0.1", "or serve metrics to anyone with --insecure")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, spec.Mistake("--metrics-listen", graph.Sentence(err.Error()),
			"a free port of an address of this host",
			"a worker listens on the port given, plus 1 and its rank; port 0: any")
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.Error(w, "metrics are at /metrics", http.StatusNotFound)
			return
		}
		var p metricsPage
		write(&p)
		p.process()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		io.WriteString(w, p.String())
	}
	s := &MetricsServer{Addr: l.Addr().String(), done: make(chan struct{}),
		server: &http.Server{Handler: http.HandlerFunc(answer), ReadTimeout: 5 * time.Second,
			WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 8 << 10}}
	go func() {
		s.server.Serve(id.Listen(LimitConns(l, mostClients))) // until close
		close(s.done)
	}()
	return s, nil
}

// Close stops serving. A nil server serves nothing.
func (s *MetricsServer) Close() {
	if s != nil {
		s.server.Close()
		<-s.done
	}
}

// WorkerAddr is where a worker serves its metrics: the run's address with the port plus 1 and
// its rank, or any port for port 0. An address of one host belongs to that host only, so
// workers on others use the address that their peers reach them by, known.
func WorkerAddr(addr string, rank int, known string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || n < 0 || n > 65535 {
		return "", spec.Mistake("--metrics-listen", fmt.Sprintf("%q", addr), "host:port", "for example 127.0.0.1:9400")
	}
	if n > 0 {
		n += 1 + rank
	}
	ip := net.ParseIP(host)
	anywhere := host == "" || ip != nil && ip.IsUnspecified()
	if h, _, err := net.SplitHostPort(known); err == nil && !cluster.Loopback(addr) && !anywhere {
		host = h
	}
	return net.JoinHostPort(host, fmt.Sprint(n)), nil
}

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
