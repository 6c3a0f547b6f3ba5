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
	case o.Pairs == "":
		return spec.Mistake("--pairs", "nothing", "a file of pairs to score, two vertices per line", "")
	case o.Out == "":
		o.Out = "scores.npy"
	case ext != ".npy" && ext != ".csv":
		return spec.Mistake("--out", o.Out, "a file that ends in .npy or .csv", "")
	}
	return o.checkOut()
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
