package partition_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"starling/dataset"
	"starling/dataset/generate"
	"starling/graph"
	"starling/partition"
	"starling/partition/graphtest"
	"starling/rng"
)

var printRecord = flag.Bool("print-record", false, "print the checksums of TestRecordedCuts instead of comparing them")

// recordedCuts are CRC-32Cs of partitions, by graph, method, mode, parts and seed. A
// partition is a function of the problem and the seed: a change that is not meant to
// change partitions must leave these as they are. After one that is,
//
//	go test ./partition -run TestRecordedCuts -v -print-record
//
// prints the table anew.
var recordedCuts = map[string]uint32{
	"blocks/multilevel/one/2/1":            0x39fdde0e,
	"blocks/multilevel/one/5/2":            0x7a8162e8,
	"blocks/multilevel/one/16/1":           0x9c746c89,
	"blocks/multilevel/one/64/2":           0xcfb5b1c1,
	"blocks/multilevel/several/2/2":        0xd304d063,
	"blocks/multilevel/several/5/1":        0x2045ac87,
	"blocks/multilevel/several/16/2":       0x61e652ce,
	"blocks/multilevel/several/64/1":       0x87a0d62a,
	"blocks/multilevel/volume/2/1":         0x592a2420,
	"blocks/multilevel/volume/5/2":         0x85b65a7e,
	"blocks/multilevel/volume/16/1":        0xe2ea83a9,
	"blocks/multilevel/volume/64/2":        0xc8a68311,
	"blocks/random/one/5/1":                0xcf9f57c8,
	"blocks/random/several/5/1":            0xcf9f57c8,
	"blocks/hash/one/5/1":                  0x7ebfc9c1,
	"blocks/hash/several/5/1":              0x7ebfc9c1,
	"blocks/chunk/one/5/1":                 0x006ce434,
	"blocks/chunk/several/5/1":             0x006ce434,
	"blocks/ldg/one/5/1":                   0xdff82b12,
	"blocks/ldg/several/5/1":               0x6e86620d,
	"blocks/fennel/one/5/1":                0xfcde1091,
	"blocks/fennel/several/5/1":            0x51a93368,
	"blocks/bytegnn/one/5/1":               0x706dfea7,
	"blocks/bytegnn/several/5/1":           0x1cb2256a,
	"blocks/g3/one/5/1":                    0x5b47e2de,
	"blocks/g3/several/5/1":                0xbff24e7f,
	"rmat/multilevel/one/2/1":              0x5c365398,
	"rmat/multilevel/one/5/2":              0x11472d48,
	"rmat/multilevel/one/16/1":             0x264f659e,
	"rmat/multilevel/one/64/2":             0x02b357ca,
	"rmat/multilevel/several/2/2":          0x5b0e0a67,
	"rmat/multilevel/several/5/1":          0xa8958080,
	"rmat/multilevel/several/16/2":         0x4c12c0d8,
	"rmat/multilevel/several/64/1":         0xd15de9b9,
	"rmat/multilevel/volume/2/1":           0x0198ed44,
	"rmat/multilevel/volume/5/2":           0x2287cc1d,
	"rmat/multilevel/volume/16/1":          0x8ad9799c,
	"rmat/multilevel/volume/64/2":          0xb7de061c,
	"large-blocks/multilevel/one/16/1":     0x034370f2,
	"large-blocks/multilevel/several/16/1": 0x9c374347,
	"large-blocks/multilevel/volume/16/1":  0x30b37654,
	"large-rmat/multilevel/one/16/1":       0x8abfc81c,
	"large-rmat/multilevel/several/16/1":   0x0ea26cf3,
	"large-rmat/multilevel/volume/16/1":    0xa119b5cd,
	"mesh/multilevel/one/2/1":              0x0ec25e21,
	"mesh/multilevel/one/5/2":              0x49962bdb,
	"mesh/multilevel/one/16/1":             0x9f384381,
	"mesh/multilevel/one/64/2":             0xb286b961,
	"mesh/multilevel/several/2/2":          0x69199056,
	"mesh/multilevel/several/5/1":          0x88d0ceb5,
	"mesh/multilevel/several/16/2":         0x8bf36d3b,
	"mesh/multilevel/several/64/1":         0x67f66e50,
	"mesh/multilevel/volume/2/1":           0x0ec25e21,
	"mesh/multilevel/volume/5/2":           0x49962bdb,
	"mesh/multilevel/volume/16/1":          0x9f384381,
	"mesh/multilevel/volume/64/2":          0xb286b961,
	"directed/multilevel/one/2/1":          0x618d464c,
	"directed/multilevel/one/5/2":          0xd26e6c9f,
	"directed/multilevel/one/16/1":         0xa72868df,
	"directed/multilevel/one/64/2":         0xe2df87c9,
	"directed/multilevel/several/2/2":      0x4be423bb,
	"directed/multilevel/several/5/1":      0x6bc26a37,
	"directed/multilevel/several/16/2":     0xf0af7b2f,
	"directed/multilevel/several/64/1":     0xf0743118,
	"directed/multilevel/volume/2/1":       0xfc47c917,
	"directed/multilevel/volume/5/2":       0xf1cf7097,
	"directed/multilevel/volume/16/1":      0x5395d44d,
	"directed/multilevel/volume/64/2":      0xce82aaf6,
	"directed/random/one/5/1":              0x2024488c,
	"directed/random/several/5/1":          0x2024488c,
	"directed/hash/one/5/1":                0x44273c2a,
	"directed/hash/several/5/1":            0x44273c2a,
	"directed/chunk/one/5/1":               0xa6562f9b,
	"directed/chunk/several/5/1":           0xa6562f9b,
	"directed/ldg/one/5/1":                 0x984ba884,
	"directed/ldg/several/5/1":             0x568fbcc0,
	"directed/fennel/one/5/1":              0x8460cc1a,
	"directed/fennel/several/5/1":          0x9b8fe733,
	"directed/bytegnn/one/5/1":             0x2788cc79,
	"directed/bytegnn/several/5/1":         0x39ffaf5d,
	"directed/g3/one/5/1":                  0x44db1acc,
	"directed/g3/several/5/1":              0x278241fc,
	"4elt/multilevel/one/2/1":              0x5e7b7c4e,
	"4elt/multilevel/one/5/2":              0x73abfab1,
	"4elt/multilevel/one/16/1":             0xb8883dd7,
	"4elt/multilevel/one/64/2":             0xed9f38bd,
	"4elt/multilevel/several/2/2":          0xbeae9e84,
	"4elt/multilevel/several/5/1":          0xd2d0fae7,
	"4elt/multilevel/several/16/2":         0x1b2598ca,
	"4elt/multilevel/several/64/1":         0x3047e034,
	"4elt/multilevel/volume/2/1":           0x5e7b7c4e,
	"4elt/multilevel/volume/5/2":           0x73abfab1,
	"4elt/multilevel/volume/16/1":          0x590d1644,
	"4elt/multilevel/volume/64/2":          0xed9f38bd,
	"cora/multilevel/one/2/1":              0xe91a5b6f,
	"cora/multilevel/one/5/2":              0x3efbca6d,
	"cora/multilevel/one/16/1":             0xa9f2f385,
	"cora/multilevel/one/64/2":             0x45a3568b,
	"cora/multilevel/several/2/2":          0x6cdcf287,
	"cora/multilevel/several/5/1":          0x3d2bf7bb,
	"cora/multilevel/several/16/2":         0xa5fc71f0,
	"cora/multilevel/several/64/1":         0xc959c778,
	"cora/multilevel/volume/2/1":           0xc319cf9d,
	"cora/multilevel/volume/5/2":           0x95cb27ab,
	"cora/multilevel/volume/16/1":          0x2c58ed95,
	"cora/multilevel/volume/64/2":          0xa536501d,
}

