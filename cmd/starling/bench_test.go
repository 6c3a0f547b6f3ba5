package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBenchKernels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := works(t, dir, "bench", "kernels", "--rows", "500", "--width", "16", "--rounds", "1", "--only", "softmax",
		"--json", "-")
	var got struct {
		Rows []struct{ Kernel, DType, Against string }
	}
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || len(got.Rows) != 2 ||
		got.Rows[1].DType != "bfloat16" || got.Rows[0].Against != "stream" {
		t.Errorf("%v: %s", err, o.stdout)
	}
	refuses(t, dir, []string{"--only", "softmax"}, "bench", "kernels", "--only", "softmix")
	refuses(t, dir, []string{"--rows"}, "bench", "kernels", "--rows", "0")
	refuses(t, dir, []string{"--rows", "memory"}, "bench", "kernels", "--rows", "1000000000000")
}

func TestBenchPartition(t *testing.T) {
	t.Parallel()
	dir := small(t)
	o := works(t, dir, "bench", "partition", "graph", "--parts", "3", "--methods", "hash,multilevel")
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "hash") || !strings.Contains(lines[1], "1.00x") ||
		!strings.HasPrefix(lines[2], "multilevel") {
		t.Errorf("%s", o.stdout)
	}
	refuses(t, dir, []string{"--method", "ulti"}, "bench", "partition", "graph", "--methods", "hash,ulti")
	refuses(t, dir, []string{"--like"}, "bench", "partition")
}
