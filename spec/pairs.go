package spec

import (
	"cmp"
	"fmt"

	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Pairs is what tasks of pairs of vertices learn from (--task link, unsupervised).
type Pairs struct {
	Decoder   string  `json:"decoder"`
	Embedding int     `json:"embedding" auto:"zero" range:"1,65536"`
	Split     string  `json:"split"`
	ValEdges  float64 `json:"val_edges"`
	TestEdges float64 `json:"test_edges"`
	// ValCandidates and TestCandidates are files of pairs to measure on, and of what these are ranked among.
	ValCandidates  string `json:"val_candidates"`
	TestCandidates string `json:"test_candidates"`
	Negatives      string `json:"negatives"`
	NegativesEach  int    `json:"negatives_each" auto:"zero" range:"1,65536"`
	NegativesFrom  string `json:"negatives_from" values:"global,local"`
	AvoidEdges     bool   `json:"avoid_edges"`
	RankNegatives  int    `json:"rank_negatives" range:"1,1048576"`
	Walks          int    `json:"walks" range:"1,65536"`
}

func defaultPairs() Pairs {
	return Pairs{Decoder: "dot", Split: "random", ValEdges: 0.05, TestEdges: 0.1, Negatives: "auto",
		NegativesFrom: "global", AvoidEdges: true, RankNegatives: 100, Walks: 5}
}

// What is auto for tasks of pairs. GraphSAGE has walks of 5 steps and 20 negatives by
// degree^0.75. Here walks are drawn anew every epoch, and 5 negatives are enough: with
// many, scores take longer to leave zero.
const (
	autoWalkLength  = 5
	autoNegatives   = 5
	autoDegreePower = 0.75
	autoChunk       = 64 // pairs that have joint negatives
	autoHard        = 4  // candidates per negative
)

// Listed reports whether files give the pairs to measure on.
func (p *Pairs) Listed() bool { return p.ValCandidates != "" || p.TestCandidates != "" }

// Candidates are a flag that gives pairs to measure on, and its file. REQUIRES: Listed.
func (p *Pairs) Candidates() (flag, path string) {
	if p.ValCandidates != "" {
		return "--val-candidates", p.ValCandidates
	}
	return "--test-candidates", p.TestCandidates
}

func (p *Pairs) Validate() error {
	d, err := p.Drawing()
	_, _, badSplit := p.Later()
	err = cmp.Or(err, badSplit, checkFields(p))
	if err == nil && d.Hard*p.NegativesEach > mostCandidates {
		return Mistake("--negatives", fmt.Sprintf("%q with --negatives-each %d", p.Negatives, p.NegativesEach),
			fmt.Sprintf("at most %d candidates of a pair together", mostCandidates), "")
	}
	if err == nil && !(p.ValEdges >= 0 && p.TestEdges >= 0 && p.ValEdges+p.TestEdges < 1) {
		return Mistake("--val-edges", fmt.Sprintf("%g with --test-edges %g", p.ValEdges, p.TestEdges),
			"shares from 0 that together leave edges to train on", "")
	}
	return err
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
	if p.Listed() && s.Objective.Metric == "auto" {
		s.Objective.Metric = "mrr"
	}
}

// checkPairs refuses what tasks of pairs cannot do.
func (s *Spec) checkPairs() error {
	if !s.LearnsPairs() {
		return nil
	}
	b, t, p := &s.Batches, &s.Training, &s.Pairs
	switch {
	case t.Inductive:
		return Mistake("--inductive", "it with --task "+s.Task, "a task of vertices",
			"edges are held out instead: --val-edges, --test-edges")
	case s.Mode == "mini" && (b.Sampler != "neighbour" || b.Replace || b.Weighted):
		return graph.Apart("--sampler other than neighbour, --replace or --weighted", "--task "+s.Task,
			"batches of pairs are drawn no other way", "use --sampler neighbour without them")
	case p.shared() && s.Mode != "mini":
		return graph.Apart("--negatives "+p.Negatives, "--mode "+s.Mode,
			"pairs share negatives so that a batch needs fewer rows; a step over the whole graph has all of them",
			"use --mode mini, or --negatives uniform")
	case p.NegativesFrom == "local" && (p.shared() || s.learnsRelations()):
		found, why := "--negatives "+p.Negatives, "a batch's pairs share its negatives whichever worker has them"
		if !p.shared() {
			found, why = "--model "+s.Model.Name, "its negatives are of the destination's type, wherever they are"
		}
		return graph.Apart("--negatives-from local", found, why, "leave out --negatives-from")
	case b.Temporal != "none" && s.Mode == "mini":
		return graph.Apart("--temporal "+b.Temporal, "--task "+s.Task, "batches of pairs see all edges but their own",
			"leave out --temporal; with --task link, --split time:0.7,0.85 has training see the earlier edges alone")
	case t.Patience > 0 && p.TestCandidates != "" && p.ValCandidates == "":
		return Mistake("--patience", fmt.Sprint(t.Patience), "0 without validation edges", "give --val-candidates")
	case t.Patience > 0 && s.Task == nn.TaskLink && s.Pairs.ValEdges == 0:
		return Mistake("--patience", fmt.Sprint(t.Patience), "0 without validation edges", "give --val-edges")
	}
	return s.checkLater()
}

// pairEffects are the settings of pairs.
func (s *Spec) pairEffects() []effect {
	p, d, link, both := &s.Pairs, defaultPairs(), s.Task == nn.TaskLink, s.LearnsPairs()
	const forLink, forBoth = "it is for --task link", "it is for --task link and unsupervised"
	const byFile = "--val-candidates and --test-candidates say which edges are held out, and what they are ranked among"
	const byTime = "--split time:A,B says which edges are held out: leave out one of the two"
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
		{"--split", p.Split != d.Split, link, forLink},
		{"--val-edges", p.ValEdges != d.ValEdges, link, forLink},
		{"--test-edges", p.TestEdges != d.TestEdges, link, forLink},
		{"--val-edges", p.ValEdges != d.ValEdges, p.Split == d.Split, byTime},
		{"--test-edges", p.TestEdges != d.TestEdges, p.Split == d.Split, byTime},
		{"--val-candidates", p.ValCandidates != "", link, forLink},
		{"--test-candidates", p.TestCandidates != "", link, forLink},
		{"--split", p.Split != d.Split, !p.Listed(), byFile},
		{"--val-edges", p.ValEdges != d.ValEdges, !p.Listed(), byFile},
		{"--test-edges", p.TestEdges != d.TestEdges, !p.Listed(), byFile},
		{"--rank-negatives", p.RankNegatives != d.RankNegatives, !p.Listed(), byFile},
		{"--walks", p.Walks != d.Walks, s.Task == nn.TaskUnsupervised, "it is for --task unsupervised"},
	}
}

// pairOptions are the settings of pairs as several workers take them; nil: the task is of vertices.
func (s *Spec) pairOptions(data *graph.Meta) (*train.PairOptions, error) {
	if !s.LearnsPairs() {
		return nil, nil
	}
	p := &s.Pairs
	drawing, err := p.Drawing()
	o := &train.PairOptions{ValEdges: p.ValEdges, TestEdges: p.TestEdges, PerPair: p.NegativesEach,
		Power: drawing.Power, Avoid: p.AvoidEdges, Local: p.NegativesFrom == "local", RankNegatives: p.RankNegatives,
		NegativeOptions: drawing.Options(p.NegativesEach)}
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
