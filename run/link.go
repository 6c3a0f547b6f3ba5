package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// What is auto for tasks of pairs. GraphSAGE's own are walks of 5 steps, negatives
// by degree^0.75 and 20 of them; here walks are drawn anew every epoch, and of negatives a
// few do: with many, scores take longer to leave zero.
const (
	autoWalkLength  = 5
	autoNegatives   = 5
	autoDegreePower = 0.75
	// mostMeasured bounds the walks that unsupervised training is measured on.
	mostMeasured = 10000
)

// ofPairs tells whether pairs of vertices are learnt from: link and unsupervised.
func (s *Spec) ofPairs() bool { return !s.ofVertices() }

// completePairs settles what is auto for tasks of pairs.
func (s *Spec) completePairs() {
	if !s.ofPairs() {
		return
	}
	link := s.Task == nn.TaskLink
	if s.Negatives == "auto" {
		s.Negatives = fmt.Sprintf("degree:%g", autoDegreePower)
		if link {
			s.Negatives = "uniform"
		}
	}
	if s.NegativesEach == 0 {
		s.NegativesEach = autoNegatives
		if link {
			s.NegativesEach = 1
		}
	}
	if s.WalkLength == 0 && !link {
		s.WalkLength = autoWalkLength
	}
	if s.Embedding == 0 {
		s.Embedding = s.Hidden
	}
}

// degreePower reads --negatives: 0 is uniform.
func (s *Spec) degreePower() (float64, error) {
	name, text, given := strings.Cut(s.Negatives, ":")
	switch {
	case s.Negatives == "uniform" || s.Negatives == "auto":
		return 0, nil
	case s.Negatives == "degree":
		return autoDegreePower, nil
	case name == "degree" && given:
		if power, err := strconv.ParseFloat(text, 64); err == nil && power > 0 && power <= 10 {
			return power, nil
		}
	}
	return 0, mistake("--negatives", fmt.Sprintf("%q", s.Negatives), "uniform, or degree:POWER with a power above 0 and up to 10", "for example degree:0.75")
}

// checkPairs checks what tasks of pairs say.
func (s *Spec) checkPairs() error {
	if _, err := s.degreePower(); err != nil {
		return err
	}
	for _, f := range []struct {
		flag     string
		value    int
		min, max int
	}{
		{"--embedding", s.Embedding, 0, 1 << 16},
		{"--negatives-each", s.NegativesEach, 0, 1 << 16},
		{"--rank-negatives", s.RankNegatives, 1, 1 << 20},
		{"--walks", s.Walks, 1, 1 << 16},
	} {
		if f.value < f.min || f.value > f.max {
			return mistake(f.flag, fmt.Sprint(f.value), fmt.Sprintf("%d to %d", f.min, f.max), "")
		}
	}
	if !(s.ValEdges >= 0 && s.TestEdges >= 0 && s.ValEdges+s.TestEdges < 1) {
		return mistake("--val-edges", fmt.Sprintf("%g with --test-edges %g", s.ValEdges, s.TestEdges), "shares from 0 on that together leave some edges to learn from", "")
	}
	if !s.ofPairs() {
		return nil
	}
	switch {
	case s.Inductive:
		return mistake("--inductive", "it with --task "+s.Task, "a task of vertices", "edges are held out instead: --val-edges, --test-edges")
	case s.Mode == "mini" && (s.Sampler != "neighbour" || s.Replace || s.Weighted):
		return mistake("--sampler", "another than neighbour, or --replace or --weighted", "neighbour for --task "+s.Task, "batches of pairs are drawn no other way")
	case s.Patience > 0 && s.Task == nn.TaskLink && s.ValEdges == 0:
		return mistake("--patience", fmt.Sprint(s.Patience), "0 without edges to measure on", "give --val-edges")
	}
	return nil
}

// pairFlags are the settings of pairs, and when each has an effect.
func (s *Spec) pairFlags() []effect {
	d, link, both := Default(), s.Task == nn.TaskLink, s.ofPairs()
	return []effect{
		{"--decoder", s.Decoder != d.Decoder, link, "it is for --task link"},
		{"--embedding", s.Embedding != 0, both, "it is for --task link and unsupervised"},
		{"--negatives", s.Negatives != d.Negatives, both, "it is for --task link and unsupervised"},
		{"--negatives-each", s.NegativesEach != 0, both, "it is for --task link and unsupervised"},
		{"--rank-negatives", s.RankNegatives != d.RankNegatives, both, "it is for --task link and unsupervised"},
		{"--avoid-edges", !s.AvoidEdges, link, "it is for --task link"},
		{"--val-edges", s.ValEdges != d.ValEdges, link, "it is for --task link"},
		{"--test-edges", s.TestEdges != d.TestEdges, link, "it is for --task link"},
		{"--walks", s.Walks != d.Walks, s.Task == nn.TaskUnsupervised, "it is for --task unsupervised"},
	}
}

// decoder is how the model scores pairs; "" of other tasks.
func (s *Spec) decoder() string {
	switch s.Task {
	case nn.TaskLink:
		return s.Decoder
	case nn.TaskUnsupervised:
		return "dot"
	}
	return ""
}

