package run

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// What --fanout auto is for each layer, from the roots' on; the last one repeats.
var (
	autoFanouts = []int{15, 10, 5}
	autoDraws   = 512
)

// layered tells whether the sampler draws for every layer, as --fanout says.
func (s *Spec) layered() bool {
	return slices.Contains([]string{"neighbour", "fastgcn", "ladies"}, s.Sampler)
}

// fanouts reads --fanout: one number a layer.
func (s *Spec) fanouts() ([]int, error) {
	if !s.layered() || s.Model == "mlp" {
		return nil, nil
	}
	var list []int
	if s.Fanout == "auto" {
		for l := range s.Layers {
			f := autoFanouts[min(l, len(autoFanouts)-1)]
			if s.Sampler != "neighbour" {
				f = autoDraws
			}
			list = append(list, f)
		}
		return list, nil
	}
	for word := range strings.SplitSeq(s.Fanout, ",") {
		f, err := strconv.Atoi(strings.TrimSpace(word))
		all := strings.TrimSpace(word) == "all" || err == nil && f == sample.All
		if all && s.Sampler == "neighbour" {
			f = sample.All
		} else if err != nil || f < 1 || f > 1<<24 {
			return nil, mistake("--fanout", fmt.Sprintf("%q", word), "whole numbers from 1 on with commas between them (or, for the neighbour sampler, all)", "for example --fanout 15,10,5")
		}
		list = append(list, f)
	}
	if len(list) != s.Layers {
		return nil, mistake("--fanout", fmt.Sprintf("%d numbers, %s", len(list), s.Fanout), fmt.Sprintf("one for each of the %d layers", s.Layers), "the first is of the last layer, the roots' own; or change --layers")
	}
	return list, nil
}

// checkMini checks what --mode mini says.
func (s *Spec) checkMini() error {
	switch {
	case s.Mode != "full" && s.Mode != "mini":
		return mistake("--mode", fmt.Sprintf("%q", s.Mode), "full or mini", suggest(s.Mode, []string{"full", "mini"}))
	case !slices.Contains(train.Samplers, s.Sampler):
		return mistake("--sampler", fmt.Sprintf("%q", s.Sampler), "one of "+strings.Join(train.Samplers, ", "), suggest(s.Sampler, train.Samplers))
	}
	if s.Mode == "full" {
		return nil
	}
	if s.distributed() {
		return mistake("--mode", fmt.Sprintf("mini with --strategy %s and %d workers", s.Strategy, s.Workers), "one worker", "leave out --workers and --strategy: mini-batches on several workers are not available yet in this version")
	}
	_, err := s.fanouts()
	return err
}

// miniFlags are the settings of mini-batches, and when each has an effect.
func (s *Spec) miniFlags() []struct {
	flag, reason string
	given, works bool
} {
	d, mini := Default(), s.Mode == "mini"
	return []struct {
		flag, reason string
		given, works bool
	}{
		{"--batch-size", "it is for --mode mini", s.BatchSize != d.BatchSize, mini},
		{"--sampler", "it is for --mode mini", s.Sampler != d.Sampler, mini},
		{"--fanout", "it is for --mode mini and the samplers neighbour, fastgcn and ladies", s.Fanout != d.Fanout, mini && s.layered()},
		{"--replace", "it is for --mode mini and --sampler neighbour", s.Replace, mini && s.Sampler == "neighbour"},
		{"--weighted", "it is for --mode mini and --sampler neighbour", s.Weighted, mini && s.Sampler == "neighbour"},
		{"--clusters", "it is for --mode mini and --sampler cluster", s.Clusters != 0, mini && s.Sampler == "cluster"},
		{"--walk-length", "it is for --task unsupervised, and for --mode mini and --sampler saint-walk", s.WalkLength != 0, mini && s.Sampler == "saint-walk" || s.Task == nn.TaskUnsupervised},
	}
}

// mini are s as the training on mini-batches wants them.
func (s *Spec) mini() (train.MiniOptions, error) {
	fanouts, err := s.fanouts()
	return train.MiniOptions{Sampler: s.Sampler, Size: s.BatchSize, Fanouts: fanouts, Replace: s.Replace, Weighted: s.Weighted,
		Clusters: s.Clusters, WalkLength: s.WalkLength, Threads: s.threads()}, err
}

// trainOn trains in the mode that s says.
func (s *Spec) trainOn(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, events event.Listener) (*train.Result, error) {
	if s.ofPairs() {
		return s.trainPairs(ctx, dev, data, opt, events)
	}
	if s.Mode == "full" {
		return train.Full(ctx, dev, data, opt, events)
	}
	if s.Weighted && data.Graph.Weights == nil {
		return nil, mistake("--weighted", "a graph without edge weights", "a dataset with weights.npy", "leave it out, or import the graph with weights")
	}
	mini, err := s.mini()
	if err != nil {
		return nil, err
	}
	return train.Mini(ctx, dev, data, opt, mini, events)
}

// miniRows are the rows of a batch at most, from the last layer's outputs to the
// first layer's inputs, and the edges between them.
func (s *Spec) miniRows(g *graph.CSR) (rows []int64, edges int64) {
	n, size := int64(g.Nodes()), int64(s.BatchSize)
	fanouts, _ := s.fanouts()
	switch s.Sampler {
	case "saint-edge":
		size *= 2
	case "saint-walk":
		size *= int64(max(s.WalkLength, s.Layers) + 1)
	}
	if s.ofPairs() {
		size *= int64(2 + s.NegativesEach)
	}
	r := min(size, n)
	rows = []int64{r}
	for l := range s.Layers {
		more := g.Edges()
		if l < len(fanouts) && fanouts[l] != sample.All {
			more = min(more, r*int64(fanouts[l]))
			if s.Sampler != "neighbour" {
				more = min(g.Edges(), int64(fanouts[l]))
			}
		}
		edges += more
		if s.layered() {
			r = min(r+more, n)
		}
		rows = append(rows, r)
	}
	return rows, edges
}

// planMini is what mini-batches need at most: one in training, others being sampled
// ahead, and the whole graph's measuring.
func (p *Plan) planMini(s *Spec, data *graph.Dataset, x nn.Input, measureOn *dryGraph) {
	dev := measureOn.dev
	model := nn.New(dev, s.modelConfig(&data.Meta), s.Seed)
	nn.NewOptimiser(dev, model.Params, s.optimConfig())
	p.Parameters = model.Size()
	dev.Free(model.Forward(&nn.Pass{Dev: dev, Agg: measureOn, Vertices: data.Meta.Nodes, Rows: s.rows(), Key: rng.New(s.Seed)}, x))
	p.Matrices = dev.footprint()
	rows, edges := s.miniRows(data.Graph)
	size := int64(s.rows().Size())
	for l, r := range rows {
		width := int64(s.Hidden)
		if l == len(rows)-1 {
			width = int64(data.Features.Cols)
		}
		p.Matrices += 4 * size * r * width // the rows, their sums, and the gradients of both
	}
	perEdge := int64(12)
	if s.EdgeFeatures {
		dim := int64(data.Graph.EdgeDim)
		p.Matrices += 4 * dim * (edges + rows[len(rows)-1]) // with those of loops
		perEdge += 4 + 4*dim
	}
	ahead := int64(2*s.threads() + 1)
	p.Graph += ahead*(perEdge*edges+16*rows[len(rows)-1]) + int64(s.threads())*8*int64(data.Graph.Nodes())
}
