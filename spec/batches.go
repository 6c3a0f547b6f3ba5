package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/nn"
	"starling/sample"
	"starling/train"
)

// What --fanout auto is for each layer, the last layer's first; the last number repeats.
var (
	autoFanouts = []int{15, 10, 5}
	autoDraws   = 512
)

// layered reports whether the sampler draws for every layer, as --fanout says.
func (s *Spec) layered() bool {
	return slices.Contains([]string{"neighbour", "fastgcn", "ladies"}, s.Sampler)
}

// fanouts reads --fanout: one number per layer.
func (s *Spec) fanouts() (list []int, err error) {
	if !s.layered() || s.Model == "mlp" {
		return nil, nil
	}
	if s.Fanout == "auto" {
		return s.autoFanouts(), nil
	}
	if list, err = readFanouts(s.Fanout, s.Sampler == "neighbour"); err != nil {
		return nil, err
	}
	if len(list) != s.Layers {
		return nil, Mistake("--fanout", fmt.Sprintf("%d numbers, %s", len(list), s.Fanout),
			fmt.Sprintf("one for each of the %d layers", s.Layers),
			"the first is the last layer's, the seed vertices' own; or change --layers")
	}
	return list, nil
}

// Fanouts reads neighbours per layer, of as many layers as there are numbers.
func Fanouts(text string) ([]int, error) { return readFanouts(text, true) }

func readFanouts(text string, orAll bool) (list []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		f, err := strconv.Atoi(strings.TrimSpace(word))
		all := strings.TrimSpace(word) == "all" || err == nil && f == sample.All
		if all && orAll {
			f = sample.All
		} else if err != nil || f < 1 || f > 1<<24 {
			return nil, Mistake("--fanout", fmt.Sprintf("%q", word),
				"whole numbers from 1, separated by commas (or, for the neighbour sampler, all)",
				"for example --fanout 15,10,5")
		}
		list = append(list, f)
	}
	return list, nil
}

func (s *Spec) autoFanouts() (list []int) {
	for l := range s.Layers {
		f := autoFanouts[min(l, len(autoFanouts)-1)]
		if s.Sampler != "neighbour" {
			f = autoDraws
		}
		list = append(list, f)
	}
	return list
}

// checkBatches checks the settings of --mode mini.
func (s *Spec) checkBatches() error {
	if s.Mode == "full" {
		return nil
	}
	_, err := s.fanouts()
	return err
}

// batchEffects are the settings of mini-batches.
func (s *Spec) batchEffects() []effect {
	d, mini := Default(), s.Mode == "mini"
	neighbour, walks := mini && s.Sampler == "neighbour", mini && s.Sampler == "saint-walk" ||
		s.Task == nn.TaskUnsupervised
	const forMini, forNeighbour = "it is for --mode mini", "it is for --mode mini and --sampler neighbour"
	return []effect{
		{"--batch-size", s.BatchSize != d.BatchSize, mini, forMini},
		{"--sampler", s.Sampler != d.Sampler, mini, forMini},
		{"--fanout", s.Fanout != d.Fanout, mini && s.layered(),
			"it is for --mode mini and the samplers neighbour, fastgcn and ladies"},
		{"--replace", s.Replace, neighbour, forNeighbour},
		{"--weighted", s.Weighted, neighbour, forNeighbour},
		{"--clusters", s.Clusters != 0, mini && strings.HasPrefix(s.Sampler, "cluster"),
			"it is for --mode mini and --sampler cluster or cluster-local"},
		{"--walk-length", s.WalkLength != 0, walks,
			"it is for --task unsupervised, and for --mode mini and --sampler saint-walk"},
	}
}

// BatchSettings are the settings of mini-batches as the training on them takes them.
func (s *Spec) BatchSettings() (train.BatchSettings, error) {
	fanouts, err := s.fanouts()
	return train.BatchSettings{Sampler: s.Sampler, Size: s.BatchSize, Fanouts: fanouts, Replace: s.Replace,
		Weighted: s.Weighted,
		Clusters: s.Clusters, WalkLength: s.WalkLength, Threads: s.Cores()}, err
}
