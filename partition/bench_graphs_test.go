//go:build unix

package partition_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/graph"
)

func ring(n uint32) *graph.CSR {
	g := &graph.CSR{Indptr: make([]int64, 1)}
	for v := range n {
		g.Indices = append(g.Indices, (v+n-1)%n, (v+1)%n)
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

func benchEnv(name, otherwise string) string {
	if s := os.Getenv(name); s != "" {
		return s
	}
	return otherwise
}

// benchGraph is a graph in both forms.
type benchGraph struct{ dir, metis string }

func (g benchGraph) open(tb testing.TB) *graph.CSR {
	if g.dir == "" {
		return readMetis(tb, g.metis)
	}
	d, err := graph.Open(g.dir)
	if err != nil {
		tb.Fatal(err)
	}
	return d.Graph
}

func meshFile() string {
	return filepath.Join(benchEnv("STARLING_DATA", "../../shared/data"), "metis", "4elt.graph")
}

// prepareBench generates a graph, unless it is there from an earlier run.
func prepareBench(b *testing.B, name string) benchGraph {
	if name == "mesh" {
		if _, err := os.Stat(meshFile()); err != nil {
			b.Skipf("no mesh: %v; set STARLING_DATA", err)
		}
		return benchGraph{metis: meshFile()}
	}
	root := os.Getenv("STARLING_BENCH_DIR")
	if root == "" {
		root = b.TempDir()
	}
	g := benchGraph{dir: filepath.Join(root, name), metis: filepath.Join(root, name+".graph")}
	made := g.metis
	large := strings.HasSuffix(name, "100")
	if large {
		made = g.dir
	}
	if _, err := os.Stat(made); err == nil {
		return g
	}
	p := generate.DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes, p.Overwrite = 1_000_000, 20_000_000, 0, 0, true
	kind := "rmat"
	switch name {
	case "block":
		kind, p.Communities, p.Classes, p.Homophily = "sbm", 1000, 1000, 0.8
	case "rmat":
		p.Nodes = 1 << 20
	case "rmat100":
		p.Nodes, p.Edges = 1<<23, 200_000_000
	case "block100":
		kind, p.Nodes, p.Edges, p.Communities, p.Classes, p.Homophily = "sbm", 10_000_000, 200_000_000, 10_000, 1000, 0.8
	default:
		b.Fatalf("no graph is called %q", name)
	}
	if _, err := generate.Dataset(kind, p, g.dir); err != nil {
		b.Fatal(err)
	}
	if !large {
		writeMetis(b, benchGraph{dir: g.dir}.open(b), g.metis)
	}
	return g
}

func writeMetis(tb testing.TB, g *graph.CSR, file string) {
	f, err := os.Create(file + ".new")
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(w, g.Nodes(), g.Edges()/2)
	var line []byte
	for v := range g.Nodes() {
		line = line[:0]
		for _, u := range g.Neighbors(uint32(v)) {
			line = append(strconv.AppendUint(line, uint64(u)+1, 10), ' ')
		}
		w.Write(append(line, '\n'))
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	f.Close()
	if err := os.Rename(file+".new", file); err != nil {
		tb.Fatal(err)
	}
}

// readMetis reads an unweighted graph in METIS's text form, byte by byte: what a process
// holds to read it is the graph and a buffer, as gpmetis does.
func readMetis(tb testing.TB, file string) *graph.CSR {
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(io.MultiReader(f, strings.NewReader("\n")), 1<<15) // the last line may lack its end
	var n, m int
	if _, err := fmt.Fscanln(in, &n, &m); err != nil {
		tb.Fatal(err)
	}
	g := &graph.CSR{Indptr: make([]int64, 1, n+1), Indices: make([]uint32, 0, 2*m)}
	var u uint32 // the number under way; there is no vertex 0
	for len(g.Indptr) <= n {
		c, err := in.ReadByte()
		if err != nil {
			tb.Fatalf("%s: %v after %d of %d vertices", file, err, len(g.Indptr)-1, n)
		}
		switch {
		case c >= '0' && c <= '9':
			u = 10*u + uint32(c-'0')
			continue
		case c != ' ' && c != '\n':
			tb.Fatalf("%s: %q", file, c)
		}
		if u > 0 {
			g.Indices = append(g.Indices, u-1)
			u = 0
		}
		if c == '\n' {
			g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		}
	}
	return g
}

func absolute(tb testing.TB, file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		tb.Fatal(err)
	}
	return abs
}
