package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimulateTrain: a table, a page and an object of two strategies on simulated workers.
func TestSimulateTrain(t *testing.T) {
	t.Parallel()
	dir := small(t)
	out := works(t, dir, "simulate", "train", "graph", "--workers", "4", "--strategies", "halo,bns:0.5", "--epochs", "2",
		"--hidden", "8", "--topology", "star buffer=100KB", "--rate", "1Gbps", "--delay", "5us", "--computing",
		"gemm=40 spmm=2 memory=8 op=2us", "--html", "page.html", "--json", "out.json", "--events", "runs",
		"--quiet")
	for _, want := range []string{"halo ", "bns:0.5", "host to switch", "rate=1Gbps delay=5us", "gemm=40"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("no %q in\n%s", want, out.stdout)
		}
	}
	var got struct {
		Rows []struct {
			Run struct {
				Epochs       int
				EpochSeconds []float64 `json:"epoch_seconds"`
			}
			Network struct{ Links []struct{ Bytes int64 } }
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || len(got.Rows) != 2 || len(got.Rows[0].Network.Links) != 8 || len(got.Rows[1].Run.EpochSeconds) != 2 {
		t.Errorf("%v: %s", err, b)
	}
	if page := readFile(t, dir, "page.html"); !strings.Contains(page, "<svg") {
		t.Error("the page has no chart")
	}
	works(t, dir, "view", "runs/halo.jsonl", "runs/bns-0.5.jsonl", "--html", "runs.html")
	if page := readFile(t, dir, "runs.html"); strings.Count(page, "Virtual time, of simulated workers") != 2 {
		t.Error("the page of the events does not show both runs in virtual time")
	}
	refuses(t, dir, []string{"--topology", "found"}, "simulate", "train", "graph", "--workers", "4", "--topology", "ring")
	refuses(t, dir, []string{"--computing", "want"}, "simulate", "train", "graph", "--workers", "4", "--computing", "fast")
}

// TestSimulateLLM: the command with all its defaults but the number of GPUs and of layers.
func TestSimulateLLM(t *testing.T) {
	t.Parallel()
	out := works(t, t.TempDir(), "simulate", "llm", "--gpus", "64", "--pp", "1", "--layers", "2", "--microbatches", "2")
	for _, want := range []string{"mixtral-8x22b", "fifo", "lina", "hermod", "100Gbps"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("no %q in\n%s", want, out.stdout)
		}
	}
}

// TestSimulateRowsOnce: rows are printed once, in the table; standard error counts what is done.
func TestSimulateRowsOnce(t *testing.T) {
	t.Parallel()
	for row, args := range map[string][]string{
		"drtm-kv": {"paths", "--case", "kvs", "--requests", "100"},
		"hermod":  {"llm", "--gpus", "64", "--pp", "1", "--layers", "1", "--microbatches", "1", "--scheduler", "fifo,hermod"},
	} {
		out := works(t, t.TempDir(), append([]string{"simulate"}, args...)...)
		if !strings.Contains(out.stdout, row) || strings.Contains(out.stderr, row) {
			t.Errorf("%s:\n%s%s", args[0], out.stdout, out.stderr)
		}
	}
}
