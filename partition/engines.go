package partition

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"starling/event"
	"starling/graph"
)

// Engines are partitioners of others that run as programs of their own: the graph goes to them as a file, and the parts
// come back as one. They balance one weight per vertex. Several constraints are folded into one, the sum of what a vertex
// has of each, relative to its mean; what then exceeds a limit is repaired by moves, as after streaming.

// ErrNoEngine is what errors.Is finds when an engine is not installed.
var ErrNoEngine = errors.New("not installed")

// KaMinPar partitions a graph with the Python package kaminpar, of its default settings, if STARLING_PYTHON, or python3,
// has it. With one thread the partition depends on the seed alone.
//
// L. Gottesbüren et al.: Deep Multilevel Graph Partitioning, ESA 2021.
func KaMinPar(ctx context.Context, p *Problem) ([]uint32, error) {
	return byEngine(ctx, p, kaminpar("default"))
}

// kaminparBy partitions with one of the package's presets: strong, terapart and so on.
func kaminparBy(preset string) Method {
	return func(ctx context.Context, p *Problem) ([]uint32, error) { return byEngine(ctx, p, kaminpar(preset)) }
}

// PTScotch partitions a graph with PT-Scotch's dgpart under mpirun, if both are installed.
//
// C. Chevalier, F. Pellegrini: PT-Scotch, Parallel Computing 34, 2008.
func PTScotch(ctx context.Context, p *Problem) ([]uint32, error) { return byEngine(ctx, p, ptscotch) }

// IsEngine tells whether a method is a program of others, which may not be installed.
func IsEngine(method string) bool {
	return WithoutPreset(method) == "kaminpar" || method == ptscotch.name
}

// WithoutPreset is the method without the preset behind it, which only kaminpar:PRESET has.
func WithoutPreset(method string) string {
	if name, preset, _ := strings.Cut(method, ":"); name == "kaminpar" && preset != "" {
		return name
	}
	return method
}

// engine is a program that partitions a file.
type engine struct {
	name, install string
	// one is the number of the first vertex; head writes what stands before the rows, row what stands before the
	// neighbours of a vertex, pair a neighbour and the weight of the edge.
	write   func(w *bufio.Writer, x *engineGraph)
	command func(ctx context.Context, p *Problem, graph, parts string, tolerance float64) (*exec.Cmd, error)
	read    func(r *bufio.Reader, parts []uint32) error
}

// engineGraph is the undirected graph that an engine gets, without self-loops, and with repeated edges as one that weighs
// more. It makes row after row from the graph as it is mapped; only edges without a reverse are held, turned round.
type engineGraph struct {
	in, out  *graph.CSR // out: the other direction, without rows where in has both
	load     []int64    // of vertices; nil: one each
	arcs     int64
	weighted bool // some edge weighs more than one
	sources  []uint32
	weights  []uint32
}

// newEngineGraph counts what stands in the head of a file.
func newEngineGraph(p *Problem, load []int64) *engineGraph {
	x := &engineGraph{in: p.Graph, out: &graph.CSR{Indptr: make([]int64, 1)}, load: load}
	if !p.Symmetric && !p.Graph.Symmetric() {
		x.out, _ = p.Graph.Transpose()
	}
	for v := range p.Graph.Nodes() {
		_, weights := x.row(v)
		x.arcs += int64(len(weights))
		for _, w := range weights {
			x.weighted = x.weighted || w > 1
		}
	}
	return x
}

// row is the neighbours of v in ascending order, and how often each is stored.
func (x *engineGraph) row(v int) (neighbours, weights []uint32) {
	row := append(x.sources[:0], x.in.Neighbors(uint32(v))...)
	if x.out.Nodes() > 0 {
		row = append(row, x.out.Neighbors(uint32(v))...)
	}
	slices.Sort(row)
	x.sources, x.weights = row, x.weights[:0]
	neighbours = row[:0]
	for i := 0; i < len(row); {
		u, same := row[i], i
		for i < len(row) && row[i] == u {
			i++
		}
		if int(u) != v {
			neighbours, x.weights = append(neighbours, u), append(x.weights, uint32(i-same))
		}
	}
	return neighbours, x.weights
}