// hasPairs tells whether any edge leads to another vertex.
func hasPairs(g *graph.CSR) bool {
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			if u != v {
				return true
			}
		}
	}
	return false
}

// trainPairs trains on pairs of vertices.
func (s *Spec) trainPairs(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, events event.Listener) (*train.Result, error) {
	l, err := s.pairs(ctx, data)
	if err != nil && ctx.Err() != nil {
		return nil, ErrInterrupted
	}
	if err != nil {
		return nil, err
	}
	return train.Link(ctx, dev, data, opt, *l, events)
}

// pairs are the pairs to learn from and to measure on, and how batches of them are drawn.
func (s *Spec) pairs(ctx context.Context, data *graph.Dataset) (l *train.LinkOptions, err error) {
	if s.Task == nn.TaskLink {
		l, err = s.edgePairs(ctx, data)
	} else {
		l, err = s.walkPairs(ctx, data)
	}
	if err == nil && s.Mode == "mini" {
		var mini train.MiniOptions
		mini, err = s.mini()
		l.Mini = &mini
	}
	return l, err
}

// edgePairs holds edges out. Negatives in training avoid the edges that are left
// alone: else they would tell which are held out.
func (s *Spec) edgePairs(ctx context.Context, data *graph.Dataset) (*train.LinkOptions, error) {
	split, err := sample.HoldOut(ctx, data.Graph, s.ValEdges, s.TestEdges, s.Seed)
	if err != nil {
		return nil, &graph.InputError{File: data.Dir, Field: "--val-edges, --test-edges", Found: err.Error(), Want: "edges to learn from and to measure on"}
	}
	l := &train.LinkOptions{Graph: split.Graph, Pairs: &sample.Edges{Pairs: split.Train, Seed: s.Seed}, PerPair: s.NegativesEach, Without: true}
	if l.Negatives, err = s.negatives(split.Graph, s.AvoidEdges); err != nil {
		return nil, err
	}
	for _, set := range []struct {
		name  string
		pairs sample.Pairs
		to    **sample.Ranked
	}{{"val", split.Val, &l.Val}, {"test", split.Test, &l.Test}} {
		if set.pairs.Len() > 0 {
			if *set.to, err = sample.NewRanked(ctx, data.Graph, set.pairs, s.RankNegatives, s.Seed, set.name); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

func (s *Spec) negatives(g *graph.CSR, avoid bool) (*sample.Negatives, error) {
	power, err := s.degreePower()
	if err != nil {
		return nil, err
	}
	return sample.NewNegatives(g, power, avoid, s.Seed)
}

// walkPairs pairs vertices that meet on walks. What is measured on are walks that no
// epoch draws.
func (s *Spec) walkPairs(ctx context.Context, data *graph.Dataset) (*train.LinkOptions, error) {
	g := data.Graph
	walks := &sample.Walks{Graph: g, PerVertex: s.Walks, Length: s.WalkLength, Seed: s.Seed}
	l := &train.LinkOptions{Graph: g, Pairs: walks, PerPair: s.NegativesEach, PerPositive: true}
	var err error
	if l.Negatives, err = s.negatives(g, false); err != nil {
		return nil, err
	}
	var measured sample.Pairs
	for v := 0; v < g.Nodes(); v += 1 + g.Nodes()/mostMeasured {
		if u, w, ok := walks.Pair(-1, v*s.Walks); ok {
			measured.U, measured.V = append(measured.U, u), append(measured.V, w)
		}
	}
	if measured.Len() == 0 {
		return nil, &graph.InputError{File: data.Dir, Found: "no walk that meets another vertex", Want: "a graph with edges", Fix: "import the dataset with its edges"}
	}
	l.Val, err = sample.NewRanked(ctx, g, measured, s.RankNegatives, s.Seed, "val")
	return l, err
}

// The files of a run's folder that list edges held out, and the pairs they were told
// from: [n, 2] vertices of the dataset each.
var heldOutFiles = []string{"val_edges.npy", "val_negatives.npy", "test_edges.npy", "test_negatives.npy"}

// writeHeldOut writes them, so that others can measure on the same pairs.
func (p *prepared) writeHeldOut(dir string) error {
	if p.spec.Task != nn.TaskLink {
		return nil
	}
	l, err := p.spec.edgePairs(context.Background(), p.data) // also after a Ctrl-C
	if err != nil {
		return err
	}
	w := graph.NewFolderWriter(dir)
	for i, set := range []*sample.Ranked{l.Val, l.Test} {
		if set == nil {
			continue
		}
		for k, pairs := range []sample.Pairs{set.Pairs, set.Against} {
			list := make([]int64, 0, 2*pairs.Len())
			for j := range pairs.U {
				list = append(list, int64(pairs.U[j]), int64(pairs.V[j]))
			}
			if err := graph.PutArray(w, heldOutFiles[2*i+k], list, int64(pairs.Len()), 2); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(dir, heldOutFiles[2*i+k]), err)
			}
		}
	}
	return nil
}
