package run

import (
	"context"
	"fmt"
	"path/filepath"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/report"
	"starling/sample"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/train/mini"
)

// hasPairs reports whether any edge leads to another vertex.
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
func trainPairs(ctx context.Context, s *spec.Spec, dev tensor.Device, data *graph.Dataset, opt train.Options,
	events event.Listener) (*train.Result, error) {
	l, err := pairsOf(ctx, s, data)
	if err != nil && ctx.Err() != nil {
		return nil, report.ErrInterrupted
	}
	if err != nil {
		return nil, err
	}
	if s.Mode == "mini" {
		return mini.Link(ctx, dev, data, opt, *l, events)
	}
	return train.Link(ctx, dev, data, opt, l.LinkOptions, events)
}

// pairsOf are the pairs to train and to evaluate on, and how batches of them are drawn.
func pairsOf(ctx context.Context, s *spec.Spec, data *graph.Dataset) (l *mini.LinkOptions, err error) {
	if s.Task == nn.TaskLink {
		l, err = edgePairs(ctx, s, data)
	} else {
		l, err = walkPairs(ctx, s, data)
	}
	if err == nil && s.Mode == "mini" {
		l.Batches, err = mini.OptionsOf(s.BatchSettings())
	}
	return l, err
}

// edgePairs holds edges out. Negatives in training avoid only the edges that are left: else they
// would reveal which ones are held out.
func edgePairs(ctx context.Context, s *spec.Spec, data *graph.Dataset) (*mini.LinkOptions, error) {
	split, err := sample.HoldOut(ctx, data.Graph, s.Pairs.ValEdges, s.Pairs.TestEdges, s.Seed)
	if err != nil {
		return nil, &graph.InputError{File: data.Dir, Field: "--val-edges, --test-edges", Found: graph.Sentence(err.Error()),
			Want: "edges to train and to evaluate on"}
	}
	l := &mini.LinkOptions{Without: true}
	l.LinkOptions = train.LinkOptions{Graph: split.Graph, Pairs: &sample.Edges{Pairs: split.Train, Seed: s.Seed},
		PerPair: s.Pairs.NegativesEach}
	if l.Negatives, err = negativesOf(s, split.Graph, s.Pairs.AvoidEdges); err != nil {
		return nil, err
	}
	for _, set := range []struct {
		name  string
		pairs sample.Pairs
		to    **sample.Ranked
	}{{"val", split.Val, &l.Val}, {"test", split.Test, &l.Test}} {
		if set.pairs.Len() > 0 {
			if *set.to, err = sample.NewRanked(ctx, data.Graph, set.pairs, s.Pairs.RankNegatives, s.Seed,
				set.name); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

func negativesOf(s *spec.Spec, g *graph.CSR, avoid bool) (*sample.Negatives, error) {
	power, err := s.Pairs.DegreePower()
	if err != nil {
		return nil, err
	}
	return sample.NewNegatives(g, power, avoid, s.Seed)
}

// walkPairs pairs vertices that are on the same walk. It evaluates on walks that no epoch draws.
func walkPairs(ctx context.Context, s *spec.Spec, data *graph.Dataset) (*mini.LinkOptions, error) {
	g := data.Graph
	walks := &sample.Walks{Graph: g, PerVertex: s.Pairs.Walks, Length: s.Batches.WalkLength, Seed: s.Seed}
	l := &mini.LinkOptions{LinkOptions: train.LinkOptions{Graph: g, Pairs: walks, PerPair: s.Pairs.NegativesEach,
		PerPositive: true}}
	var err error
	if l.Negatives, err = negativesOf(s, g, false); err != nil {
		return nil, err
	}
	var evaluated sample.Pairs
	for v := 0; v < g.Nodes(); v += 1 + g.Nodes()/mini.MostEvaluated {
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

// heldOutFiles are the files of a model folder that list held-out edges and their negatives:
// [n, 2] vertices of the dataset each.
var heldOutFiles = []string{"val_edges.npy", "val_negatives.npy", "test_edges.npy", "test_negatives.npy"}

// writeHeldOut writes them, so that other programs can evaluate on the same pairs.
func (p *prepared) writeHeldOut(dir string) error { return writeHeldOut(&p.spec, p.data, dir) }

// writeHeldOut writes them if the run was given the dataset, and not only a partition of it.
func (c *clusterRun) writeHeldOut(dir string) error {
	s := &c.spec
	if s.Task != nn.TaskLink || s.Dataset == "" || s.Dataset == s.PartitionFolder() {
		return nil
	}
	data, err := graph.Open(s.Dataset)
	if err != nil {
		return err
	}
	defer data.Close()
	return writeHeldOut(s, data, dir)
}

func writeHeldOut(s *spec.Spec, data *graph.Dataset, dir string) error {
	if s.Task != nn.TaskLink {
		return nil
	}
	l, err := edgePairs(context.Background(), s, data) // also after a Ctrl-C
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
