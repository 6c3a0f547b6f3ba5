package predict

import (
	"fmt"
	"path/filepath"

	"starling/graph"
	"starling/serve"
	"starling/spec"
	"starling/tensor"
)

// completeScores checks and completes the options of scores.
func (o *Options) completeScores() error {
	switch ext := filepath.Ext(o.Out); {
	case o.Candidates != "" && (o.Pairs != "" || o.Top != 0 || len(o.Vertices) > 0 || o.Known):
		return spec.Mistake("--candidates", o.Candidates+" with --pairs, --top, --vertex or --known", "one of them",
			"leave out the others")
	case o.Candidates != "" && o.Out == "":
		o.Out = "ranks.npy"
	case o.Candidates != "" && ext != ".npy":
		return spec.Mistake("--out", o.Out, "a file that ends in .npy, for the rank of each pair", "")
	case o.Candidates != "":
	case o.Pairs == "" && o.Top == 0:
		return spec.Mistake("--pairs", "nothing", "a file of pairs to score, two vertices per line",
			"or find the likeliest partners of vertices with --top 10 --vertex ID")
	case o.Pairs != "" && o.Top > 0:
		return spec.Mistake("--pairs", o.Pairs+" with --top", "one of the two", "leave out one of them")
	case o.Top < 0 || o.Top > 1<<20:
		return spec.Mistake("--top", fmt.Sprint(o.Top), "1 to 1048576", "")
	case o.Top == 0 && (len(o.Vertices) > 0 || o.Known):
		return spec.Mistake("--vertex, --known", "them without --top", "how many partners to find", "for example --top 10")
	case o.Top > 0 && o.Out == "":
		o.Out = "top.csv"
	case o.Top > 0 && ext != ".csv":
		return spec.Mistake("--out", o.Out, "a file that ends in .csv, which names both ends", "")
	case o.Out == "":
		o.Out = "scores.npy"
	case ext != ".npy" && ext != ".csv":
		return spec.Mistake("--out", o.Out, "a file that ends in .npy or .csv", "")
	}
	return o.checkOut()
}

// scores scores the pairs of a file, or finds the best partners of vertices, and writes them.
func (r *Predicted) scores(trained *serve.Trained, dev tensor.Device, d *graph.Dataset, o *Options) error {
	if o.Candidates != "" {
		return r.rank(trained, dev, d, o)
	}
	var p *serve.PairScores
	var err error
	if o.Top > 0 {
		p, err = trained.TopScores(dev, d, serve.TopOptions{K: o.Top, Vertices: o.Vertices, Relation: o.Relation,
			Known: o.Known})
	} else {
		p, err = trained.Scores(dev, d, o.Pairs, o.Relation)
	}
	if lost := graph.Shrunk(); lost != nil {
		err = lost
	}
	if err != nil {
		return err
	}
	r.Pairs, r.Width = len(p.Values), 1
	if err := p.Write(r.Out); err != nil {
		return fmt.Errorf("%s: %w", r.Out, err)
	}
	return nil
}
