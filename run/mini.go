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
	if err := s.oneWorker("--mode", s.Mode, "mini-batches"); err != nil {
		return err
	}
	_, err := s.fanouts()
	return err
}

// miniFlags are the settings of mini-batches, and when each has an effect.
func (s *Spec) miniFlags() []effect {
	d, mini := Default(), s.Mode == "mini"
	return []effect{
		{"--batch-size", s.BatchSize != d.BatchSize, mini, "it is for --mode mini"},
		{"--sampler", s.Sampler != d.Sampler, mini, "it is for --mode mini"},
		{"--fanout", s.Fanout != d.Fanout, mini && s.layered(), "it is for --mode mini and the samplers neighbour, fastgcn and ladies"},
		{"--replace", s.Replace, mini && s.Sampler == "neighbour", "it is for --mode mini and --sampler neighbour"},
		{"--weighted", s.Weighted, mini && s.Sampler == "neighbour", "it is for --mode mini and --sampler neighbour"},
		{"--clusters", s.Clusters != 0, mini && s.Sampler == "cluster", "it is for --mode mini and --sampler cluster"},
		{"--walk-length", s.WalkLength != 0, mini && s.Sampler == "saint-walk" || s.Task == nn.TaskUnsupervised, "it is for --task unsupervised, and for --mode mini and --sampler saint-walk"},
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
	mini, err := s.mini()
	if err != nil {
		return nil, err
	}
	return train.Mini(ctx, dev, data, opt, mini, events)
}
