package spec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Pairs is what tasks of pairs of vertices learn from (--task link, unsupervised).
type Pairs struct {
	Decoder       string  `json:"decoder"`
	Embedding     int     `json:"embedding" auto:"zero" range:"1,65536"`
	ValEdges      float64 `json:"val_edges"`
	TestEdges     float64 `json:"test_edges"`
	Negatives     string  `json:"negatives"`
	NegativesEach int     `json:"negatives_each" auto:"zero" range:"1,65536"`
	NegativesFrom string  `json:"negatives_from" values:"global,local"`
	AvoidEdges    bool    `json:"avoid_edges"`
	RankNegatives int     `json:"rank_negatives" range:"1,1048576"`
	Walks         int     `json:"walks" range:"1,65536"`
}

func defaultPairs() Pairs {
	return Pairs{Decoder: "dot", ValEdges: 0.05, TestEdges: 0.1, Negatives: "auto", NegativesFrom: "global",
		AvoidEdges: true, RankNegatives: 100, Walks: 5}
}

// What is auto for tasks of pairs. GraphSAGE has walks of 5 steps and 20 negatives by
// degree^0.75. Here walks are drawn anew every epoch, and 5 negatives are enough: with
// many, scores take longer to leave zero.
const (
	autoWalkLength  = 5
	autoNegatives   = 5
	autoDegreePower = 0.75
)

func (p *Pairs) Validate() error {
	_, err := p.DegreePower()
	err = cmp.Or(err, checkFields(p))
	if err == nil && !(p.ValEdges >= 0 && p.TestEdges >= 0 && p.ValEdges+p.TestEdges < 1) {
		return Mistake("--val-edges", fmt.Sprintf("%g with --test-edges %g", p.ValEdges, p.TestEdges),
			"shares from 0 that together leave edges to train on", "")
	}
	return err
}

// DegreePower is the power of the degree by which --negatives draws; 0: uniform.
func (p *Pairs) DegreePower() (float64, error) {
	name, text, given := strings.Cut(p.Negatives, ":")
	switch {
	case p.Negatives == "uniform" || p.Negatives == "auto":
		return 0, nil
	case p.Negatives == "degree":
		return autoDegreePower, nil
	case name == "degree" && given:
		if power, err := strconv.ParseFloat(text, 64); err == nil && power > 0 && power <= 10 {
			return power, nil
		}
	}
	return 0, Mistake("--negatives", fmt.Sprintf("%q", p.Negatives),
		"uniform, or degree:POWER with a power above 0 and up to 10", "for example degree:0.75")
}

// completePairs sets what is auto for tasks of pairs.
func (s *Spec) completePairs() {
	if !s.LearnsPairs() {
		return
	}
	p, negatives, each := &s.Pairs, "uniform", 1
	if s.Task != nn.TaskLink {
		negatives, each = fmt.Sprintf("degree:%g", autoDegreePower), autoNegatives
		if s.Batches.WalkLength == 0 {
			s.Batches.WalkLength = autoWalkLength
		}
	}
	if p.Negatives == "auto" {
		p.Negatives = negatives
	}
	if p.NegativesEach == 0 {
		p.NegativesEach = each
	}
	if p.Embedding == 0 {
		p.Embedding = s.Model.Hidden
	}
}

// checkPairs refuses what tasks of pairs cannot do.
func (s *Spec) checkPairs() error {
	if !s.LearnsPairs() {
		return nil
	}
	b, t := &s.Batches, &s.Training
	switch {
	case t.Inductive:
		return Mistake("--inductive", "it with --task "+s.Task, "a task of vertices",
			"edges are held out instead: --val-edges, --test-edges")
	case s.Mode == "mini" && (b.Sampler != "neighbour" || b.Replace || b.Weighted):
		return graph.Apart("--sampler other than neighbour, --replace or --weighted", "--task "+s.Task,
			"batches of pairs are drawn no other way", "use --sampler neighbour without them")
	case t.Patience > 0 && s.Task == nn.TaskLink && s.Pairs.ValEdges == 0:
		return Mistake("--patience", fmt.Sprint(t.Patience), "0 without validation edges", "give --val-edges")
	}
	return nil
}

// pairEffects are the settings of pairs.
func (s *Spec) pairEffects() []effect {
	p, d, link, both := &s.Pairs, defaultPairs(), s.Task == nn.TaskLink, s.LearnsPairs()
	const forLink, forBoth = "it is for --task link", "it is for --task link and unsupervised"
	return []effect{
		{"--decoder", p.Decoder != d.Decoder, link, forLink},
		{"--decoder", p.Decoder == "distmult", !link || nn.IsTyped(s.Model.Name),
			"distmult has weights of relations, which only a typed graph has: use dot or mlp"},
		{"--embedding", p.Embedding != 0, both, forBoth},
		{"--negatives", p.Negatives != d.Negatives, both, forBoth},
		{"--negatives-each", p.NegativesEach != 0, both, forBoth},
		{"--negatives-from", p.NegativesFrom != d.NegativesFrom, both && s.Distributed(),
			forBoth + " on several workers"},
		{"--rank-negatives", p.RankNegatives != d.RankNegatives, both, forBoth},
		{"--avoid-edges", !p.AvoidEdges, link, forLink},
		{"--val-edges", p.ValEdges != d.ValEdges, link, forLink},
		{"--test-edges", p.TestEdges != d.TestEdges, link, forLink},
		{"--walks", p.Walks != d.Walks, s.Task == nn.TaskUnsupervised, "it is for --task unsupervised"},
	}
}

// pairOptions are the settings of pairs as several workers take them; nil: the task is of vertices.
func (s *Spec) pairOptions(data *graph.Meta) (*train.PairOptions, error) {
	if !s.LearnsPairs() {
		return nil, nil
	}
	p := &s.Pairs
	power, err := p.DegreePower()
	o := &train.PairOptions{ValEdges: p.ValEdges, TestEdges: p.TestEdges, PerPair: p.NegativesEach, Power: power,
		Avoid: p.AvoidEdges, Local: p.NegativesFrom == "local", RankNegatives: p.RankNegatives}
	if s.Task == nn.TaskUnsupervised {
		o.Walks, o.WalkLength, o.Avoid = p.Walks, s.Batches.WalkLength, false
	}
	if err == nil && s.learnsRelations() {
		o.Relations, err = s.scored(data.Schema)
	}
	return o, err
}

// decoder is how the model scores pairs; "" for tasks of vertices.
func (s *Spec) decoder() string {
	switch s.Task {
	case nn.TaskLink:
		return s.Pairs.Decoder
	case nn.TaskUnsupervised:
		return "dot"
	}
	return ""
}
