package sample

import (
	"os"
	"testing"

	"starling/graph"
)

// BenchmarkNeighbour draws batches of 1024 seeds with fanout 15, 10, 5 from the
// dataset that STARLING_BENCH names. On the arxiv-sized one, relabelled blocks.
func BenchmarkNeighbour(b *testing.B) {
	dir := os.Getenv("STARLING_BENCH")
	if dir == "" {
		b.Skip("set STARLING_BENCH to a dataset folder")
	}
	d, err := graph.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, byID := range []bool{false, true} {
		name := "relabel"
		if byID {
			name = "by id"
		}
		b.Run(name, func(b *testing.B) {
			n := &Neighbour{Graph: d.Graph, SeedVertices: d.Splits.Train, Size: 1024, Fanouts: []int{15, 10, 5},
				ByID: byID, Seed: 1}
			m, err := n.Prepare()
			if err != nil {
				b.Fatal(err)
			}
			s := m.Sampler()
			var batch Batch
			edges, i := 0, 0
			for b.Loop() {
				s.Sample(&batch, 0, i%(m.Batches()-1))
				edges += batch.Edges()
				i++
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds(), "edges/s")
			b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "batches/s")
		})
	}
}
