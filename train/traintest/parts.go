package traintest

import (
	"context"
	"path/filepath"
	"testing"

	"starling/graph"
	"starling/partition"
)

// Cut writes a partition of d by a method and opens its parts.
func Cut(t testing.TB, d *graph.Dataset, method string, parts int) []*partition.Part {
	t.Helper()
	return CutForServers(t, d, method, parts, 1)
}

// CutForServers is Cut with the parts spread over servers.
func CutForServers(t testing.TB, d *graph.Dataset, method string, parts, servers int) []*partition.Part {
	t.Helper()
	p := &partition.Problem{Graph: d.Graph, Parts: parts, Seed: 1, Splits: d.Splits}
	of, err := partition.By(context.Background(), method, p)
	if err != nil {
		t.Fatalf("%s into %d: %v", method, parts, err)
	}
	return WriteParts(t, d, of, parts, servers)
}

// WriteParts writes a partition and opens its parts.
func WriteParts(t testing.TB, d *graph.Dataset, of []uint32, parts, servers int) (out []*partition.Part) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "parts")
	q := partition.Measure(d.Graph, of, parts, nil, d.Graph.Symmetric(), 0)
	if err := partition.Write(context.Background(), d, of, parts, q,
		partition.WriteOptions{Dir: dir, Servers: servers}); err != nil {
		t.Fatal(err)
	}
	for k := range parts {
		p, err := partition.OpenPart(dir, k)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		out = append(out, p)
	}
	return out
}

// OddParts are partitions that no partitioner would make: a worker without a halo (and with
// isolated vertices), one without a training vertex, one with a single vertex, one with
// nearly all.
func OddParts(t testing.TB) (*graph.Dataset, map[string][]*partition.Part) {
	t.Helper()
	d := Communities(t, 60, false)
	var src, dst []uint32
	for v := range uint32(60) {
		for _, u := range d.Graph.Neighbors(v) {
			if (u < 20) == (v < 20) && u != 7 && v != 7 {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	d.Graph = FromEdges(t, 60, src, dst, nil, graph.BuildOptions{})
	d.Meta.Edges = d.Graph.Edges()
	assign := func(of func(v int) uint32) []uint32 {
		out := make([]uint32, 60)
		for v := range out {
			out[v] = of(v)
		}
		return out
	}
	pick := func(yes bool, a, b uint32) uint32 {
		if yes {
			return a
		}
		return b
	}
	return d, map[string][]*partition.Part{
		"no halo":     WriteParts(t, d, assign(func(v int) uint32 { return pick(v < 20, 0, 1+uint32(v%2)) }), 3, 1),
		"no training": WriteParts(t, d, assign(func(v int) uint32 { return pick(v%4 == 0, uint32(v/4%2), 2) }), 3, 1),
		"uneven":      WriteParts(t, d, assign(func(v int) uint32 { return uint32(max(0, v-56)) }), 4, 1),
	}
}
