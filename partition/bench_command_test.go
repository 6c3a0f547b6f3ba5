//go:build unix

package partition_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// benchCommand is the command itself, as make build builds it: what people run.
type benchCommand string

func buildCommand(b *testing.B) benchCommand {
	binary := filepath.Join(b.TempDir(), "starling")
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary,
		"starling/cmd/starling")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return benchCommand(binary)
}

func (c benchCommand) run(b *testing.B, args ...string) []byte {
	cmd := exec.Command(string(c), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("starling %v: %v", args, err)
	}
	return out
}

// folder is the graph as the command reads it.
func (c benchCommand) folder(b *testing.B, g benchGraph) string {
	if g.dir != "" {
		return g.dir
	}
	dir := filepath.Join(b.TempDir(), "graph")
	c.run(b, "import", "metis", g.metis, "--out", dir, "--quiet")
	return dir
}

// partition is one run of starling partition, from its start to its end. Its memory is
// what it says itself, when all but the printing is done.
func (c benchCommand) partition(b *testing.B, dir, k string, seed int) (r benchResult) {
	start := time.Now()
	out := c.run(b, "partition", dir, "--parts", k, "--seed", strconv.Itoa(seed), "--balance", "vertices:0.03",
		"--json", "-", "--quiet")
	took := time.Since(start).Seconds()
	var report struct {
		Cut     int64              `json:"edge_cut"`
		Volume  int64              `json:"comm_volume"`
		Balance map[string]float64 `json:"balance"`
		Seconds float64            `json:"seconds"`
		RSS     int64              `json:"peak_rss_bytes"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		b.Fatal(err)
	}
	return benchResult{Cut: report.Cut, Volume: report.Volume, Imbalance: report.Balance["vertices"],
		Seconds: report.Seconds, Process: took, RSS: report.RSS}
}

// reportCommand adds the command's whole process to what report says, over than's.
func (r benchResult) reportCommand(b *testing.B, than benchResult) {
	b.Logf("starling partition: whole process %7.3f s  %.1f MiB", r.Process, float64(r.RSS)/(1<<20))
	b.ReportMetric(r.Process/than.Process, "command-time-ratio")
	b.ReportMetric(float64(r.RSS)/float64(than.RSS), "command-memory-ratio")
}