// TestRecordedCuts partitions generated graphs and, if the data is there, 4elt and Cora.
func TestRecordedCuts(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("partitions are recorded on amd64; where the compiler fuses multiplications and additions, others may come out")
	}
	for _, name := range []string{"blocks", "rmat", "large-blocks", "large-rmat", "mesh", "directed", "4elt", "cora"} {
		t.Run(name, func(t *testing.T) {
			g := recordedGraph(t, name)
			for _, c := range recordedCases(name) {
				key := fmt.Sprintf("%s/%s/%s/%d/%d", name, c.method, c.mode, c.parts, c.seed)
				got := partitionSum(t, g, c)
				if *printRecord {
					fmt.Printf("\t%-36s 0x%08x,\n", fmt.Sprintf("%q:", key), got)
				} else if want := recordedCuts[key]; got != want {
					t.Errorf("%s: checksum %08x, recorded %08x", key, got, want)
				}
			}
		})
	}
}

type recordedCase struct {
	method, mode string
	parts        int
	seed         uint64
}

// recordedCases of a graph: large ones with one number of parts and one seed.
func recordedCases(name string) (cases []recordedCase) {
	parts := []int{2, 5, 16, 64}
	if name == "large-blocks" || name == "large-rmat" {
		parts = []int{16}
	}
	for i, mode := range []string{"one", "several", "volume"} {
		for j, k := range parts {
			seed := uint64(1)
			if len(parts) > 1 {
				seed += uint64(i+j) % 2 // either with every number of parts and every mode
			}
			cases = append(cases, recordedCase{"multilevel", mode, k, seed})
		}
	}
	if name == "blocks" || name == "directed" {
		for _, method := range []string{"random", "hash", "chunk", "ldg", "fennel", "bytegnn", "g3"} {
			cases = append(cases, recordedCase{method, "one", 5, 1}, recordedCase{method, "several", 5, 1})
		}
	}
	return cases
}