func byEngine(ctx context.Context, p *Problem, e engine) ([]uint32, error) {
	parts := make([]uint32, p.Graph.Nodes())
	if len(parts) == 0 {
		return parts, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil || p.Parts == 1 {
		return parts, err
	}
	dir, err := os.MkdirTemp("", "starling-"+e.name+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	from, to := filepath.Join(dir, "graph"), filepath.Join(dir, "parts")
	load, tolerance := fold(p)
	c, err := e.command(ctx, p, from, to, tolerance)
	if err != nil {
		if errors.Is(err, graph.ErrInput) {
			return nil, err
		}
		return nil, fmt.Errorf("%s is %w (%s): %w", e.name, ErrNoEngine, e.install, err)
	}
	if p.Limits != nil {
		p.Limits.Folded = p.Limits.Folded || load != nil
	}
	if err := writeText(from, func(w *bufio.Writer) { e.write(w, newEngineGraph(p, load)) }); err != nil {
		return nil, err
	}
	load = nil
	p.report(e.name, 0, 1)
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		output := strings.TrimSpace(text.String())
		return nil, fmt.Errorf("%s failed on %s and %s (%w): %.500s", e.name, event.Tally(len(parts), "vertex"),
			event.Tally(p.Parts, "part"), err, strings.ReplaceAll(output, "\n", "; "))
	}
	f, err := os.Open(to)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := e.read(bufio.NewReaderSize(f, 1<<20), parts); err != nil {
		return nil, fmt.Errorf("%s: what it wrote is no partition: %w", e.name, err)
	}
	for v, k := range parts {
		if int(k) >= p.Parts {
			return nil, fmt.Errorf("%s: what it wrote is no partition: vertex %d is in part %d of %d", e.name, v, k, p.Parts)
		}
	}
	return parts, rebalance(ctx, p, parts, newLoads(p).of(parts))
}

// fold makes one weight per vertex of all constraints; nil: one each. The tolerance is the least.
func fold(p *Problem) (load []int64, tolerance float64) {
	constraints, n := p.constraints(), p.Graph.Nodes()
	tolerance = math.Inf(1)
	for i := range constraints {
		tolerance = min(tolerance, constraints[i].Tolerance)
	}
	tolerance = max(tolerance, 0.001)
	if len(constraints) == 1 && constraints[0].Weight == nil {
		return nil, tolerance
	}
	const mean = 64 // of each constraint
	load = make([]int64, n)
	for i := range constraints {
		c := &constraints[i]
		scale := mean * float64(n) / float64(max(c.Total(n), 1))
		for v := range load {
			load[v] += int64(math.Round(scale * float64(c.Of(v))))
		}
	}
	for v := range load {
		load[v] = max(load[v], 1)
	}
	return load, tolerance
}

func writeText(path string, write func(w *bufio.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	write(w)
	return errors.Join(w.Flush(), f.Close())
}

// putNumbers writes numbers with blanks behind them.
func putNumbers(w *bufio.Writer, numbers ...int64) {
	var buf [24]byte
	for _, x := range numbers {
		w.Write(append(strconv.AppendInt(buf[:0], x, 10), ' '))
	}
}

// kaminparScript partitions a file by a preset. The presets called terapart keep the graph compressed.
const kaminparScript = `import sys, array, kaminpar
graph, parts, preset, k, tolerance, threads, seed = sys.argv[1:]
kaminpar.reseed(int(seed))
g = kaminpar.load_graph(graph, kaminpar.GraphFileFormat.METIS, compress=preset.startswith("terapart"))
p = kaminpar.KaMinPar(num_threads=int(threads), ctx=kaminpar.context_by_name(preset)).compute_partition(g, int(k), float(tolerance))
array.array("I", p).tofile(open(parts, "wb"))`

func kaminpar(preset string) engine {
	return engine{name: "kaminpar", install: "pip install kaminpar, for the Python that STARLING_PYTHON names",
		write: writeMetis, read: readWords,
		command: func(ctx context.Context, p *Problem, from, to string, tolerance float64) (*exec.Cmd, error) {
			python, err := exec.LookPath(cmp.Or(os.Getenv("STARLING_PYTHON"), "python3"))
			if err != nil {
				return nil, err
			}
			if err := checkPreset(ctx, python, preset); err != nil {
				return nil, err
			}
			return exec.CommandContext(ctx, python, "-c", kaminparScript, from, to, preset, strconv.Itoa(p.Parts), fmt.Sprint(tolerance),
				strconv.Itoa(p.cores()), strconv.FormatUint(p.Seed&math.MaxInt32, 10)), nil
		}}
}

// checkPreset asks the package for its presets.
func checkPreset(ctx context.Context, python, preset string) error {
	out, err := exec.CommandContext(ctx, python, "-c",
		"import kaminpar\nprint(*sorted(kaminpar.context_names()))").CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if err != nil {
		return errors.New(last)
	}
	if names := strings.Fields(last); !slices.Contains(names, preset) {
		return &graph.InputError{Field: "method", Found: fmt.Sprintf("%q", "kaminpar:"+preset),
			Want: "a preset of the installed package: " + strings.Join(names, ", "), Fix: "choose one of these"}
	}
	return nil
}

// writeMetis writes a METIS file: vertices and edges, and which weights follow; then a line per vertex, whose
// neighbours count from 1.
func writeMetis(w *bufio.Writer, x *engineGraph) {
	n := x.in.Nodes()
	format := map[[2]bool]int64{{false, true}: 1, {true, false}: 10, {true, true}: 11}[[2]bool{x.load != nil, x.weighted}]
	putNumbers(w, int64(n), x.arcs/2, format)
	for v := range n {
		w.WriteByte('\n')
		if x.load != nil {
			putNumbers(w, x.load[v])
		}
		neighbours, weights := x.row(v)
		for i, u := range neighbours {
			putNumbers(w, int64(u)+1)
			if x.weighted {
				putNumbers(w, int64(weights[i]))
			}
		}
	}
	w.WriteByte('\n')
}

// readWords reads the parts as four bytes each.
func readWords(r *bufio.Reader, parts []uint32) error {
	if _, err := io.ReadFull(r, bytesOf(parts)); err != nil {
		return err
	}
	if n, _ := r.Discard(1); n > 0 {
		return fmt.Errorf("more than %s", event.Tally(len(parts), "part"))
	}
	return nil
}

var ptscotch = engine{name: "ptscotch", install: "on Debian and Ubuntu: apt-get install ptscotch openmpi-bin",
	// Scotch's format: version 0; vertices and arcs; the first number, and which weights follow; then a line per vertex:
	// its weight, its degree, and its neighbours behind the weights of their edges.
	write: func(w *bufio.Writer, x *engineGraph) {
		n := x.in.Nodes()
		flags := map[[2]bool]string{{false, false}: "000", {false, true}: "010", {true, false}: "001", {true, true}: "011"}
		fmt.Fprintf(w, "0\n%d %d\n0 %s\n", n, x.arcs, flags[[2]bool{x.load != nil, x.weighted}])
		for v := range n {
			if x.load != nil {
				putNumbers(w, x.load[v])
			}
			neighbours, weights := x.row(v)
			putNumbers(w, int64(len(neighbours)))
			for i, u := range neighbours {
				if x.weighted {
					putNumbers(w, int64(weights[i]))
				}
				putNumbers(w, int64(u))
			}
			w.WriteByte('\n')
		}
	},
	command: func(ctx context.Context, p *Problem, from, to string, tolerance float64) (*exec.Cmd, error) {
		mpirun, err := exec.LookPath("mpirun.openmpi") // Debian's name, where mpirun may be another MPI's
		if err != nil {
			mpirun, err = exec.LookPath("mpirun")
		}
		dgpart, err2 := exec.LookPath("dgpart-int64")
		if err2 != nil {
			dgpart, err2 = exec.LookPath("dgpart")
		}
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		c := exec.CommandContext(ctx, mpirun, "-n", strconv.Itoa(p.cores()), dgpart, strconv.Itoa(p.Parts), from, to,
			"-b"+strconv.FormatFloat(tolerance, 'f', -1, 64), "-Cd")
		// In a container all are root, and there may be fewer cores than processes.
		c.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
			"OMPI_MCA_rmaps_base_oversubscribe=1")
		return c, nil
	},
	// The number of vertices, then a line per vertex: it, and its part.
	read: func(r *bufio.Reader, parts []uint32) error {
		var n int
		if _, err := fmt.Fscan(r, &n); err != nil || n != len(parts) {
			return fmt.Errorf("%d, want %s (%w)", n, event.Tally(len(parts), "vertex"), cmp.Or(err, graph.ErrInput))
		}
		seen := newBits(n)
		for range parts {
			line, err := r.ReadString('\n')
			if strings.TrimSpace(line) == "" && err == nil {
				line, err = r.ReadString('\n')
			}
			v, k, ok := strings.Cut(strings.TrimSpace(line), "\t")
			vertex, err1 := strconv.ParseUint(v, 10, 32)
			part, err2 := strconv.ParseUint(strings.TrimSpace(k), 10, 32)
			if !ok || err1 != nil || err2 != nil || vertex >= uint64(n) || !seen.set(uint32(vertex)) {
				return fmt.Errorf("the line %.40q (%w)", line, cmp.Or(err, graph.ErrInput))
			}
			parts[vertex] = uint32(part)
		}
		return nil
	}}

// cores is how many processors an engine may use.
func (p *Problem) cores() int {
	if p.Threads > 0 {
		return p.Threads
	}
	return runtime.GOMAXPROCS(0)
}
