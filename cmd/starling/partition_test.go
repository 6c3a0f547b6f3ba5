package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPartition(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	works(t, dir, "generate", "sbm", "--nodes", "2000", "--edges", "20000", "--features", "8", "--classes", "4",
		"--out", "g", "--quiet")
	o := works(t, dir, "partition", "g", "--servers", "2", "--workers", "2", "--method", "fennel", "--out", "p",
		"--verify", "--html", "p.html", "--json", "-", "--quiet")
	var r map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		t.Fatal(err, o.stdout)
	}
	for _, field := range []string{"parts", "edge_cut", "comm_volume", "balance", "remote_max_over_min", "seconds",
		"peak_rss_bytes"} {
		if _, ok := r[field]; !ok {
			t.Errorf("the report has no %s", field)
		}
	}
	if r["parts"] != 4.0 || r["servers"] != 2.0 || r["verified"] != true || r["peak_rss_bytes"].(float64) <= 0 {
		t.Error(o.stdout)
	}
	if o := works(t, dir, "info", "p"); !strings.Contains(o.stdout, "part 3 ") {
		t.Error(o.stdout)
	}
	page, err := os.ReadFile(filepath.Join(dir, "p.html"))
	if err != nil || strings.Contains(string(page), "http") || !strings.Contains(string(page), "fennel") {
		t.Error("the page is missing, or needs a network:", err)
	}
	if o := works(t, dir, "partition", "p", "--verify"); !strings.Contains(o.stdout, "sound") {
		t.Error(o.stdout)
	}
	// The same seed writes the same bytes, on one core too.
	works(t, dir, "partition", "g", "--servers", "2", "--workers", "2", "--method", "fennel", "--threads", "1", "--out",
		"again", "--quiet")
	for _, name := range []string{"book.json", "part3/meta.json"} {
		a, _ := os.ReadFile(filepath.Join(dir, "p", name))
		b, _ := os.ReadFile(filepath.Join(dir, "again", name))
		if len(a) == 0 || string(a) != string(b) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	os.Truncate(filepath.Join(dir, "p", "part1", "halo.npy"), 130)
	for want, args := range map[string][]string{
		"halo.npy":       {"partition", "p", "--verify"},
		"part1/halo.npy": {"info", "p", "--verify"},
		"--out: ":        {"partition", "g", "--parts", "2", "--out", "p.html/x"},
		"--part-dir: ":   {"partition", "g", "--parts", "2", "--out", "x", "--part-dir", "p.html/{}"},
		"--parts":        {"partition", "g", "--parts", "3000", "--method", "hash"},
		"--method":       {"partition", "g", "--parts", "2", "--method", "fenel"},
		"--balance":      {"partition", "g", "--parts", "2", "--balance", "beauty"},
		"found 0, want ": {"partition", "g", "--parts", "2", "--tries", "0"},
		"chunk, want 1":  {"partition", "g", "--parts", "2", "--method", "chunk", "--tries", "2"},
		"\"vertices\"":   {"partition", "g", "--parts", "7", "--method", "hash", "--balance", "vertices:0"},
		"overwrite":      {"partition", "g", "--parts", "2", "--method", "hash", "--out", "p"},
		"no partition":   {"partition", "g", "--parts", "2", "--method", "hash", "--out", "g"},
		"a partition":    {"partition", "p", "--parts", "2"},
		"g/book.json":    {"partition", "g", "--verify"},
		"dataset folder": {"partition", "nowhere", "--parts", "2"},
	} {
		refuses(t, dir, []string{want}, args...)
	}
}
