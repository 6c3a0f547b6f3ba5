//go:build unix

package partition_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/graph"
	"starling/partition"
	"starling/rng"
)

// The comparison with gpmetis. It takes minutes, so it only runs when asked for:
//
//	go test ./partition -run '^$' -bench Multilevel -benchtime 1x
//
// STARLING_BENCH_DIR keeps the generated graphs between runs; STARLING_BENCH_GRAPHS
// (block,rmat,mesh), STARLING_BENCH_PARTS (4,16,64) and STARLING_BENCH_SEEDS (3)
// choose a part of it. Every run is a process of its own, so that its peak memory
// is its own. Ratios are ours over gpmetis's, best of the seeds: time-ratio compares the
// calls alone (gpmetis's own figure), process-time-ratio whole processes, where gpmetis
// reads text and ours the same text of the mesh, our own files of the others. memory-ratio
// compares whole processes too, growth-ratio the memory beyond what each holds for a ring
// of 64 vertices. command-time-ratio and command-memory-ratio compare starling partition,
// which reads our own files and reports what the parts mean for training, with gpmetis,
// which reads text and writes the parts.
func BenchmarkMultilevel(b *testing.B) {
	metis, err := exec.LookPath("gpmetis")
	if err != nil {
		b.Skip("gpmetis is not installed: apt-get install metis")
	}
	seeds, _ := strconv.Atoi(benchEnv("STARLING_BENCH_SEEDS", "3"))
	command := buildCommand(b)
	floor := benchFloor(b, func(g benchGraph,
		seed int) benchResult {
		return runMethod(b, g, "multilevel", "one", "4", seed)
	})
	metisFloor := benchFloor(b, func(g benchGraph, seed int) benchResult { return runGpmetis(b, metis, g, "4", seed) })
	for _, name := range strings.Split(benchEnv("STARLING_BENCH_GRAPHS", "block,rmat,mesh"), ",") {
		g := prepareBench(b, name)
		dir := command.folder(b, g)
		for _, k := range strings.Split(benchEnv("STARLING_BENCH_PARTS", "4,16,64"), ",") {
			b.Run(fmt.Sprintf("graph=%s/parts=%s", name, k), func(b *testing.B) {
				var ours, theirs, whole benchResult
				for b.Loop() {
					for seed := 1; seed <= seeds; seed++ {
						ours.best(runMethod(b, g, "multilevel", "one", k, seed))
						theirs.best(runGpmetis(b, metis, g, k, seed))
						whole.best(command.partition(b, dir, k, seed))
					}
				}
				ours.report(b, theirs, floor, metisFloor)
				whole.reportCommand(b, theirs)
			})
		}
	}
}

// BenchmarkMultilevelConstraints compares with METIS's library where both balance
// vertices, edges and a tenth of the vertices as training vertices; in its second
// half, where the objective is volume.
func BenchmarkMultilevelConstraints(b *testing.B) {
	seeds, _ := strconv.Atoi(benchEnv("STARLING_BENCH_SEEDS", "3"))
	for _, mode := range []string{"several", "volume"} {
		floor := benchFloor(b, func(g benchGraph,
			seed int) benchResult {
			return runMethod(b, g, "multilevel", mode, "4", seed)
		})
		metisFloor := benchFloor(b, func(g benchGraph,
			seed int) benchResult {
			return runMethod(b, g, "metis", mode, "4", seed)
		})
		for _, name := range strings.Split(benchEnv("STARLING_BENCH_GRAPHS", "block,rmat,mesh"), ",") {
			g := prepareBench(b, name)
			for _, k := range strings.Split(benchEnv("STARLING_BENCH_PARTS", "16"), ",") {
				b.Run(fmt.Sprintf("mode=%s/graph=%s/parts=%s", mode, name, k), func(b *testing.B) {
					var ours, theirs benchResult
					for b.Loop() {
						for seed := 1; seed <= seeds; seed++ {
							ours.best(runMethod(b, g, "multilevel", mode, k, seed))
							theirs.best(runMethod(b, g, "metis", mode, k, seed))
						}
					}
					ours.report(b, theirs, floor, metisFloor)
				})
			}
		}
	}
}

