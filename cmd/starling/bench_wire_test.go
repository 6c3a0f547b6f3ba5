package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A benchmark has a row for each operation, size and transport, and leaves nothing.
func TestBenchWire(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := works(t, dir, "bench", "wire", "--workers", "3", "--sizes", "4096,65536", "--seconds", "0.01",
		"--json", "-").stdout
	var got struct {
		Workers int
		Rows    []struct {
			Transport, Op        string
			Bytes                int
			Seconds, Best, Ratio float64
			SentBytes            int `json:"sent_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Workers != 3 || len(got.Rows) != 2*2*8 {
		t.Fatalf("%d workers, %d rows: %s", got.Workers, len(got.Rows), out)
	}
	for _, r := range got.Rows {
		if r.Seconds <= 0 || r.Best > r.Seconds || r.Ratio <= 0 || r.SentBytes <= 0 {
			t.Errorf("%+v", r)
		}
	}
	nothingLeft(t, dir)
}

func TestBenchWireMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--ops all-reduc", "all-reduce"},
		{"--sizes 10", "--sizes"},
		{"--transports udp", "--transports"},
		{"--workers 1", "--workers"},
		{"--no-launch", "--transports"},
		{"--no-launch --transports tcp --listen 0.0.0.0:0", "--token-file"},
	} {
		got := starling(t, t.TempDir(), append([]string{"bench", "wire"}, strings.Fields(c.args)...)...)
		if got.status != 2 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: status %d: %s", c.args, got.status, got.stderr)
		}
	}
}
