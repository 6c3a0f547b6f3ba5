package partition_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"starling/dataset/generate"
	"starling/graph"
	"starling/partition"
	"starling/partition/graphtest"
)

// BenchmarkRefineStreams reports what refining makes of the cut of streaming methods on graphs of a million and a half
// edges at most: how many edges are between parts without it, and the share that is left after one to three passes.
//
//	go test ./partition -run '^$' -bench RefineStreams -benchtime 1x
func BenchmarkRefineStreams(b *testing.B) {
	p := generate.DefaultParams()
	p.Nodes, p.Edges, p.Features = 100_000, 2_000_000, 0
	mesh := graphtest.Mesh(b, 707, 707)
	for _, g := range []struct {
		name string
		make func() *graph.CSR
	}{
		{"rmat", func() *graph.CSR { return drawn(b, "rmat", p) }},
		{"blocks", func() *graph.CSR {
			q := p
			q.Communities = 200
			return drawn(b, "sbm", q)
		}},
		{"mesh", func() *graph.CSR { return mesh }},
		{"shuffled mesh", func() *graph.CSR { return shuffled(rand.New(rand.NewPCG(1, 1)), mesh) }},
	} {
		for _, method := range []string{"ldg", "fennel"} {
			b.Run(g.name+"/"+method, func(b *testing.B) { refineStream(b, g.make(), method) })
		}
	}
}

func refineStream(b *testing.B, g *graph.CSR, method string) {
	for b.Loop() {
		var first partition.Quality
		var seconds [4]float64
		for passes, name := range []string{"", "cut/1", "cut/2", "cut/3"} {
			begun := time.Now()
			parts, err := partition.By(b.Context(), method, &partition.Problem{Graph: g, Symmetric: true, Parts: 16, Refine: passes})
			if err != nil {
				b.Fatal(err)
			}
			seconds[passes] = time.Since(begun).Seconds()
			q := partition.Measure(g, parts, 16, nil, true, 0)
			if passes == 0 {
				first = *q
				b.ReportMetric(float64(q.EdgeCut), "cut")
				continue
			}
			b.ReportMetric(float64(q.EdgeCut)/float64(first.EdgeCut), name)
			if passes == partition.DefaultRefine {
				b.ReportMetric(float64(q.CommVolume)/float64(first.CommVolume), "volume/2")
			}
		}
		b.ReportMetric(seconds[2]/seconds[0], "time/2")
	}
}

// drawn is a generated graph.
func drawn(b *testing.B, kind string, p generate.Params) *graph.CSR {
	dir := b.TempDir()
	if _, err := generate.Dataset(kind, p, dir+"/graph"); err != nil {
		b.Fatal(err)
	}
	d, err := graph.Open(dir + "/graph")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	return d.Graph
}
