package run

import (
	"context"
	"path/filepath"
	"testing"

	"starling/dataset/generate"
	"starling/graph"
	"starling/spec"
	"starling/train/mini"
)

// miniSpec is quick, in batches of a sampler.
func miniSpec(dir, sampler string) spec.Spec {
	s := quick(dir)
	s.Mode, s.Model.Name, s.Batches.Sampler, s.Batches.Size, s.Training.Epochs = "mini", "sage", sampler, 40, 6
	return s
}

// TestMiniResumeIsExact through checkpoints on disk, for every sampler.
func TestMiniResumeIsExact(t *testing.T) {
	dir := block(t, nil)
	for _, sampler := range mini.Samplers {
		s := miniSpec(dir, sampler)
		want := trained(t, s, nil)
		s.Checkpoints.Dir, s.Checkpoints.Every = filepath.Join(t.TempDir(), "ck"), 1
		ctx, cancel := context.WithCancel(context.Background())
		if r, err := Train(ctx, s, after(3, cancel)); err != nil || r.Reason != "interrupted" {
			t.Fatal(r, err)
		}
		cancel()
		s.Checkpoints.Resume = true
		if got := trained(t, s, nil); timeless(got) != timeless(want) {
			t.Errorf("%s: resumed\n%s\nwant\n%s", sampler, timeless(got), timeless(want))
		}
	}
}

// TestMiniPlanTellsTheMemory: what is planned is never less than the device uses.
func TestMiniPlanTellsTheMemory(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 5000, 40_000, 40 })
	data, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	models := []string{"sage", "gat", "gatv2", "sage-pool"}
	for i, sampler := range mini.Samplers {
		for _, model := range []string{models[i%4], models[(i+1)%4]} { // each with several samplers
			s := onFewThreads(miniSpec(dir, sampler))
			s.Model.Name, s.Model.Hidden, s.Training.Epochs, s.Model.Norm, s.Machine.CacheFirst = model, 32, 2, "none",
				"off"
			r := trained(t, s, nil)
			if err := s.Complete(); err != nil {
				t.Fatal(err)
			}
			p, err := plan(&s, data)
			if err != nil {
				t.Fatal(err)
			}
			sameMemory(t, sampler+", "+model, p.Peak, r.DevicePeakBytes)
		}
	}
}

// TestBatchesAheadArePlanned: all buffers of batches count, though a few epochs do not fill
// them, and their garbage; of pairs too, whose batches gather features.
func TestBatchesAheadArePlanned(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges = 5000, 40_000 })
	data, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	for task, epochs := range map[string]int{"auto": 20, "link": 3} {
		s := miniSpec(dir, "neighbour")
		s.Task, s.Batches.Size, s.Machine.Threads, s.Training.Epochs = task, 1024, 12, epochs
		before, live := liveHeap(), int64(0)
		trained(t, s, after(epochs, func() { live = liveHeap() - before }))
		if err := s.Complete(); err != nil {
			t.Fatal(err)
		}
		p, err := plan(&s, data)
		if err != nil || p.Graph < withGarbage(live) {
			t.Errorf("%s: %d bytes planned for the graph, %d for matrices; the heap had %d (%v)", task, p.Graph,
				p.Matrices, live, err)
		}
		s.Training.Epochs = 1
		short, err := plan(&s, data)
		if err != nil || task == "auto" && short.Graph > p.Graph*3/4 {
			t.Errorf("%s: %d bytes planned for the graph with one epoch, %d with %d (%v)", task, short.Graph, p.Graph,
				epochs, err)
		}
	}
}

// TestCountsOfWalksArePlanned: one number per edge, which other samplers do not need.
func TestCountsOfWalksArePlanned(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges = 2000, 200_000 })
	data, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	planned := func(sampler string, size int) int64 {
		s := onFewThreads(miniSpec(dir, sampler))
		s.Batches.Size, s.Model.Layers = size, 2
		if err := s.Complete(); err != nil {
			t.Fatal(err)
		}
		p, err := plan(&s, data)
		if err != nil {
			t.Fatal(err)
		}
		return p.Graph
	}
	if walks, vertices := planned("saint-walk", 10), planned("saint-node", 30); walks < vertices+4*data.Graph.Edges() {
		t.Errorf("%d bytes planned for walks, %d for as many vertices, of a graph of %d edges", walks, vertices,
			data.Graph.Edges())
	}
}

// TestFewTrainingVertices: the few batches of the dry run have none of them, those of an
// epoch have.
func TestFewTrainingVertices(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Train = 4000, 8000, 0.002 })
	for _, sampler := range []string{"saint-node", "saint-edge", "saint-walk"} {
		s := miniSpec(dir, sampler)
		s.Batches.Size, s.Training.Epochs, s.Training.EvalEvery = 4, 1, 0
		trained(t, s, nil)
	}
}
