package predict

import (
	"fmt"
	"strings"

	"starling/dataset/candidates"
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

// rank measures the candidates of a file, and writes the rank of each pair.
func (r *Predicted) rank(trained *serve.Trained, dev tensor.Device, d *graph.Dataset, o *Options) error {
	pairs, err := trained.Pairs(d, o.Relation)
	if err != nil {
		return err
	}
	read, err := candidates.Read(o.Candidates, candidates.Ends{Source: pairs.Source, Target: pairs.Target})
	if err != nil {
		return err
	}
	c := (*listed)(read)
	if err := pairs.Run(dev); err != nil {
		return err
	}
	ranks, ranked := c.measure(pairs)
	ranked.Edges = pairs.Edges(c.Left, c.Right)
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

// listed are the pairs of a file and their candidates.
type listed candidates.Candidates

// measure returns the rank of each pair, and what follows of all.
func (c *listed) measure(pairs *serve.Pairs) ([]float32, *Ranked) {
	if c.K == 0 {
		return c.measureShared(pairs)
	}
	ranks := make([]float64, 0, len(c.Left))
	step := max(1, rankBlock/c.K)
	kept := make([]uint32, 0, step*c.K)
	for lo := 0; lo < len(c.Left); lo += step {
		hi := min(lo+step, len(c.Left))
		kept = kept[:0]
		for _, u := range c.Left[lo:hi] {
			for range c.K {
				kept = append(kept, u)
			}
		}
		ranks = append(ranks, train.Ranks(wide(pairs.Scores(c.Left[lo:hi], c.Right[lo:hi])),
			wide(pairs.Scores(kept, c.Against[lo*c.K:hi*c.K])), c.K)...)
	}
	return narrow(ranks), newRanked(train.RankMeasures(ranks, c.K), len(ranks), c.K, false)
}

// rankBlock bounds the candidates that are scored at a time.
const rankBlock = 1 << 18

// measureShared ranks every pair among all negatives.
func (c *listed) measureShared(pairs *serve.Pairs) ([]float32, *Ranked) {
	ranks, m := train.SharedRanks(wide(pairs.Scores(c.Left, c.Right)), wide(pairs.Scores(c.SharedLeft, c.SharedRight)))
	return narrow(ranks), newRanked(m, len(ranks), len(c.SharedLeft), true)
}

// newRanked is what was measured, as train names it.
func newRanked(m map[string]float64, pairs, candidates int, shared bool) *Ranked {
	out := &Ranked{Pairs: pairs, Candidates: candidates, Shared: shared, Hits: map[string]report.Number{}}
	for name, x := range m {
		if k, ok := strings.CutPrefix(name, "hits@"); ok {
			out.Hits[k] = report.Number(x)
		}
	}
	out.MRR = report.Number(m["mrr"])
	return out
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
