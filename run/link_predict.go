package run

import (
	"fmt"
	"path/filepath"

	"starling/graph"
	"starling/serve"
	"starling/tensor"
)

// settleScores checks what is asked about pairs.
func (o *PredictOptions) settleScores() error {
	switch ext := filepath.Ext(o.Out); {
	case o.Pairs == "":
		return mistake("--pairs", "nothing", "a file of pairs to score, two vertices a line", "")
	case o.Out == "":
		o.Out = "scores.npy"
	case ext != ".npy" && ext != ".csv":
		return mistake("--out", o.Out, "a file that ends in .npy or .csv", "")
	}
	return CheckFile("--out", o.Out)
}

// scores scores the pairs of a file and writes them.
func (r *Predicted) scores(trained *serve.Trained, dev tensor.Device, d *graph.Dataset, pairs string) error {
	p, err := trained.Scores(dev, d, pairs)
	if err != nil {
		return err
	}
	r.Pairs, r.Width = len(p.Values), 1
	if err := p.Write(r.Out); err != nil {
		return fmt.Errorf("%s: %w", r.Out, err)
	}
	return nil
}