// partitionSum is the checksum of one partition, the best found where a limit cannot be met.
func partitionSum(t *testing.T, g *graph.CSR, c recordedCase) uint32 {
	p := recordedProblem(g, c)
	parts, err := partition.By(context.Background(), c.method, p)
	var u *partition.Unbalanced
	if err != nil && !errors.As(err, &u) {
		t.Fatal(err)
	}
	raw := make([]byte, 0, 4*len(parts))
	for _, k := range parts {
		raw = binary.LittleEndian.AppendUint32(raw, k)
	}
	return crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))
}

func recordedProblem(g *graph.CSR, c recordedCase) *partition.Problem {
	p := &partition.Problem{Graph: g, Parts: c.parts, Seed: c.seed,
		Constraints: []partition.Constraint{{Name: "vertices", Tolerance: 0.03}}}
	for v := range uint32(g.Nodes()) {
		if rng.New(5).IntN(uint64(v), 10) == 0 {
			p.Splits.Train = append(p.Splits.Train, v)
		}
	}
	switch c.mode {
	case "volume":
		p.Objective = partition.Volume
	case "several":
		edges, train := make([]uint32, g.Nodes()), make([]uint32, g.Nodes())
		for v := range edges {
			edges[v] = uint32(g.Degree(uint32(v)))
		}
		for _, v := range p.Splits.Train {
			train[v] = 1
		}
		p.Constraints = append(p.Constraints,
			partition.Constraint{Name: "edges", Weight: edges, Tolerance: 0.1},
			partition.Constraint{Name: "train", Weight: train, Tolerance: 0.05})
	}
	return p
}

// recordedGraph makes or reads a graph.
func recordedGraph(t *testing.T, name string) *graph.CSR {
	p := generate.DefaultParams()
	p.Features, p.Classes, p.Seed = 0, 0, 7
	switch name {
	case "blocks":
		p.Nodes, p.Edges, p.Communities, p.Classes, p.Homophily = 5000, 60_000, 20, 20, 0.8
		return generated(t, "sbm", p)
	case "large-blocks":
		p.Nodes, p.Edges, p.Communities, p.Classes, p.Homophily = 80_000, 1_600_000, 100, 100, 0.8
		return generated(t, "sbm", p)
	case "rmat":
		p.Nodes, p.Edges = 1<<12, 60_000
		return generated(t, "rmat", p)
	case "large-rmat":
		p.Nodes, p.Edges = 1<<16, 1_600_000
		return generated(t, "rmat", p)
	case "mesh":
		return graphtest.Mesh(t, 120, 90)
	case "directed":
		return directed(t, 3000, 20_000)
	case "4elt":
		return folder(t, func(dir string) error {
			_, err := dataset.Import("metis", realData(t, "metis/4elt.graph"), dataset.ImportOptions{}, dir)
			return err
		})
	}
	return folder(t, func(dir string) error {
		_, err := dataset.Import("planetoid", realData(t, "planetoid"), dataset.ImportOptions{Name: "cora"}, dir)
		return err
	})
}

func generated(t *testing.T, kind string, p generate.Params) *graph.CSR {
	return folder(t, func(dir string) error {
		_, err := generate.Dataset(kind, p, dir)
		return err
	})
}

// folder is the graph of a dataset folder that write makes.
func folder(t *testing.T, write func(dir string) error) *graph.CSR {
	dir := filepath.Join(t.TempDir(), "d")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d.Graph
}

// realData is a file or folder of real data.
func realData(t *testing.T, name string) string {
	root := os.Getenv("STARLING_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no real data: set STARLING_DATA to a folder with %s: %v", name, err)
	}
	return path
}

// directed has self-loops, repeated edges, edges without their reverse, and vertices without edges.
func directed(t *testing.T, nodes, edges int) *graph.CSR {
	key := rng.New(9)
	src, dst := make([]uint32, edges), make([]uint32, edges)
	for i := range src {
		src[i] = uint32(key.IntN(uint64(2*i), nodes))
		dst[i] = uint32(min(int(src[i])+key.IntN(uint64(2*i+1), 40), nodes-nodes/50))
	}
	g, err := graph.FromEdges(nodes, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
