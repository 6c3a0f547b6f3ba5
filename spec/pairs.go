package spec

import (
	"fmt"
	"strconv"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/train"
)

// What is auto for tasks of pairs. GraphSAGE has walks of 5 steps and 20 negatives by
// degree^0.75. Here walks are drawn anew every epoch, and 5 negatives are enough: with
// many, scores take longer to leave zero.
const (
	autoWalkLength  = 5
	autoNegatives   = 5
	autoDegreePower = 0.75
)

// completePairs sets what is auto for tasks of pairs.
func (s *Spec) completePairs() {
	if !s.LearnsPairs() {
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

// DegreePower is the power of the degree by which --negatives draws; 0: uniform.
func (s *Spec) DegreePower() (float64, error) {
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
	return 0, Mistake("--negatives", fmt.Sprintf("%q", s.Negatives),
		"uniform, or degree:POWER with a power above 0 and up to 10", "for example degree:0.75")
}

// checkPairs checks the settings of tasks of pairs.
func (s *Spec) checkPairs() error {
	if _, err := s.DegreePower(); err != nil {
		return err
	}
	if err := checkBounds([]bound{
		{"--embedding", s.Embedding, 0, 1 << 16},
		{"--negatives-each", s.NegativesEach, 0, 1 << 16},
		{"--rank-negatives", s.RankNegatives, 1, 1 << 20},
		{"--walks", s.Walks, 1, 1 << 16},
	}); err != nil {
		return err
	}
	if !(s.ValEdges >= 0 && s.TestEdges >= 0 && s.ValEdges+s.TestEdges < 1) {
		return Mistake("--val-edges", fmt.Sprintf("%g with --test-edges %g", s.ValEdges, s.TestEdges),
			"shares from 0 that together leave edges to train on", "")
	}
	if !s.LearnsPairs() {
		return nil
	}
	switch {
	case s.Inductive:
		return Mistake("--inductive", "it with --task "+s.Task, "a task of vertices",
			"edges are held out instead: --val-edges, --test-edges")
	case s.Mode == "mini" && (s.Sampler != "neighbour" || s.Replace || s.Weighted):
		return graph.Apart("--sampler other than neighbour, --replace or --weighted", "--task "+s.Task,
			"batches of pairs are drawn no other way", "use --sampler neighbour without them")
	case s.Patience > 0 && s.Task == nn.TaskLink && s.ValEdges == 0:
		return Mistake("--patience", fmt.Sprint(s.Patience), "0 without validation edges", "give --val-edges")
	}
	return nil
}

// pairEffects are the settings of pairs.
func (s *Spec) pairEffects() []effect {
	d, link, both := Default(), s.Task == nn.TaskLink, s.LearnsPairs()
	const forLink, forBoth = "it is for --task link", "it is for --task link and unsupervised"
	return []effect{
		{"--decoder", s.Decoder != d.Decoder, link, forLink},
		{"--embedding", s.Embedding != 0, both, forBoth},
		{"--negatives", s.Negatives != d.Negatives, both, forBoth},
		{"--negatives-each", s.NegativesEach != 0, both, forBoth},
		{"--negatives-from", s.NegativesFrom != d.NegativesFrom, both && s.Distributed(), forBoth +
			" on several workers"},
		{"--rank-negatives", s.RankNegatives != d.RankNegatives, both, forBoth},
		{"--avoid-edges", !s.AvoidEdges, link, forLink},
		{"--val-edges", s.ValEdges != d.ValEdges, link, forLink},
		{"--test-edges", s.TestEdges != d.TestEdges, link, forLink},
		{"--walks", s.Walks != d.Walks, s.Task == nn.TaskUnsupervised, "it is for --task unsupervised"},
	}
}

// Pairs are the settings of pairs as several workers take them; nil: the task is of vertices.
func (s *Spec) Pairs() (*train.PairOptions, error) {
	if !s.LearnsPairs() {
		return nil, nil
	}
	power, err := s.DegreePower()
	o := &train.PairOptions{ValEdges: s.ValEdges, TestEdges: s.TestEdges, PerPair: s.NegativesEach, Power: power,
		Avoid: s.AvoidEdges, Local: s.NegativesFrom == "local", RankNegatives: s.RankNegatives}
	if s.Task == nn.TaskUnsupervised {
		o.Walks, o.WalkLength, o.Avoid = s.Walks, s.WalkLength, false
	}
	return o, err
}

// decoder is how the model scores pairs; "" for tasks of vertices.
func (s *Spec) decoder() string {
	switch s.Task {
	case nn.TaskLink:
		return s.Decoder
	case nn.TaskUnsupervised:
		return "dot"
	}
	return ""
}
