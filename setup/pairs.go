package setup

import (
	"context"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/spec"
	"starling/train"
	"starling/train/batch/pairs"
)

// Pairs are the pairs to train and to evaluate on, and how batches of them are drawn.
func Pairs(ctx context.Context, s *spec.Spec, data *graph.Dataset) (l *pairs.Options, err error) {
	if s.Task == nn.TaskLink {
		l, err = EdgePairs(ctx, s, data)
	} else {
		l, err = walkPairs(ctx, s, data)
	}
	if err == nil && s.Mode == "mini" {
		l.Batches, err = s.BatchSettings(nil)
	}
	return l, err
}

// EdgePairs holds edges out. Negatives in training avoid only the edges that are left: else they
// would reveal which ones are held out.
func EdgePairs(ctx context.Context, s *spec.Spec, data *graph.Dataset) (*pairs.Options, error) {
	given, err := lists(s, nil)
	if err != nil {
		return nil, err
	}
	split, err := edgeSplit(ctx, s, data, given)
	if err != nil {
		return nil, err
	}
	l := &pairs.Options{Without: true}
	l.LinkOptions = train.LinkOptions{Graph: split.Graph, Pairs: &sample.Edges{Pairs: split.Train, Seed: s.Seed}}
	if err := setNegatives(&l.LinkOptions, s, split.Graph, s.Pairs.AvoidEdges); err != nil {
		return nil, err
	}
	for _, set := range []struct {
		name  string
		pairs sample.Pairs
		to    **sample.Ranked
		list  *sample.Listed
	}{{"val", split.Val, &l.Val, given.Of(sample.ValEdges)}, {"test", split.Test, &l.Test, given.Of(sample.TestEdges)}} {
		if set.list != nil {
			if *set.to, err = sample.RankListed(ctx, data.Graph, set.list, s.Seed, set.name); err != nil {
				return nil, err
			}
		} else if given == nil && set.pairs.Len() > 0 {
			if *set.to, err = sample.NewRanked(ctx, data.Graph, set.pairs, s.Pairs.RankNegatives, s.Seed,
				set.name); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// edgeSplit holds edges out: those that are given, or the latest, or at random.
func edgeSplit(ctx context.Context, s *spec.Spec, data *graph.Dataset, given *sample.Lists) (*sample.EdgeSplit, error) {
	if given != nil {
		split, err := sample.HoldOutListed(ctx, data.Graph, given)
		if err != nil && ctx.Err() == nil {
			flag, path := s.Pairs.Candidates()
			err = &graph.InputError{File: path, Field: flag, Found: graph.Sentence(err.Error()), Want: "edges to learn from"}
		}
		return split, err
	}
	later, byTime, err := s.Pairs.Later()
	switch {
	case err != nil:
		return nil, err
	case byTime && data.Graph.EdgeTimes == nil:
		return nil, &graph.InputError{File: data.Dir, Field: "--split", Found: s.Pairs.Split + ", and edges without times",
			Want: "edge_times.npy: a time for each edge",
			Fix:  "import the table of edges with --time COLUMN, or leave out --split"}
	case byTime:
		split, err := sample.HoldOutLater(ctx, data.Graph, later)
		if err != nil && ctx.Err() == nil {
			err = &graph.InputError{File: data.Dir, Field: "--split", Found: graph.Sentence(err.Error()),
				Want: "edges to train and to evaluate on", Fix: "give other shares, or leave out --split"}
		}
		return split, err
	}
	split, err := sample.HoldOut(ctx, data.Graph, s.Pairs.ValEdges, s.Pairs.TestEdges, s.Seed)
	if err != nil {
		return nil, &graph.InputError{File: data.Dir, Field: "--val-edges, --test-edges", Found: graph.Sentence(err.Error()),
			Want: "edges to train and to evaluate on"}
	}
	return split, nil
}

func setNegatives(l *train.LinkOptions, s *spec.Spec, g *graph.CSR, avoid bool) error {
	d, err := s.Pairs.Drawing()
	if err != nil {
		return err
	}
	l.PerPair, l.NegativeOptions = s.Pairs.NegativesEach, d.Options(s.Pairs.NegativesEach)
	l.Negatives, err = sample.NewNegatives(g, d.Power, avoid, s.Seed)
	return err
}

// walkPairs pairs vertices that are on the same walk. It evaluates on walks that no epoch draws.
func walkPairs(ctx context.Context, s *spec.Spec, data *graph.Dataset) (*pairs.Options, error) {
	g := data.Graph
	walks := &sample.Walks{Graph: g, PerVertex: s.Pairs.Walks, Length: s.Batches.WalkLength, Seed: s.Seed}
	l := &pairs.Options{LinkOptions: train.LinkOptions{Graph: g, Pairs: walks, PerPositive: true}}
	err := setNegatives(&l.LinkOptions, s, g, false)
	if err != nil {
		return nil, err
	}
	var evaluated sample.Pairs
	for v := 0; v < g.Nodes(); v += 1 + g.Nodes()/pairs.MostEvaluated {
		if u, w, ok := walks.Pair(-1, v*s.Pairs.Walks); ok {
			evaluated.U, evaluated.V = append(evaluated.U, u), append(evaluated.V, w)
		}
	}
	if evaluated.Len() == 0 {
		return nil, &graph.InputError{File: data.Dir, Found: "no walk that reaches another vertex",
			Want: "a graph with edges", Fix: "import the dataset with its edges"}
	}
	l.Val, err = sample.NewRanked(ctx, g, evaluated, s.Pairs.RankNegatives, s.Seed, "val")
	return l, err
}
