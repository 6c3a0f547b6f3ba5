package predict

import (
	"fmt"
	"slices"
	"sort"

	"starling/graph"
	"starling/report"
	"starling/serve"
	"starling/tensor"
	"starling/train"
)

// A model of pairs is measured on candidates from a file, as OGB's link prediction is (Hu et al., NeurIPS 2020):
//
//	of each pair   its rank among its own candidates: MRR and hits@k, a tie in the middle (ogbl-citation2)
//	shared         hits@k: the share of pairs that score higher than the k-th best of all negatives (ogbl-collab)

// Ranked is what was measured on candidates.
type Ranked struct {
	Pairs      int                      `json:"pairs"`
	Candidates int                      `json:"candidates"` // of each pair, or of all
	Shared     bool                     `json:"shared"`
	MRR        report.Number            `json:"mrr"`
	Hits       map[string]report.Number `json:"hits"`
	// Edges is how many of the pairs are edges that messages pass over: their ranks are too good.
	Edges int `json:"edges,omitempty"`
}

// sharedHits are the k of hits@k among shared negatives: ogbl-ddi has 20, ogbl-collab 50, ogbl-ppa 100.
var sharedHits = []int{10, 20, 50, 100}

// rank measures the candidates of a file, and writes the rank of each pair.
func (r *Predicted) rank(trained *serve.Trained, dev tensor.Device, d *graph.Dataset, o *Options) error {
	pairs, err := trained.Pairs(d, o.Relation)
	if err != nil {
		return err
	}
	c, err := readCandidates(o.Candidates, pairs)
	if err != nil {
		return err
	}
	if err := pairs.Run(dev); err != nil {
		return err
	}
	ranks, ranked := c.measure(pairs)
	ranked.Edges = pairs.Edges(c.left, c.right)
	if err := dev.Err(); err != nil {
		return err
	}
	if lost := graph.Shrunk(); lost != nil {
		return lost
	}
	r.Ranked, r.Pairs, r.Width = ranked, ranked.Pairs, 1
	if err := graph.WriteNPY(r.Out, ranks); err != nil {
		return fmt.Errorf("%s: %w", r.Out, err)
	}
	return nil
}

// measure returns the rank of each pair, and what follows of all.
func (c *candidates) measure(pairs *serve.Pairs) ([]float32, *Ranked) {
	if c.k == 0 {
		return c.measureShared(pairs)
	}
	ranks := make([]float64, 0, len(c.left))
	step := max(1, rankBlock/c.k)
	kept := make([]uint32, 0, step*c.k)
	for lo := 0; lo < len(c.left); lo += step {
		hi := min(lo+step, len(c.left))
		kept = kept[:0]
		for _, u := range c.left[lo:hi] {
			for range c.k {
				kept = append(kept, u)
			}
		}
		ranks = append(ranks, train.Ranks(wide(pairs.Scores(c.left[lo:hi], c.right[lo:hi])),
			wide(pairs.Scores(kept, c.against[lo*c.k:hi*c.k])), c.k)...)
	}
	m := train.RankMeasures(ranks, c.k)
	out := &Ranked{Pairs: len(ranks), Candidates: c.k, MRR: report.Number(m["mrr"]), Hits: map[string]report.Number{}}
	for _, k := range []int{1, 3, 10, 100} {
		if hits, ok := m[fmt.Sprintf("hits@%d", k)]; ok {
			out.Hits[fmt.Sprint(k)] = report.Number(hits)
		}
	}
	return narrow(ranks), out
}

// rankBlock bounds the candidates that are scored at a time.
const rankBlock = 1 << 18

// measureShared ranks every pair among all negatives.
func (c *candidates) measureShared(pairs *serve.Pairs) ([]float32, *Ranked) {
	negatives := pairs.Scores(c.sharedLeft, c.sharedRight)
	slices.Sort(negatives)
	out := &Ranked{Pairs: len(c.left), Candidates: len(negatives), Shared: true, Hits: map[string]report.Number{}}
	ranks, mrr, hits := make([]float64, len(c.left)), 0.0, make([]float64, len(sharedHits))
	for i, score := range pairs.Scores(c.left, c.right) {
		atLeast := len(negatives) - sort.Search(len(negatives), func(k int) bool { return negatives[k] >= score })
		more := len(negatives) - sort.Search(len(negatives), func(k int) bool { return negatives[k] > score })
		ranks[i] = 1 + float64(atLeast+more)/2
		mrr += 1 / ranks[i] / float64(len(ranks))
		for j, k := range sharedHits {
			if atLeast < k {
				hits[j] += 1 / float64(len(ranks))
			}
		}
	}
	out.MRR = report.Number(mrr)
	for j, k := range sharedHits {
		out.Hits[fmt.Sprint(k)] = report.Number(hits[j])
	}
	return narrow(ranks), out
}

func wide(s []float32) []float64 {
	out := make([]float64, len(s))
	for i, x := range s {
		out[i] = float64(x)
	}
	return out
}

func narrow(s []float64) []float32 {
	out := make([]float32, len(s))
	for i, x := range s {
		out[i] = float32(x)
	}
	return out
}

// String is the measures for people.
func (r *Ranked) String() string {
	among := fmt.Sprintf("%d candidates each", r.Candidates)
	if r.Shared {
		among = fmt.Sprintf("%d candidates of all", r.Candidates)
	}
	text := fmt.Sprintf("MRR %.4f", r.MRR)
	for _, k := range []string{"1", "3", "10", "20", "50", "100"} {
		if hits, ok := r.Hits[k]; ok {
			text += fmt.Sprintf(", hits@%s %.4f", k, hits)
		}
	}
	text += ", among " + among + "\n"
	if r.Edges > 0 {
		text += fmt.Sprintf("warning: %d of the %d pairs are edges of the dataset, which messages pass over: their ranks "+
			"are too good\n", r.Edges, r.Pairs)
	}
	return text
}
