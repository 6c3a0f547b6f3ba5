package watch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"starling/cluster"
	"starling/graph"
)

var sampleLine = regexp.MustCompile(`^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\})? (\S+)$`)

// parseMetrics reads the text format as strictly as it is written: HELP and TYPE
// before the samples of a family, no sample twice.
func parseMetrics(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out, kinds := map[string]float64{}, map[string]string{}
	family := ""
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			family = words[2]
			if kinds[family] != "" || len(words) < 4 {
				t.Errorf("%q: the family was there before, or has no help", line)
			}
			kinds[family] = "?"
		case strings.HasPrefix(line, "# TYPE "):
			if words[2] != family || !strings.Contains("counter gauge histogram", words[3]) {
				t.Errorf("%q after %s", line, family)
			}
			kinds[family] = words[3]
		default:
			m := sampleLine.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("no sample: %q", line)
			}
			base := m[1]
			if kinds[family] == "histogram" {
				base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, "_bucket"), "_sum"), "_count")
			}
			v, err := strconv.ParseFloat(m[3], 64)
			key := m[1] + "{" + m[2] + "}"
			if _, twice := out[key]; twice || err != nil || base != family {
				t.Errorf("%q: %v, in %s", line, err, family)
			}
			if kinds[family] == "counter" != strings.HasSuffix(family, "_total") {
				t.Errorf("%s is a %s", family, kinds[family])
			}
			out[key] = v
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	steps := make([]int64, len(cluster.StepBounds)+1)
	steps[2], steps[3], steps[len(steps)-1] = 4, 2, 1
	s := &Snapshot{Dataset: "odd \"name\"\\\n", Model: "sage", Strategy: "halo", Epoch: 7, Epochs: 9, Starts: 3,
		Saved: 5, SavedAgo: 2.5, Ranks: []RankSnapshot{
			{Status: cluster.Status{Rank: 0, Host: "h", PID: 3, Epoch: 7, Loss: 0.25, Steps: steps, StepSum: 200,
				Waited: 1.5, RSS: 1 << 20, SavedAgo: 1, Saved: 6, Age: 0.5,
				Sent:  []cluster.Moved{{Kind: "gradient", Link: "same_host", Bytes: 123}},
				Waits: []cluster.Waiting{{Rank: 1, Seconds: 2}, {Rank: 1, Seconds: 1}}}},
			{Status: cluster.Status{Rank: 1, Age: -1}},
			{Status: cluster.Status{Rank: 2, SavedAgo: -1}},
		}}
	var p metricsPage
	s.metrics(&p)
	got := parseMetrics(t, p.String())
	for key, want := range map[string]float64{
		`starling_job_info{dataset="odd \"name\"\\\n",model="sage",strategy="halo"}`: 1,
		`starling_job_workers{}`:                                               3,
		`starling_job_recoveries_total{}`:                                      2,
		`starling_job_checkpoint_age_seconds{}`:                                2.5,
		`starling_epochs_done{rank="0"}`:                                       7,
		`starling_loss{rank="0"}`:                                              0.25,
		`starling_checkpoint_age_seconds{rank="0"}`:                            1.5,
		`starling_waiting_seconds{rank="0",peer="1"}`:                          2.5,
		`starling_sent_bytes_total{rank="0",kind="gradient",link="same_host"}`: 123,
		`starling_step_seconds_bucket{rank="0",le="0.003"}`:                    0,
		`starling_step_seconds_bucket{rank="0",le="0.01"}`:                     4,
		`starling_step_seconds_bucket{rank="0",le="+Inf"}`:                     7,
		`starling_step_seconds_count{rank="0"}`:                                7,
		`starling_step_seconds_sum{rank="0"}`:                                  200,
		`starling_resident_memory_bytes{rank="2"}`:                             0,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", key, v, ok, want)
		}
	}
	for key := range got {
		saved := strings.HasPrefix(key, `starling_checkpoint`)
		if strings.Contains(key, `rank="1"`) || saved && strings.Contains(key, `rank="2"`) {
			t.Errorf("%s is not known", key)
		}
	}
}

func TestServeMetrics(t *testing.T) {
	if _, err := serveMetrics("0.0.0.0:0", nil, false, nil); err == nil ||
		!strings.Contains(err.Error(), "--insecure") {
		t.Error(err)
	}
	s, err := serveMetrics("127.0.0.1:0", nil, false, func(p *metricsPage) { p.sample("x", 1) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := serveMetrics(s.Addr, nil, false, nil); err == nil || !errors.Is(err, graph.ErrInput) {
		t.Errorf("a port that is taken: %v", err)
	}
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + s.Addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	if code, text := get("/metrics"); code != 200 || !strings.HasPrefix(text, "starling_x 1\n") {
		t.Error(code, text)
	} else {
		_, text, _ = strings.Cut(text, "\n")
		for key, v := range parseMetrics(t, text) {
			if known := strings.HasPrefix(key, "process_") || strings.HasPrefix(key, "go_"); !known || v < 1 {
				t.Errorf("%s is %v", key, v)
			}
		}
	}
	if code, text := get("/"); code != 404 || !strings.Contains(text, "/metrics") {
		t.Error(code, text)
	}
	// However many connect and send nothing, at most mostClients are kept, those that came last.
	var open []net.Conn
	began := time.Now()
	for range 3 * mostClients {
		c, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	away := make(chan int, len(open))
	for i, c := range open {
		go func() {
			if _, err := c.Read(make([]byte, 1)); err == io.EOF || strings.Contains(fmt.Sprint(err), "reset") {
				away <- i
			}
		}()
	}
	for range 2 * mostClients {
		// On a slow machine the last may have been closed at their deadline.
		if i := <-away; i >= 2*mostClients && time.Since(began) < s.server.ReadTimeout {
			t.Errorf("connection %d was closed", i)
		}
	}
	// They keep no other client out.
	if code, _ := get("/metrics"); code != 200 {
		t.Errorf("beside %d silent connections: %d", mostClients, code)
	}
	for _, c := range open {
		c.Close()
	}
}

func TestWorkerAddr(t *testing.T) {
	for _, c := range []struct {
		addr, known string
		rank        int
		want        string
	}{
		{"127.0.0.1:9400", "10.0.0.2:77", 2, "127.0.0.1:9403"},
		{"localhost:0", "10.0.0.2:77", 2, "localhost:0"},
		{"0.0.0.0:9400", "10.0.0.2:77", 0, "0.0.0.0:9401"},
		{":9400", "10.0.0.2:77", 0, ":9401"},
		{"10.0.0.1:9400", "10.0.0.2:77", 1, "10.0.0.2:9402"},
		{"alpha:9400", "10.0.0.2:77", 1, "10.0.0.2:9402"},
		{"[::1]:9400", "10.0.0.2:77", 1, "[::1]:9402"},
		{"9400", "", 1, ""}, {"h:x", "", 1, ""}, {"h:70000", "", 1, ""},
	} {
		if got, err := WorkerAddr(c.addr, c.rank, c.known); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.addr, got, err, c.want)
		}
	}
}
