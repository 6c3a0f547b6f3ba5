package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/setup/setuptest"
	"starling/spec"
)

// timedEdges is a block model whose edges have times, each with its reverse; the edges of the last three tenths are
// those of another draw if other is set.
func timedEdges(t *testing.T, other bool) string {
	t.Helper()
	d, err := graph.Open(setuptest.Block(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var src, dst []uint32
	have, times := map[[2]uint32]bool{}, map[[2]uint32]int64{}
	add := func(u, v uint32, at int64) {
		have[[2]uint32{min(u, v), max(u, v)}] = true
		src, dst, times[[2]uint32{min(u, v), max(u, v)}] = append(src, u, v), append(dst, v, u), at
	}
	key, late := rng.New(4), 0
	for v := range uint32(d.Graph.Nodes()) {
		for _, u := range d.Graph.Neighbors(v) {
			if u >= v {
				continue
			}
			if at := int64(key.Fold(uint64(u)).Float64(uint64(v)) * 1000); at < 650 {
				add(u, v, at)
			} else {
				late++
				have[[2]uint32{u, v}] = true // both draws of the future leave it out of each other
				if !other {
					add(u, v, 700+at)
				}
			}
		}
	}
	for i := uint64(0); other && late > 0; i++ {
		u, v := uint32(rng.New(9).IntN(2*i, d.Graph.Nodes())), uint32(rng.New(9).IntN(2*i+1, d.Graph.Nodes()))
		if u != v && !have[[2]uint32{min(u, v), max(u, v)}] {
			add(u, v, 700+int64(i))
			late--
		}
	}
	g, err := graph.FromEdges(d.Graph.Nodes(), src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			g.EdgeTimes = append(g.EdgeTimes, times[[2]uint32{min(u, v), max(u, v)}])
		}
	}
	dir := filepath.Join(t.TempDir(), "timed")
	if err := graph.Save(dir, &graph.Dataset{Meta: graph.Meta{Name: "timed"}, Graph: g, Features: d.Features},
		graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLinksByTimeSeeNoFuture: training is the same to the bit whatever comes later, over the whole graph and in batches,
// and other edges are then tested on.
func TestLinksByTimeSeeNoFuture(t *testing.T) {
	one, other := timedEdges(t, false), timedEdges(t, true)
	for _, mode := range []string{"full", "mini"} {
		s := pairSpecs(one)[nn.TaskLink+" "+mode]
		s.Pairs.Split = "time:0.6,0.8"
		want := trained(t, s, nil)
		s.Dataset = other
		got := trained(t, s, nil)
		if !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: losses %v, with another future %v", mode, want.Loss, got.Loss)
		}
		if *got.AUC == *want.AUC || want.MRR == nil {
			t.Errorf("%s: AUC %v of both, MRR %v", mode, *got.AUC, want.MRR)
		}
	}
}

// TestLinksByTimeRefuse: each in one sentence that names the flag and the remedy.
func TestLinksByTimeRefuse(t *testing.T) {
	timed, timeless := timedEdges(t, false), setuptest.Block(t, nil)
	for _, c := range []struct {
		dir, flag, remedy string
		change            func(*spec.Spec)
	}{
		{timeless, "--split", "import the table of edges with --time", func(s *spec.Spec) {}},
		{timed, "--split", "for example time:0.7,0.85", func(s *spec.Spec) { s.Pairs.Split = "time:0.9,0.5" }},
		{timed, "--split", "for example time:0.7,0.85", func(s *spec.Spec) { s.Pairs.Split = "later" }},
		{timed, "--split", "edges held out at random with several", func(s *spec.Spec) { s.Cluster.Workers = 2 }},
		{timed, "--val-edges", "leave out one", func(s *spec.Spec) { s.Pairs.ValEdges = 0.2 }},
		{timed, "--patience", "A below B", func(s *spec.Spec) { s.Training.Patience, s.Pairs.Split = 2, "time:0.5,0.5" }},
		{timed, "--split", "--task link", func(s *spec.Spec) { s.Task = nn.TaskUnsupervised }},
		{timed, "--split time:0.6,0.8 with --model rgcn", "leave out --split", func(s *spec.Spec) { s.Model.Name = "rgcn" }},
		{timed, "--temporal recent", "leave out --temporal", func(s *spec.Spec) { s.Batches.Temporal = "recent" }},
	} {
		s := setuptest.Quick(c.dir)
		s.Task, s.Mode, s.Model.Name, s.Pairs.Split = nn.TaskLink, "mini", "sage", "time:0.6,0.8"
		c.change(&s)
		_, err := Train(context.Background(), s, nil)
		if !setuptest.IsMistake(err, c.flag) || !strings.Contains(err.Error(), c.remedy) {
			t.Errorf("%s, %s: %v", c.flag, c.remedy, err)
		}
	}
}
