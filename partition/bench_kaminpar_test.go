//go:build unix

package partition_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"starling/graph"
	"starling/partition"
)

// kaminparScript loads a graph, cuts it by a preset, and prints the seconds and processor seconds of that alone.
const kaminparScript = `import sys, array, time, kaminpar
graph, parts, preset, k, tolerance, threads, seed = sys.argv[1:]
kaminpar.reseed(int(seed))
g = kaminpar.load_graph(graph, kaminpar.GraphFileFormat.METIS)
engine = kaminpar.KaMinPar(num_threads=int(threads), ctx=kaminpar.context_by_name(preset))
start, used = time.perf_counter(), time.process_time()
p = engine.compute_partition(g, int(k), float(tolerance))
print(time.perf_counter() - start, time.process_time() - used)
array.array("I", p).tofile(open(parts, "wb"))`

// kaminparFiles are graphs as KaMinPar reads them, each written once.
type kaminparFiles struct {
	dir   string
	files map[*graph.CSR]string
}

// file is the file of a graph.
func (k *kaminparFiles) file(b *testing.B, g *graph.CSR) string {
	if k.files[g] != "" {
		return k.files[g]
	}
	path := filepath.Join(k.dir, strconv.Itoa(len(k.files)))
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, g.Nodes(), g.Edges()/2)
	for v := range g.Nodes() {
		for _, u := range g.Neighbors(uint32(v)) {
			fmt.Fprint(w, u+1, " ")
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	k.files[g] = path
	return path
}

// run cuts a graph by one of KaMinPar's presets: default, strong and so on.
func (k *kaminparFiles) run(b *testing.B, preset string, p *partition.Problem) (r benchResult) {
	from := k.file(b, p.Graph)
	to := from + ".parts"
	out, err := exec.Command(cmp.Or(os.Getenv("STARLING_PYTHON"), "python3"), "-c", kaminparScript, from, to, preset,
		strconv.Itoa(p.Parts), fmt.Sprint(p.Constraints[0].Tolerance), benchEnv("STARLING_BENCH_THREADS", "2"),
		strconv.FormatUint(p.Seed, 10)).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	last := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var seconds, cpu float64
	if _, err := fmt.Sscan(string(last[len(last)-1]), &seconds, &cpu); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(to)
	parts := make([]uint32, p.Graph.Nodes())
	if err == nil {
		_, err = binary.Decode(raw, binary.LittleEndian, parts)
	}
	if err != nil {
		b.Fatal(err)
	}
	r = measure(p, parts)
	r.Seconds, r.CPU = seconds, cpu
	return r
}
