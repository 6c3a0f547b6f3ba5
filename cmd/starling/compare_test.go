package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCompareCommand(t *testing.T) {
	t.Parallel()
	dir := small(t)
	help := works(t, dir, "compare", "--help").stdout
	for _, want := range []string{"--strategies", "--rounds", "--from", "--html", "--workers", "halo"} {
		if !strings.Contains(help, want) {
			t.Errorf("help has no %s:\n%s", want, help)
		}
	}
	for _, not := range []string{"--resume", "--no-launch"} {
		if strings.Contains(help, not+" ") {
			t.Errorf("help has %s, which compare cannot do", not)
		}
	}
	refuses(t, dir, []string{"--strategies", "hallo", "did you mean halo"}, "compare", "graph", "--workers", "2",
		"--strategies", "hallo")
	refuses(t, dir, []string{"--workers"}, "compare", "graph", "--strategies", "halo")
	refuses(t, dir, []string{"--model: found gat", "--models"}, "compare", "graph", "--model", "gat")
	refuses(t, dir, []string{"--from"}, "compare", "graph", "--from", "x.json")
	args := append([]string{"compare", "graph", "--workers", "2", "--strategies", "halo", "--json", "-", "--html",
		"c.html"}, quick...)
	o := works(t, dir, args...)
	var c struct {
		Rows []struct {
			Strategy string
			Plan     string
			RSS      int64 `json:"worker_peak_rss_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &c); err != nil || len(c.Rows) != 1 || c.Rows[0].Plan != "equal" ||
		c.Rows[0].RSS < 1<<20 {
		t.Errorf("%v %+v", err, c)
	}
	if !strings.Contains(o.stderr, "speed-up") || !strings.Contains(readFile(t, dir, "c.html"), "</html>") {
		t.Error(o.stderr)
	}
	works(t, dir, trainArgs("--workers", "2", "--quiet", "--json", "r.json")...)
	if out := works(t, dir, "compare", "--from", "r.json").stdout; !strings.Contains(out, "halo") ||
		!strings.Contains(out, "1.00x") {
		t.Error(out)
	}
	nothingLeft(t, dir)
}

// Strategies of mini-batches are rated over distdgl, wherever it stands in the list, with
// figures of their own.
func TestCompareMini(t *testing.T) {
	t.Parallel()
	dir := small(t)
	args := strings.Fields("compare graph --mode mini --sampler neighbour --model sage --norm none --batch-size 40 " +
		"--fanout 4,4 --workers 2 --servers 2 --strategies salient,distdgl,bytegnn,hopgnn --json - --html c.html")
	o := works(t, dir, append(args, quick...)...)
	var c struct {
		Baseline string
		Rows     []struct {
			Strategy, Plan string
			Speedup        float64
			Samples        float64 `json:"samples_per_second"`
			Miss           float64 `json:"miss_rate"`
			Hits           float64 `json:"cache_hits"`
			CPU            float64 `json:"cpu_share"`
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &c); err != nil || c.Baseline != "distdgl" || len(c.Rows) != 4 {
		t.Fatalf("%v: %s", err, o.stdout)
	}
	for _, r := range c.Rows {
		if !(r.Samples > 0 && r.Miss > 0 && r.Miss < 1 && r.CPU > 0 && r.CPU < 1.1) || r.Plan == "differs" ||
			(r.Hits > 0) != (r.Strategy == "salient") || r.Strategy == "distdgl" && r.Speedup != 1 {
			t.Errorf("%+v", r)
		}
	}
	for _, column := range []string{"samples/s", "remote", "cached", "cpu"} {
		if !strings.Contains(o.stderr, column) {
			t.Errorf("no column %s: %s", column, o.stderr)
		}
	}
}