// BenchmarkMultilevelLarge cuts graphs of 100 million edges, ours alone.
func BenchmarkMultilevelLarge(b *testing.B) {
	for _, name := range []string{"block100", "rmat100"} {
		b.Run("graph="+name+"/parts=16", func(b *testing.B) {
			g := prepareBench(b, name)
			var r benchResult
			for b.Loop() {
				r.best(runMethod(b, g, "multilevel", "one", "16", 1))
			}
			b.Logf("cut %d  volume %d  imbalance %.4f  %.1f s  %d MiB", r.Cut, r.Volume, r.Imbalance, r.Seconds,
				r.RSS>>20)
			b.ReportMetric(r.Seconds, "s")
			b.ReportMetric(float64(r.RSS)/(1<<30), "GiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benchProblem is a graph with what is to be balanced. That it is symmetric is checked
// here, before the clock starts: gpmetis checks it when it reads.
func benchProblem(g *graph.CSR, mode string, k int, seed uint64) *partition.Problem {
	p := &partition.Problem{Graph: g, Symmetric: g.Symmetric(), Parts: k, Seed: seed,
		Constraints: []partition.Constraint{{Name: "vertices", Tolerance: 0.03}}}
	p.Tries, _ = strconv.Atoi(benchEnv("STARLING_BENCH_TRIES", "1"))
	switch mode {
	case "volume":
		p.Objective = partition.Volume
	case "several":
		edges, train := make([]uint32, g.Nodes()), make([]uint32, g.Nodes())
		for v := range edges {
			edges[v] = uint32(g.Degree(uint32(v)))
			if rng.New(5).IntN(uint64(v), 10) == 0 {
				train[v] = 1
			}
		}
		p.Constraints = append(p.Constraints, partition.Constraint{Name: "edges", Weight: edges, Tolerance: 0.1},
			partition.Constraint{Name: "train", Weight: train, Tolerance: 0.05})
	}
	return p
}

// benchResult is what one run gave, or the best of several.
type benchResult struct {
	Cut, Volume int64
	Imbalance   float64 // the heaviest part over the mean; of the worst constraint if there are several
	Seconds     float64
	CPU         float64 // seconds of all cores; gpmetis times itself by its CPU clock
	Process     float64 // seconds of the whole process: reading the graph, and for gpmetis writing the parts
	ProcessCPU  float64
	RSS         int64 // bytes
	runs        int
}

func (r *benchResult) best(o benchResult) {
	if r.runs++; r.runs == 1 {
		o.runs = 1
		*r = o
		return
	}
	r.Cut, r.Volume = min(r.Cut, o.Cut), min(r.Volume, o.Volume)
	r.Imbalance, r.RSS = max(r.Imbalance, o.Imbalance), max(r.RSS, o.RSS)
	r.Seconds, r.CPU = min(r.Seconds, o.Seconds), min(r.CPU, o.CPU)
	r.Process, r.ProcessCPU = min(r.Process, o.Process), min(r.ProcessCPU, o.ProcessCPU)
}

// report prints both, and ours over than's. The floors are what their processes hold
// for next to no graph.
func (r benchResult) report(b *testing.B, than benchResult, floor, thanFloor int64) {
	for _, x := range []struct {
		name string
		benchResult
		floor int64
	}{{"ours ", r, floor}, {"metis", than, thanFloor}} {
		b.Logf("%s cut %9d  volume %9d  imbalance %.4f  %7.3f s (%.3f of CPU)  whole process %7.3f s (%.3f of CPU)  %.1f MiB, %.1f without a graph",
			x.name, x.Cut, x.Volume, x.Imbalance, x.Seconds, x.CPU, x.Process, x.ProcessCPU, float64(x.RSS)/(1<<20),
			float64(x.floor)/(1<<20))
	}
	b.ReportMetric(float64(r.Cut)/float64(than.Cut), "cut-ratio")
	b.ReportMetric(float64(r.Volume)/float64(than.Volume), "volume-ratio")
	b.ReportMetric(r.Seconds/than.Seconds, "time-ratio")
	b.ReportMetric(r.CPU/than.CPU, "cpu-ratio") // where other work disturbs the first
	b.ReportMetric(r.Process/than.Process, "process-time-ratio")
	b.ReportMetric(float64(r.RSS)/float64(than.RSS), "memory-ratio")
	b.ReportMetric(float64(r.RSS-floor)/float64(than.RSS-thanFloor), "growth-ratio")
	b.ReportMetric(r.Imbalance, "imbalance")
	b.ReportMetric(than.Imbalance, "metis-imbalance")
	b.ReportMetric(0, "ns/op")
}

// benchFloor is the most memory run takes for a ring of 64 vertices.
func benchFloor(b *testing.B, run func(g benchGraph, seed int) benchResult) int64 {
	file := filepath.Join(b.TempDir(), "ring.graph")
	writeMetis(b, ring(64), file)
	var r benchResult
	for seed := range 3 {
		r.best(run(benchGraph{metis: file}, seed))
	}
	return r.RSS
}

// measure is the slow recount of a partition of a symmetric graph.
func measure(p *partition.Problem, parts []uint32) (r benchResult) {
	g, k := p.Graph, p.Parts
	seen := make([]int, k) // by part: the last vertex that was counted as remote there, plus one
	for v, p := range parts {
		seen[p] = v + 1
		for _, u := range g.Neighbors(uint32(v)) {
			q := parts[u]
			if q == p {
				continue
			}
			r.Cut++
			if seen[q] != v+1 {
				seen[q] = v + 1
				r.Volume++
			}
		}
	}
	r.Cut /= 2
	for i := range p.Constraints {
		c := &p.Constraints[i]
		weight := make([]int64, k)
		for v, p := range parts {
			weight[p] += c.Of(v)
		}
		r.Imbalance = max(r.Imbalance, float64(slices.Max(weight))*float64(k)/float64(c.Total(len(parts))))
	}
	return r
}

// runMethod runs a method of ours in a process of its own.
func runMethod(b *testing.B, g benchGraph, method, mode, k string, seed int) (r benchResult) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestMultilevelBenchRun$", "-test.v")
	cmd.Env = append(os.Environ(), "STARLING_BENCH_RUN="+strings.Join([]string{g.dir, g.metis, method, mode, k,
		strconv.Itoa(seed)}, ","))
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start).Seconds()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	_, line, _ := bytes.Cut(out, []byte("RESULT "))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	if err := json.Unmarshal(line, &r); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	r.Process, r.ProcessCPU = took, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return r
}

// TestMultilevelBenchRun is the process that runMethod starts.
func TestMultilevelBenchRun(t *testing.T) {
	args := strings.Split(os.Getenv("STARLING_BENCH_RUN"), ",")
	if len(args) != 6 {
		return // not started by BenchmarkMultilevel
	}
	g := benchGraph{args[0], args[1]}.open(t)
	k, _ := strconv.Atoi(args[4])
	seed, _ := strconv.ParseUint(args[5], 10, 64)
	p := benchProblem(g, args[3], k, seed)
	method := partition.Multilevel
	if args[2] == "metis" {
		method = partition.Metis
	}
	start, before := time.Now(), cpuSeconds()
	parts, err := method(context.Background(), p)
	seconds, cpu := time.Since(start).Seconds(), cpuSeconds()-before
	var u *partition.Unbalanced
	if err != nil && (args[2] != "metis" || !errors.As(err, &u)) {
		t.Fatal(err)
	}
	peak := peakMemory(os.Getpid())
	r := measure(p, parts)
	r.Seconds, r.CPU, r.RSS = seconds, cpu, peak
	line, _ := json.Marshal(r)
	fmt.Printf("RESULT %s\n", line)
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// peakMemory is the most memory a process ever held. What wait reports of a child
// will not do: it counts the parent's pages at the moment of the fork.
func peakMemory(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kib int64
	fmt.Sscan(string(rest), &kib)
	return kib << 10
}

var gpmetisTime = regexp.MustCompile(`Partitioning:\s+([0-9.]+) sec`)

func runGpmetis(b *testing.B, metis string, g benchGraph, k string, seed int) benchResult {
	link := filepath.Join(b.TempDir(), "g") // gpmetis writes beside its input
	if err := os.Symlink(absolute(b, g.metis), link); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(metis, "-seed="+strconv.Itoa(seed), "-ufactor=30", link, k)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var peak int64
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	var pause time.Duration // none at first: a small graph is done in a few milliseconds
	for running := true; running; {
		if time.Since(start) > 20*time.Millisecond {
			pause = 2 * time.Millisecond
		}
		peak = max(peak, peakMemory(cmd.Process.Pid))
		select {
		case err := <-done:
			if running = false; err != nil {
				b.Fatalf("%v\n%s", err, out.Bytes())
			}
		case <-time.After(pause):
		}
	}
	took := time.Since(start).Seconds()
	words, err := os.ReadFile(link + ".part." + k)
	if err != nil {
		b.Fatal(err)
	}
	var parts []uint32
	for _, w := range bytes.Fields(words) {
		p, _ := strconv.ParseUint(string(w), 10, 32)
		parts = append(parts, uint32(p))
	}
	n, _ := strconv.Atoi(k)
	r := measure(benchProblem(g.open(b), "one", n, 0), parts)
	r.Seconds, _ = strconv.ParseFloat(string(gpmetisTime.FindSubmatch(out.Bytes())[1]), 64)
	r.CPU, r.RSS = r.Seconds, peak
	r.Process, r.ProcessCPU = took, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return r
}
